//! The recommendation in words, with a configuration.

use std::fmt::{Display, Write as _};
use std::fs;
use std::io::ErrorKind;
use std::path::Path;

use plaincall_config::settings::{Api, Constrain, FilePath, Model, Syntax, read_settings};
use plaincall_probe::{Arm, ArmReport, Author, Report, Verdict};
use toml_edit::{DocumentMut, Item, Table, TableLike};

use crate::commands::probe::subject::Subject;
use crate::commands::probe::table::percent;
use crate::replacement::replace;
use crate::status::{Failure, print_note};

/// The keys that must not remain when the syntax changes.
const OF_ONE_SYNTAX: [&str; 5] = [
    "start_prefix",
    "end_prefix",
    "arg_prefix",
    "markers_anywhere",
    "self_closing",
];
/// The keys that distinguish models.
const OF_THE_MODEL: [&str; 4] = ["url", "model", "kind", "replay"];
/// The most failures that are listed.
const FAILURES: usize = 12;

/// Returns the recommendation, with line ends.
pub(super) fn recommendation(report: &Report, subject: &Subject, repetitions: u32) -> String {
    let figures = |name: &str| report.arm(name).map_or(String::new(), figures);
    let more = format!("`--repeat {}` narrows the intervals", repetitions * 3);
    let mut text = match &report.verdict {
        Verdict::KeepNative => {
            let others: Vec<String> = plaincall_arms(report)
                .map(|arm| figures(&arm.arm))
                .collect();
            format!(
                "Keep native: {} is better than {}.\n",
                figures("native"),
                others.join(" and ")
            )
        }
        Verdict::NoDifference { arm } => format!(
            "No difference found between {} and {}: the intervals overlap. Keep native; {more}.\n",
            figures("native"),
            figures(arm)
        ),
        Verdict::Use { arm, same_as } => {
            let native = report.arm("native").filter(|native| native.attempts > 0);
            let native = native.map_or(String::new(), |native| {
                format!(" It is better than {}.", self::figures(native))
            });
            let same = same_as.as_deref().map_or(String::new(), |other| {
                format!(" No difference found to {}; {more}.", figures(other))
            });
            format!("Recommended: {}.{native}{same}\n", figures(arm))
        }
        Verdict::Json { arm } => format!(
            "Keep JSON in the prompt: {} is better than native calls and every syntax of Plaincall.\n",
            figures(arm)
        ),
        _ => String::new(),
    };
    let (Some((arm, best)), Some(settings)) = (recommended(report), settings(report, subject))
    else {
        return text;
    };
    text.push_str(&failures(report, &best.arm));
    if best.correct * 2 < best.attempts {
        text.push_str(
            "\nIt is the best result, but not a good one: this model is weak with tools.\n",
        );
    }
    if best.forgets_end_markers() {
        let _ = writeln!(
            text,
            "\nThe model forgets end markers: {} of its {} calls were rejected for that reason alone.",
            best.unclosed, best.calls
        );
    }
    if arm.has_examples() {
        let _ = writeln!(
            text,
            "\nIt needs few-shot examples of your own tools: `plaincall tools examples` writes a first version."
        );
    }
    let which = if subject.is_reference() {
        ", for the table of a real model"
    } else {
        ""
    };
    let _ = write!(
        text,
        "\nConfiguration for {}{which}:\n\n{}",
        arm.name,
        configuration(settings, subject)
    );
    text
}

/// Returns the arm of the recommended configuration.
fn recommended(report: &Report) -> Option<(Arm, &ArmReport)> {
    let (Verdict::Use { arm, .. } | Verdict::NoDifference { arm }) = &report.verdict else {
        return None;
    };
    Arm::named(arm).zip(report.arm(arm))
}

/// Returns the recommended settings.
pub(super) fn settings(report: &Report, subject: &Subject) -> Option<Model> {
    let (arm, best) = recommended(report)?;
    Some(Model {
        in_reasoning: begins_in_reasoning(report, &best.arm, subject).then_some(true),
        ..dialect(arm, best, subject)
    })
}

fn plaincall_arms(report: &Report) -> impl Iterator<Item = &ArmReport> {
    let is_ours = |arm: &&ArmReport| Arm::named(&arm.arm).is_some_and(|arm| arm.is_plaincall());
    report.arms.iter().filter(is_ours)
}

/// `block (81 of 120 correct, 59 to 75 %)`
fn figures(arm: &ArmReport) -> String {
    format!(
        "{} ({} of {} correct, {} to {} %)",
        arm.arm,
        arm.correct,
        arm.attempts,
        percent(arm.interval.low),
        percent(arm.interval.high)
    )
}

/// The problems of the recommended arm.
fn failures(report: &Report, arm: &str) -> String {
    let own = report.attempts.iter().filter(|attempt| attempt.arm == arm);
    let mut lines: Vec<String> = own
        .filter_map(|attempt| Some(format!("  {}: {}\n", attempt.task, attempt.why.as_ref()?)))
        .collect();
    lines.dedup();
    if lines.is_empty() {
        return String::new();
    }
    let others = lines.len().saturating_sub(FAILURES);
    lines.truncate(FAILURES);
    if others > 0 {
        lines.push(format!("  and {others} more; `--record FILE` keeps all\n"));
    }
    format!("\nFailures with {arm}:\n{}", lines.concat())
}

/// Returns whether most replies begin inside the reasoning: its end has no beginning. In code, it is a subject.
fn begins_in_reasoning(report: &Report, arm: &str, subject: &Subject) -> bool {
    let Some([open, close]) = subject.entry.reasoning() else {
        return false;
    };
    let attempts = report.attempts.iter().filter(|attempt| attempt.arm == arm);
    let entries = attempts.flat_map(|attempt| &attempt.transcript);
    let replies = entries.filter(|entry| entry.author == Author::Model);
    let (mut all, mut unmatched) = (0, 0);
    for reply in replies {
        let before = reply.text.split_once(&close).map(|(before, _)| before);
        let is_unmatched =
            before.is_some_and(|before| !before.contains(&open) && !before.contains('`'));
        all += 1;
        unmatched += u32::from(is_unmatched);
    }
    unmatched * 2 > all
}

/// The settings of the syntax of this arm.
fn dialect(arm: Arm, report: &ArmReport, subject: &Subject) -> Model {
    let syntax = if arm.is_emoji() {
        Syntax::Emoji
    } else {
        Syntax::Block
    };
    let [start, end, argument] = match arm.markers() {
        Some(markers) => markers.map(|marker| Some(marker.to_owned())),
        None => [None, None, None],
    };
    Model {
        syntax: Some(syntax),
        start_prefix: start,
        end_prefix: end,
        arg_prefix: argument,
        // Only the emoji syntax accepts it.
        self_closing: subject
            .entry
            .self_closing
            .filter(|is_on| *is_on && arm.is_emoji()),
        keyed: arm.is_keyed().then_some(true),
        constrain: arm.has_grammar().then(|| {
            let configured = subject.entry.constrain.unwrap_or_default();
            match configured {
                Constrain::Never => Constrain::Auto,
                configured => configured,
            }
        }),
        few_shot: arm.few_shot(),
        unclosed: report
            .forgets_end_markers()
            .then_some(plaincall::reply::Unclosed::Run),
        ..Model::default()
    }
}

/// The model with this dialect, as a table of a configuration, or as the keys for its table.
pub(super) fn configuration(dialect: Model, subject: &Subject) -> String {
    let keys = toml::to_string(&dialect).unwrap_or_default();
    if subject.is_reference() {
        return keys;
    }
    if let Some((name, configured)) = &subject.table {
        return changes(&dialect, name, configured);
    }
    let entry = Model {
        kind: subject.entry.kind.filter(|kind| *kind != Api::OpenAi),
        key_env: subject.entry.key_env.clone(),
        temperature: subject.entry.temperature,
        max_tokens: subject.entry.max_tokens,
        ..dialect
    };
    let entry = toml::to_string(&entry).unwrap_or_default();
    let quoted = |text: &str| toml::Value::from(text).to_string();
    if let Some(FilePath(file)) = &subject.entry.replay {
        let name = file.file_stem().unwrap_or_default().to_string_lossy();
        // A relative path would be relative to the configuration.
        let file = std::path::absolute(file).unwrap_or_else(|_| file.clone());
        let file = quoted(&file.to_string_lossy());
        return format!("[models.{}]\nreplay = {file}\n{entry}", table_name(&name));
    }
    // The address is written here: in a table it has no secrets.
    let url = subject.entry.url.as_ref();
    let url = url.map_or(String::new(), |url| format!("url = {}\n", quoted(&url.0)));
    let (name, id) = (table_name(&subject.id), quoted(&subject.id));
    format!("[models.{name}]\n{url}model = {id}\n{entry}")
}

/// Merges the settings into a configuration file, which keeps its comments and its order.
///
/// # Errors
/// Returns an error if the file cannot be read or written, is not TOML, has another model in this table, or would become an invalid
/// configuration.
pub(super) fn write(file: &Path, dialect: &Model, subject: &Subject) -> Result<(), Failure> {
    let file = fs::canonicalize(file).unwrap_or_else(|_| file.to_owned());
    let name = file.display().to_string();
    let at = |error: &dyn Display| Failure::Runtime(format!("{name}: {error}"));
    let text = match fs::read_to_string(&file) {
        Err(error) if error.kind() == ErrorKind::NotFound => String::new(),
        read => read.map_err(|error| at(&error))?,
    };
    let mut all: DocumentMut = text.parse().map_err(|error| at(&error))?;
    let wanted = match &subject.table {
        Some((name, _)) => format!(
            "[models.{}]\n{}",
            bare(name),
            toml::to_string(dialect).unwrap_or_default()
        ),
        None => configuration(dialect.clone(), subject),
    };
    let wanted: DocumentMut = wanted.parse().map_err(|error| at(&error))?;
    let is_not_a_table = || at(&"`models` is not a table");
    let mut models = Table::new();
    models.set_implicit(true);
    let models = all.entry("models").or_insert(models.into());
    let models = models.as_table_like_mut().ok_or_else(is_not_a_table)?;
    let found = wanted.get("models").and_then(Item::as_table);
    for (name, keys) in found.into_iter().flatten() {
        let keys = keys.as_table().ok_or_else(is_not_a_table)?;
        let entry = models.entry(name).or_insert(Table::new().into());
        let entry = entry.as_table_like_mut().ok_or_else(is_not_a_table)?;
        let differs = |key: &&str| {
            let of =
                |table: &dyn TableLike| table.get(key).and_then(Item::as_str).map(str::to_owned);
            !entry.is_empty() && of(entry) != of(keys)
        };
        if let Some(key) = OF_THE_MODEL
            .iter()
            .find(|key| subject.table.is_none() && differs(key))
        {
            return Err(at(&format_args!(
                "`[models.{name}]` is another model: its `{key}` differs; rename that table, or name another file"
            )));
        }
        for key in OF_ONE_SYNTAX {
            entry.remove(key);
        }
        for (key, value) in keys {
            let mut value = value.clone();
            let present = entry.get(key).and_then(Item::as_value);
            // The comment behind a value stays.
            if let (Some(new), Some(present)) = (value.as_value_mut(), present) {
                *new.decor_mut() = present.decor().clone();
            }
            match entry.get_mut(key) {
                Some(present) => *present = value,
                None => drop(entry.insert(key, value)),
            }
        }
    }
    let text = all.to_string();
    read_settings(&name, &text, None).map_err(|error| at(&error))?;
    let permissions = fs::metadata(&file).map(|about| about.permissions());
    replace(&file, text.as_bytes()).map_err(|error| at(&error))?;
    if let Ok(permissions) = permissions {
        fs::set_permissions(&file, permissions).map_err(|error| at(&error))?;
    }
    print_note(&format!("the settings are in {name}"));
    Ok(())
}

/// Returns the changes of a table that give it this dialect. It names the lines to replace, because a key must not appear twice.
fn changes(dialect: &Model, name: &str, configured: &Model) -> String {
    let table = format!("[models.{}]", bare(name));
    let lines = |model: &Model| toml::Table::try_from(model).unwrap_or_default();
    let (mut wanted, configured) = (lines(dialect), lines(configured));
    let mut replaced = configured.clone();
    replaced.retain(|key, value| match wanted.get(key) {
        Some(wanted) => wanted != value,
        None => OF_ONE_SYNTAX.contains(&key) && *value != toml::Value::Boolean(false),
    });
    wanted.retain(|key, value| configured.get(key) != Some(value));
    match (replaced.is_empty(), wanted.is_empty()) {
        (true, true) => format!("{table} already has these settings.\n"),
        (true, false) => format!("{table}   # add to this table\n{wanted}"),
        (false, true) => format!("Remove these lines from {table}:\n\n{replaced}"),
        (false, false) => {
            format!("In {table}, replace these lines:\n\n{replaced}\nwith these:\n\n{wanted}")
        }
    }
}

/// Returns whether a key of TOML can contain this letter without quotes.
fn is_bare(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || matches!(letter, '-' | '_')
}

/// Returns a name for the table of a model: its id without the characters that would need quotes or are reserved.
fn table_name(id: &str) -> String {
    let parts = id.split(|letter| !is_bare(letter));
    let parts: Vec<&str> = parts.filter(|part| !part.is_empty()).collect();
    let name = parts.join("-");
    if name.is_empty() {
        return "my-model".to_owned();
    }
    // The names of providers are reserved.
    if Model::named(&format!("{name}:id")).is_some() {
        return format!("my-{name}");
    }
    name
}

/// A key of TOML.
fn bare(name: &str) -> String {
    if !name.is_empty() && name.chars().all(is_bare) {
        name.to_owned()
    } else {
        toml::Value::from(name).to_string()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use plaincall_config::settings::{Model, Settings, Syntax, read_settings};
    use plaincall_probe::Reference;

    use super::{changes, configuration};
    use crate::commands::probe::subject::Subject;

    #[test]
    fn a_configured_table_gets_no_key_twice() {
        let emoji = "syntax = \"emoji\"\nself_closing = true\n";
        let angle =
            "syntax = \"block\"\nstart_prefix = \"<<\"\nend_prefix = \">>\"\narg_prefix = \"@:\"\n";
        let block = "syntax = \"block\"\n";
        let keyed = "syntax = \"block\"\nkeyed = true\nunclosed = \"run\"\n";
        for (configured, dialect) in [
            ("", block),
            ("", angle),
            (block, block),
            (block, emoji),
            (block, keyed),
            (emoji, angle),
            (angle, emoji),
            (angle, block),
            (keyed, angle),
            ("unclosed = \"run\"\n", "unclosed = \"reject\"\n"),
        ] {
            let configured = format!("url = \"http://localhost/v1\"\n{configured}");
            let [wanted, table]: [Model; 2] =
                [dialect, &configured].map(|text| toml::from_str(text).unwrap());
            let printed = changes(&wanted, "a b", &table);
            // As a user does it.
            let parts: Vec<&str> = printed.split("\n\n").collect();
            let (removed, added) = match parts.as_slice() {
                ["[models.\"a b\"] already has these settings.\n"] => ("", ""),
                [
                    "In [models.\"a b\"], replace these lines:",
                    removed,
                    "with these:",
                    added,
                ] => (*removed, *added),
                ["Remove these lines from [models.\"a b\"]:", removed] => (*removed, ""),
                [added] => {
                    let (header, keys) = added.split_once('\n').unwrap();
                    assert_eq!(header, "[models.\"a b\"]   # add to this table");
                    ("", keys)
                }
                _ => panic!("{printed}"),
            };
            let mut lines: Vec<&str> = configured.lines().collect();
            for line in removed.lines() {
                let place = lines.iter().position(|it| *it == line);
                lines.remove(place.unwrap_or_else(|| panic!("{line}: {printed}")));
            }
            lines.extend(added.lines());
            let text = format!("[models.\"a b\"]\n{}\n", lines.join("\n"));
            let read = read_settings("changed.toml", &text, None);
            assert!(read.is_ok(), "{printed}{text}");
            let settings: Settings = toml::from_str(&text).unwrap();
            let model = &settings.models["a b"];
            assert_eq!(model.dialect(), wanted.dialect(), "{printed}");
            assert!(wanted.keyed.is_none() || model.keyed == wanted.keyed);
            assert!(wanted.unclosed.is_none() || model.unclosed == wanted.unclosed);
        }
    }

    #[test]
    fn each_printed_table_is_a_valid_configuration() {
        for (name, id, expected) in [
            ("ollama:qwen3:8b", "qwen3:8b", "qwen3-8b"),
            ("openai:gpt-4.1", "gpt-4.1", "gpt-4-1"),
            ("anthropic:claude_x", "claude_x", "claude_x"),
            (
                "ollama:hf.co/a/B:Q4_K_M",
                "hf.co/a/B:Q4_K_M",
                "hf-co-a-B-Q4_K_M",
            ),
            ("ollama:openai", "openai", "my-openai"),
            ("ollama:模型", "模型", "my-model"),
            ("ollama:a\"b\\", "a\"b\\", "a-b"),
        ] {
            let subject = Subject {
                model: Arc::new(Reference::named("block").unwrap()),
                id: id.to_owned(),
                table: None,
                entry: Model::named(name).unwrap(),
                api: "openai",
                grammar_client: None,
                engine: None,
                max_tokens: None,
                seed: None,
            };
            let dialect = Model {
                syntax: Some(Syntax::Emoji),
                ..Model::default()
            };
            let text = configuration(dialect.clone(), &subject);
            let result = read_settings("printed.toml", &text, None);
            assert!(result.is_ok(), "{name}: {text}");
            let settings: Settings = toml::from_str(&text).unwrap();
            let model = &settings.models[expected];
            assert_eq!(model.url, subject.entry.url, "{text}");
            assert_eq!(model.model.as_deref(), Some(id), "{text}");
            assert_eq!(model.kind.unwrap_or_default(), subject.entry.kind.unwrap());
            assert_eq!(model.syntax, dialect.syntax);
        }
    }
}
