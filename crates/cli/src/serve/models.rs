//! The file that says what is set for models by their names.

use std::collections::BTreeMap;

use plaincall_gateway::{Markers, Mode, ModelSettings, ReasoningSpan};
use serde::Deserialize;

use crate::serve::Taught;

/// `[models."NAME"]` tables.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct File {
    models: BTreeMap<String, Entry>,
}

/// What is set for one model. What is not said is as the options of the command say it.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
struct Entry {
    syntax: Option<Taught>,
    start_prefix: Option<String>,
    end_prefix: Option<String>,
    arg_prefix: Option<String>,
    keyed: Option<bool>,
    reasoning: Option<Reasoning>,
    in_reasoning: Option<bool>,
    checked: Option<bool>,
    repair_rounds: Option<u32>,
}

/// The two markers, or `false` if there is no reasoning in the text.
#[derive(Debug, Deserialize)]
#[serde(untagged)]
enum Reasoning {
    Markers([String; 2]),
    Is(bool),
}

/// Reads what is set for models, each on top of what is set for all.
pub(super) fn read(
    text: &str,
    all: &ModelSettings,
) -> Result<Vec<(String, ModelSettings)>, String> {
    let file: File = toml::from_str(text).map_err(|error| error.to_string())?;
    let mut models = Vec::new();
    for (name, entry) in file.models {
        let settings = entry.over(all);
        settings
            .check()
            .map_err(|error| format!("the model {name}: {error}"))?;
        models.push((name, settings));
    }
    Ok(models)
}

impl Entry {
    fn over(self, all: &ModelSettings) -> ModelSettings {
        let mut settings = all.clone();
        if let Some(syntax) = self.syntax {
            settings.dialect = syntax.dialect();
        }
        if let Some(marker) = self.start_prefix {
            settings.dialect = settings.dialect.start(marker);
        }
        if let Some(marker) = self.end_prefix {
            settings.dialect = settings.dialect.end(marker);
        }
        if let Some(marker) = self.arg_prefix {
            settings.dialect = settings.dialect.arg(marker);
        }
        match self.keyed {
            Some(true) => settings.markers = Markers::Keyed,
            Some(false) => settings.markers = Markers::Plain,
            None => {}
        }
        match self.reasoning {
            Some(Reasoning::Markers([open, close])) => {
                let is_begun = settings.reasoning.is_some_and(|span| span.is_begun);
                settings.reasoning = Some(ReasoningSpan {
                    open,
                    close,
                    is_begun,
                });
            }
            Some(Reasoning::Is(false)) => settings.reasoning = None,
            Some(Reasoning::Is(true)) => {
                settings.reasoning.get_or_insert_with(ReasoningSpan::think);
            }
            None => {}
        }
        if let (Some(is_begun), Some(span)) = (self.in_reasoning, &mut settings.reasoning) {
            span.is_begun = is_begun;
        }
        match self.checked {
            Some(true) => settings.mode = Mode::Checked,
            Some(false) => settings.mode = Mode::Streamed,
            None => {}
        }
        settings.repair_rounds = self.repair_rounds.unwrap_or(settings.repair_rounds);
        settings
    }
}

#[cfg(test)]
mod tests {
    use plaincall_gateway::{Markers, Mode, ModelSettings, ReasoningSpan};
    use plaincall_syntax::Dialect;

    use super::read;

    #[test]
    fn what_is_set() {
        let all = ModelSettings {
            mode: Mode::Checked,
            ..ModelSettings::default()
        };
        let text = r#"
            [models."a:8b"]
            syntax = "emoji"
            reasoning = ["<t>", "</t>"]
            in_reasoning = true
            [models.b]
            keyed = true
            checked = false
            reasoning = false
            start_prefix = "<<START:"
            repair_rounds = 0
            [models.c]
        "#;
        let models = read(text, &all).unwrap();
        let a = ModelSettings {
            dialect: Dialect::emoji(),
            reasoning: Some(ReasoningSpan {
                open: "<t>".to_owned(),
                close: "</t>".to_owned(),
                is_begun: true,
            }),
            ..all.clone()
        };
        let b = ModelSettings {
            dialect: Dialect::block().start("<<START:"),
            markers: Markers::Keyed,
            mode: Mode::Streamed,
            reasoning: None,
            repair_rounds: 0,
            ..all.clone()
        };
        let expected = [("a:8b", a), ("b", b), ("c", all.clone())];
        assert_eq!(
            models,
            expected.map(|(name, settings)| (name.to_owned(), settings))
        );
    }

    #[test]
    fn what_is_refused() {
        for (text, words) in [
            ("[models.a]\nsyntx = \"block\"", "unknown field `syntx`"),
            ("[models.a]\nsyntax = \"json\"", "unknown variant `json`"),
            (
                "[models.a]\nstart_prefix = \"!\"",
                "the model a: the marker \"!\" is too short",
            ),
            (
                "[models.a]\nsyntax = \"emoji\"\nend_prefix = \"END\"",
                "the model a: ",
            ),
            ("", "missing field `models`"),
        ] {
            let error = read(text, &ModelSettings::default()).unwrap_err();
            assert!(error.contains(words), "{error}");
        }
    }
}
