//! Defaults for models that were measured: `models.toml`, which is generated from `results/`.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use super::Model;

/// The parsed file. A test checks that it is valid.
static MEASURED: LazyLock<BTreeMap<String, Model>> =
    LazyLock::new(|| toml::from_str(include_str!("../models.toml")).unwrap_or_default());

/// Returns the models that were measured, each with the settings of its dialect.
pub fn measured_models() -> impl Iterator<Item = (&'static str, &'static Model)> {
    MEASURED.iter().map(|(name, model)| (name.as_str(), model))
}

impl Model {
    /// Adds the measured syntax, markers and number of few-shot examples of the model with this id on its server, unless they are set.
    pub fn or_measured(self, id: &str) -> Self {
        self.or(MEASURED.get(id))
    }

    fn or(mut self, measured: Option<&Self>) -> Self {
        let markers = [&self.start_prefix, &self.end_prefix, &self.arg_prefix];
        let is_set = self.syntax.is_some() || markers.iter().any(|marker| marker.is_some());
        let Some(measured) = measured else {
            return self;
        };
        self.few_shot = self.few_shot.or(measured.few_shot);
        if !is_set {
            self.syntax = measured.syntax;
            self.start_prefix.clone_from(&measured.start_prefix);
            self.end_prefix.clone_from(&measured.end_prefix);
            self.arg_prefix.clone_from(&measured.arg_prefix);
            self.keyed = self.keyed.or(measured.keyed);
        }
        self
    }
}

#[cfg(test)]
mod tests {
    use super::Model;
    use crate::settings::Syntax;

    #[test]
    fn settings_override_measured_defaults() {
        let set = |syntax, start: Option<&str>, few_shot| Model {
            syntax,
            start_prefix: start.map(str::to_owned),
            few_shot,
            ..Model::default()
        };
        let measured = set(Some(Syntax::Emoji), None, Some(8));
        for (model, syntax, few_shot) in [
            (set(None, None, None), Some(Syntax::Emoji), 8),
            (set(Some(Syntax::Block), None, None), Some(Syntax::Block), 8),
            (set(None, Some("<<<"), Some(0)), None, 0),
        ] {
            let model = model.or(Some(&measured));
            assert_eq!((model.syntax, model.few_shot), (syntax, Some(few_shot)));
        }
        assert_eq!(
            Model::default().or_measured("no such model"),
            Model::default()
        );
    }
}
