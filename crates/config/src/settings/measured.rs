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
    /// Adds the measured syntax and markers of the model with this id on its server, unless any of them is set.
    pub fn or_measured(mut self, id: &str) -> Self {
        let markers = [&self.start_prefix, &self.end_prefix, &self.arg_prefix];
        let is_set = self.syntax.is_some() || markers.iter().any(|marker| marker.is_some());
        if let Some(measured) = MEASURED.get(id).filter(|_| !is_set) {
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
    use super::{Model, measured_models};
    use crate::settings::Syntax;

    #[test]
    fn settings_override_measured_defaults() {
        assert!(measured_models().count() > 0);
        let set = |syntax, start: Option<&str>| Model {
            syntax,
            start_prefix: start.map(str::to_owned),
            ..Model::default()
        };
        let emoji = "reference-emoji";
        for (model, id, expected) in [
            (set(None, None), emoji, Some(Syntax::Emoji)),
            (set(None, None), "reference", None),
            (set(None, None), "Reference-emoji", None),
            (set(Some(Syntax::Block), None), emoji, Some(Syntax::Block)),
            (set(None, Some("<<<")), emoji, None),
        ] {
            assert_eq!(model.or_measured(id).syntax, expected, "{id}");
        }
    }
}
