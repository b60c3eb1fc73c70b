//! The file that says what is set for models by their names.

use std::borrow::Cow;
use std::ops::Range;
use std::path::Path;

use plaincall_call::{Unclosed, nearest_name};
use plaincall_gateway::{ArgumentMode, Markers, ModelSettings, ReasoningSpan};
use toml::Spanned;
use toml::de::{DeTable, DeValue};

use crate::serve::options::{MOST_REPAIR_ROUNDS, Taught};
use crate::status::Failure;
use crate::text::source::Counter;
use crate::tools_file;

/// What a table of a model may have.
const KEYS: [&str; 11] = [
    "syntax",
    "start_prefix",
    "end_prefix",
    "arg_prefix",
    "keyed",
    "reasoning",
    "in_reasoning",
    "arguments",
    "unclosed",
    "repair_rounds",
    "developer_role",
];

/// What is set for the models of these names, of which `*` stands for any characters.
type Models = Vec<(String, ModelSettings)>;

/// What is wrong, and where.
#[derive(Debug)]
struct Mistake {
    span: Range<usize>,
    message: String,
}

/// Reads the file of this path; each model on top of what is set for all. Its mistakes are shown where they stand.
pub(super) fn load(path: &Path, all: &ModelSettings) -> Result<Models, Failure> {
    let (name, text) = tools_file::read(path)?;
    read(&text, all).map_err(|mistakes| {
        let mut counter = Counter::new(text.as_bytes());
        for Mistake { span, message } in &mistakes {
            let position = counter.position(span.start);
            tools_file::show(&name, &text, message, span.clone(), position);
        }
        let mistakes = match mistakes.len() {
            1 => "a mistake".to_owned(),
            count => format!("{count} mistakes"),
        };
        Failure::Broken(format!("{name} has {mistakes}, so nothing is served"))
    })
}

fn read(text: &str, all: &ModelSettings) -> Result<Models, Vec<Mistake>> {
    let (document, errors) = DeTable::parse_recoverable(text);
    let mut mistakes: Vec<Mistake> = errors
        .iter()
        .map(|error| {
            let span = error.span().unwrap_or_default();
            let message = match (error.message(), text.get(span.clone())) {
                ("duplicate key", Some(key)) => format!("`{key}` stands here for the second time"),
                (message, _) => message.to_owned(),
            };
            Mistake { span, message }
        })
        .collect();
    // Behind a mistake in the form, the rest may mean something else than it seems to.
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let models = file(document.get_ref(), all, &mut mistakes);
    if mistakes.is_empty() {
        Ok(models)
    } else {
        mistakes.sort_by_key(|mistake| mistake.span.start);
        Err(mistakes)
    }
}

fn file(document: &DeTable<'_>, all: &ModelSettings, mistakes: &mut Vec<Mistake>) -> Models {
    let mut models = Vec::new();
    for (key, value) in document {
        let Some(tables) = value
            .get_ref()
            .as_table()
            .filter(|_| *key.get_ref() == "models")
        else {
            mistakes.push(Mistake {
                span: key.span(),
                message: format!(
                    "`{}` means nothing here; the file holds a table `[models.\"NAME\"]` for each model",
                    key.get_ref()
                ),
            });
            continue;
        };
        for (name, value) in tables {
            let Some(entries) = value.get_ref().as_table() else {
                mistakes.push(Mistake {
                    span: name.span(),
                    message: format!(
                        "a model has a table of its own: `[models.\"NAME\"]`, below it lines such as `{} = …`",
                        KEYS.iter().find(|known| name.get_ref() == *known).unwrap_or(&"syntax")
                    ),
                });
                continue;
            };
            let before = mistakes.len();
            let settings = model(entries, all, mistakes);
            if mistakes.len() > before {
                continue;
            }
            match settings.check() {
                Ok(()) => models.push((name.get_ref().to_string(), settings)),
                Err(error) => mistakes.push(Mistake {
                    span: name.span(),
                    message: format!("the settings of this model cannot work: {error}"),
                }),
            }
        }
    }
    models
}

/// One key of a table and its value.
struct Entry<'t, 'i> {
    key: &'t Spanned<Cow<'i, str>>,
    value: &'t Spanned<DeValue<'i>>,
}

impl<'t> Entry<'t, '_> {
    fn refuse(&self, wanted: &str) -> Mistake {
        Mistake {
            span: self.value.span(),
            message: format!("`{}` must be {wanted}", self.key.get_ref()),
        }
    }

    fn text(&self, wanted: &str) -> Result<&'t str, Mistake> {
        let text = self.value.get_ref().as_str();
        text.ok_or_else(|| self.refuse(wanted))
    }

    fn is_so(&self) -> Result<bool, Mistake> {
        let value = self.value.get_ref().as_bool();
        value.ok_or_else(|| self.refuse("true or false"))
    }
}

fn model(entries: &DeTable<'_>, all: &ModelSettings, mistakes: &mut Vec<Mistake>) -> ModelSettings {
    let mut settings = all.clone();
    let find = |name: &str| {
        let entry = entries.iter().find(|(key, _)| key.get_ref() == name);
        entry.map(|(key, value)| Entry { key, value })
    };
    for key in entries.keys() {
        let name = key.get_ref().as_ref();
        if !KEYS.contains(&name) {
            let message = match nearest_name(name, KEYS) {
                Some(near) => format!("there is no key `{name}`; did you mean `{near}`?"),
                None => format!(
                    "there is no key `{name}`; a model may have {}",
                    KEYS.join(", ")
                ),
            };
            let span = key.span();
            mistakes.push(Mistake { span, message });
        }
    }
    // In this order: a syntax has its own markers, and reasoning must be there before a reply can begin in it.
    for name in KEYS {
        let Some(entry) = find(name) else { continue };
        if let Err(mistake) = set(&mut settings, name, &entry) {
            mistakes.push(mistake);
        }
    }
    settings
}

/// Sets what one key says.
fn set(settings: &mut ModelSettings, name: &str, entry: &Entry<'_, '_>) -> Result<(), Mistake> {
    let marker = |entry: &Entry<'_, '_>| entry.text("a text: the marker").map(str::to_owned);
    match name {
        "syntax" => {
            let wanted = "\"block\" or \"emoji\"";
            let taught = match entry.text(wanted)? {
                "block" => Taught::Block,
                "emoji" => Taught::Emoji,
                _ => return Err(entry.refuse(wanted)),
            };
            // The same syntax keeps the markers that are set for all.
            if taught.dialect().syntax() != settings.dialect.syntax() {
                settings.dialect = taught.dialect();
            }
        }
        "start_prefix" => settings.dialect = settings.dialect.clone().start(marker(entry)?),
        "end_prefix" => settings.dialect = settings.dialect.clone().end(marker(entry)?),
        "arg_prefix" => settings.dialect = settings.dialect.clone().arg(marker(entry)?),
        "keyed" => {
            settings.markers = if entry.is_so()? {
                Markers::Keyed
            } else {
                Markers::Plain
            };
        }
        "reasoning" => settings.reasoning = reasoning(settings.reasoning.take(), entry)?,
        "in_reasoning" => match (entry.is_so()?, &mut settings.reasoning) {
            (is_begun, Some(span)) => span.is_begun = is_begun,
            (true, None) => {
                return Err(Mistake {
                    span: entry.value.span(),
                    message: "a reply cannot begin in reasoning of which the markers are not known: set `reasoning` to both".to_owned(),
                });
            }
            (false, None) => {}
        },
        "arguments" => {
            let wanted = "\"checked\" or \"stream\"";
            settings.arguments = match entry.text(wanted)? {
                "checked" => ArgumentMode::Checked,
                "stream" => ArgumentMode::Stream,
                _ => return Err(entry.refuse(wanted)),
            };
        }
        "unclosed" => {
            let wanted = "\"reject\" or \"run\"";
            settings.unclosed = match entry.text(wanted)? {
                "reject" => Unclosed::Reject,
                "run" => Unclosed::Run,
                _ => return Err(entry.refuse(wanted)),
            };
        }
        "repair_rounds" => settings.repair_rounds = rounds(entry)?,
        "developer_role" => settings.developer_is_system = !entry.is_so()?,
        _ => {}
    }
    Ok(())
}

/// Two markers, or `false` if there is no reasoning in the text.
fn reasoning(
    before: Option<ReasoningSpan>,
    entry: &Entry<'_, '_>,
) -> Result<Option<ReasoningSpan>, Mistake> {
    let span = || before.clone().unwrap_or_else(ReasoningSpan::think);
    let value = entry.value.get_ref();
    if let Some(is_there) = value.as_bool() {
        return Ok(is_there.then(span));
    }
    let list = value.as_array();
    let texts: Option<Vec<&str>> =
        list.and_then(|list| list.iter().map(|text| text.get_ref().as_str()).collect());
    match texts.as_deref() {
        Some([open, close]) => Ok(Some(ReasoningSpan {
            open: (*open).to_owned(),
            close: (*close).to_owned(),
            is_begun: before.is_some_and(|span| span.is_begun),
        })),
        _ => Err(entry.refuse("two markers, such as [\"<think>\", \"</think>\"], or false")),
    }
}

fn rounds(entry: &Entry<'_, '_>) -> Result<u32, Mistake> {
    let number = entry.value.get_ref().as_integer();
    let rounds = number.and_then(|it| u32::from_str_radix(it.as_str(), it.radix()).ok());
    let rounds = rounds.filter(|rounds| *rounds <= MOST_REPAIR_ROUNDS);
    rounds.ok_or_else(|| entry.refuse(&format!("a whole number from 0 to {MOST_REPAIR_ROUNDS}")))
}

#[cfg(test)]
mod tests {
    use plaincall_call::Unclosed;
    use plaincall_gateway::{ArgumentMode, Markers, ModelSettings, ReasoningSpan};
    use plaincall_syntax::Dialect;

    use super::{KEYS, read};
    use crate::text::source::Counter;

    fn span(open: &str, close: &str, is_begun: bool) -> ReasoningSpan {
        let (open, close) = (open.to_owned(), close.to_owned());
        ReasoningSpan {
            open,
            close,
            is_begun,
        }
    }

    /// What one table with these lines sets, on top of what is set for all.
    fn check(all: &ModelSettings, lines: &str, expected: ModelSettings) {
        let models = read(&format!("[models.\"a:*\"]\n{lines}"), all);
        let models = models.unwrap_or_else(|mistakes| panic!("{lines}: {mistakes:?}"));
        assert_eq!(models, [("a:*".to_owned(), expected)], "{lines}");
    }

    #[test]
    fn what_each_key_sets() {
        let usual = ModelSettings::default;
        let with = |dialect| ModelSettings { dialect, ..usual() };
        let markers = |markers| ModelSettings { markers, ..usual() };
        let arguments = |arguments| ModelSettings {
            arguments,
            ..usual()
        };
        let reasoning = |reasoning| ModelSettings {
            reasoning,
            ..usual()
        };
        let unclosed = |unclosed| ModelSettings {
            unclosed,
            ..usual()
        };
        let rounds = |repair_rounds| ModelSettings {
            repair_rounds,
            ..usual()
        };
        let developer = |developer_is_system| ModelSettings {
            developer_is_system,
            ..usual()
        };
        let begun = || Some(span("<think>", "</think>", true));
        let custom = || with(Dialect::block().start("<<START:"));
        let none = || reasoning(None);
        let table = [
            (usual(), "", usual()),
            (usual(), "syntax = \"emoji\"", with(Dialect::emoji())),
            (usual(), "syntax = \"block\"", usual()),
            (custom(), "syntax = \"block\"", custom()),
            (custom(), "syntax = \"emoji\"", with(Dialect::emoji())),
            (with(Dialect::emoji()), "syntax = \"block\"", usual()),
            (usual(), "start_prefix = \"<<START:\"", custom()),
            (
                usual(),
                "end_prefix = \"<<END\"",
                with(Dialect::block().end("<<END")),
            ),
            (
                usual(),
                "arg_prefix = \"<<ARG:\"",
                with(Dialect::block().arg("<<ARG:")),
            ),
            (usual(), "keyed = true", markers(Markers::Keyed)),
            (markers(Markers::Keyed), "keyed = false", usual()),
            (
                usual(),
                "reasoning = [\"<t>\", \"</t>\"]",
                reasoning(Some(span("<t>", "</t>", false))),
            ),
            (
                reasoning(begun()),
                "reasoning = [\"<t>\", \"</t>\"]",
                reasoning(Some(span("<t>", "</t>", true))),
            ),
            (usual(), "reasoning = false", none()),
            (none(), "reasoning = true", usual()),
            (usual(), "in_reasoning = true", reasoning(begun())),
            (reasoning(begun()), "in_reasoning = false", usual()),
            (none(), "in_reasoning = false", none()),
            (
                none(),
                "in_reasoning = true\nreasoning = true",
                reasoning(begun()),
            ),
            (
                usual(),
                "arguments = \"stream\"",
                arguments(ArgumentMode::Stream),
            ),
            (
                arguments(ArgumentMode::Stream),
                "arguments = \"checked\"",
                usual(),
            ),
            (usual(), "unclosed = \"run\"", unclosed(Unclosed::Run)),
            (unclosed(Unclosed::Run), "unclosed = \"reject\"", usual()),
            (usual(), "repair_rounds = 0", rounds(0)),
            (usual(), "developer_role = true", developer(false)),
            (developer(false), "developer_role = false", usual()),
        ];
        for key in KEYS {
            assert!(
                table.iter().any(|(_, lines, _)| lines.contains(key)),
                "{key}"
            );
        }
        for (all, lines, expected) in table {
            check(&all, lines, expected);
        }
        assert_eq!(read("", &usual()).unwrap(), []);
        let several = read("[models]\nb = {}\n[models.a]\nkeyed = true\n", &usual()).unwrap();
        assert_eq!(several.len(), 2);
    }

    #[test]
    #[expect(clippy::too_many_lines, reason = "a table")]
    fn what_is_refused() {
        let table = [
            (
                "[models.a]\nsyntx = \"block\"",
                (2, 1),
                "there is no key `syntx`; did you mean `syntax`?",
            ),
            (
                "[models.a]\nzoom = 1",
                (2, 1),
                "a model may have syntax, start_prefix, ",
            ),
            (
                "[models.a]\nsyntax = \"json\"",
                (2, 10),
                "`syntax` must be \"block\" or \"emoji\"",
            ),
            (
                "[models.a]\narguments = \"streamed\"",
                (2, 13),
                "`arguments` must be \"checked\" or \"stream\"",
            ),
            (
                "[models.a]\nunclosed = true",
                (2, 12),
                "`unclosed` must be \"reject\" or \"run\"",
            ),
            (
                "[models.a]\nsyntax = 1",
                (2, 10),
                "`syntax` must be \"block\" or \"emoji\"",
            ),
            (
                "[models.a]\nstart_prefix = 1",
                (2, 16),
                "`start_prefix` must be a text",
            ),
            (
                "[models.a]\nkeyed = \"yes\"",
                (2, 9),
                "`keyed` must be true or false",
            ),
            ("[models.a]\nreasoning = [\"<t>\"]", (2, 13), "two markers"),
            ("[models.a]\nreasoning = \"<t>\"", (2, 13), "two markers"),
            (
                "[models.a]\nreasoning = false\nin_reasoning = true",
                (3, 16),
                "set `reasoning` to both",
            ),
            (
                "[models.a]\nrepair_rounds = -1",
                (2, 17),
                "a whole number from 0 to 20",
            ),
            (
                "[models.a]\nrepair_rounds = 21",
                (2, 17),
                "a whole number from 0 to 20",
            ),
            (
                "\n[models.\"a\"]\nstart_prefix = \"!\"",
                (2, 9),
                "is too short",
            ),
            (
                "[models.a]\nsyntax = \"emoji\"\nend_prefix = \"END\"",
                (1, 9),
                "cannot work: ",
            ),
            (
                "[models]\nkeyed = true",
                (2, 1),
                "a model has a table of its own",
            ),
            ("[model.a]\n", (1, 2), "`model` means nothing here"),
            (
                "models = 7\n",
                (1, 1),
                "the file holds a table `[models.\"NAME\"]`",
            ),
            (
                "[models.a]\n[models.a]\n",
                (2, 9),
                "stands here for the second time",
            ),
            (
                "[models.a]\nkeyed = true\nkeyed = true\n",
                (3, 1),
                "stands here for the second time",
            ),
            ("[models.a]\nkeyed = \n", (2, 9), ""),
        ];
        for (text, position, words) in table {
            let mistakes = read(text, &ModelSettings::default()).unwrap_err();
            let [mistake] = mistakes.as_slice() else {
                panic!("{text}: {mistakes:?}");
            };
            assert!(mistake.message.contains(words), "{text}: {mistake:?}");
            let found = Counter::new(text.as_bytes()).position(mistake.span.start);
            assert_eq!(found, position, "{text}: {mistake:?}");
        }
        let two = read("[models.a]\nx = 1\nkeyed = 1", &ModelSettings::default());
        assert_eq!(two.unwrap_err().len(), 2);
    }
}
