//! The texts that are generated from `results/`: a page of the documentation, and the defaults by model name.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

use std::fmt::Write as _;
use std::fs;
use std::path::Path;

use plaincall_config::settings::{Model, Syntax};
use plaincall_probe::{ArmReport, SharedResult, Verdict, task_version};

const FOLDER: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/../../results");
const BEGIN: &str = "\
# Measured models

This page is generated from [results/](../results/README.md) by `cargo xtask docs`.

The table shows the share of correct attempts at the tasks of `plaincall probe`, in per cent, with the 95 % confidence interval in
brackets, for the best arm of each form. [local-models.md](local-models.md#does-it-help-your-model) describes the comparison. Arms that
were certainly worse stopped early, so shares with different numbers of attempts cannot be compared, and neither can results with
different tasks.

| model | native | json | block | emoji | verdict | settings |
| --- | --- | --- | --- | --- | --- | --- |
";
const END: &str = "
## Defaults

`ask`, `chat` and `serve` use the best syntax of a model that is in this table by exactly this name, and few-shot examples if they
helped it, unless you set `syntax` or markers in a configuration or by an option. A result becomes a default only if it is complete, has
at least three repetitions, and no other syntax is as good. Figures with a grammar do not count for it, because not every server accepts
one.

";

/// Returns the results with their files, ordered by name.
pub(super) fn results() -> Vec<(String, SharedResult)> {
    let mut paths: Vec<_> = fs::read_dir(FOLDER)
        .unwrap()
        .map(|entry| entry.unwrap().path())
        .filter(|path| path.extension().is_some_and(|ending| ending == "json"))
        .collect();
    paths.sort();
    let read = |path: &Path| {
        let name = path.file_name().unwrap().to_str().unwrap().to_owned();
        let text = fs::read_to_string(path).unwrap();
        let result = SharedResult::read(&text);
        let result = result.unwrap_or_else(|error| panic!("results/{name}: {error}"));
        (name, result)
    };
    paths.iter().map(|path| read(path)).collect()
}

/// Returns a contributor's text for a cell of a table.
fn cell(text: &str) -> String {
    let text = text.replace(['\n', '\r'], " ").replace('|', "\\|");
    text.replace('<', "&lt;").replace('`', "'")
}

/// Returns the page for these results, each with the name of its file.
pub(super) fn page(results: &[(String, SharedResult)]) -> String {
    let mut page = BEGIN.to_owned();
    for (file, result) in results {
        let _ = write!(page, "| [{}](../results/{file}) |", cell(&result.model));
        for form in ["native", "json", "block", "emoji"] {
            let tried = result.arms.iter().filter(|arm| {
                let rest = arm.arm.strip_prefix(form);
                arm.attempts > 0
                    && rest.is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
            });
            // An arm that stopped has a share of easy tasks only.
            let order = |arm: &&ArmReport| (arm.stopped.is_none(), arm.correct);
            let text = tried.max_by_key(order).map_or("-".to_owned(), |arm| {
                let percent = |share: f64| format!("{:.0}", share * 100.0);
                let (low, high) = (percent(arm.interval.low), percent(arm.interval.high));
                let (name, share, attempts) = (&arm.arm, percent(arm.share()), arm.attempts);
                format!("`{name}`: {share} ({low}-{high}) of {attempts}")
            });
            let _ = write!(page, " {text} |");
        }
        let verdict = match &result.verdict {
            Verdict::KeepNative => "keep native".to_owned(),
            Verdict::NoDifference { arm } => format!("no difference between native and {arm}"),
            Verdict::Use { arm, .. } => arm.clone(),
            Verdict::Json { .. } => "keep JSON in the prompt".to_owned(),
            _ => "no task solved with calls".to_owned(),
        };
        let plural = if result.repetitions == 1 { "" } else { "s" };
        let mut settings = format!("{} repetition{plural}", result.repetitions);
        if !result.is_complete {
            settings.push_str(", not complete");
        }
        if result.tasks != task_version() {
            settings.push_str(", older tasks");
        }
        if let Some(engine) = &result.settings.engine {
            let _ = write!(settings, ", grammars of {}", cell(engine));
        }
        if let Some(note) = &result.note {
            let _ = write!(settings, "; {}", cell(note));
        }
        let _ = writeln!(
            page,
            " {verdict} | Plaincall {}, {settings} |",
            result.plaincall
        );
    }
    page.push_str(END);
    for (name, model) in defaults() {
        let name = cell(&name);
        let syntax = match model.syntax {
            Some(Syntax::Emoji) => "emoji",
            _ => "block",
        };
        let keyed = if model.keyed == Some(true) {
            ", keyed"
        } else {
            ""
        };
        let examples = if model.few_shot.is_some() {
            ", few-shot examples"
        } else {
            ""
        };
        let _ = writeln!(page, "- {name}: `{syntax}`{keyed}{examples}");
    }
    if defaults().is_empty() {
        page.push_str("So far, no result is one.\n");
    }
    page
}

/// The defaults by model name. Of several results for a model, the one with the most attempts counts.
fn defaults() -> Vec<(String, Model)> {
    let mut found: Vec<(u32, String, Model)> = Vec::new();
    for (_, result) in results() {
        let Some((best, arm)) = result.default_arm() else {
            continue;
        };
        let [start, end, argument] = match arm.markers() {
            Some(markers) => markers.map(|marker| Some(marker.to_owned())),
            None => [None, None, None],
        };
        let model = Model {
            syntax: Some(if arm.is_emoji() {
                Syntax::Emoji
            } else {
                Syntax::Block
            }),
            start_prefix: start,
            end_prefix: end,
            arg_prefix: argument,
            keyed: arm.is_keyed().then_some(true),
            few_shot: arm.few_shot(),
            ..Model::default()
        };
        let attempts = best.attempts;
        match found.iter_mut().find(|(_, name, _)| *name == result.model) {
            Some(known) if known.0 >= attempts => {}
            Some(known) => *known = (attempts, result.model, model),
            None => found.push((attempts, result.model, model)),
        }
    }
    found.sort_by(|one, other| one.1.cmp(&other.1));
    found
        .into_iter()
        .map(|(_, name, model)| (name, model))
        .collect()
}

pub(super) fn models() -> String {
    let mut text =
        "# Defaults by model name. Generated from results/ by `cargo xtask docs`; do not edit.\n"
            .to_owned();
    for (name, model) in defaults() {
        let table = toml::to_string(&model).unwrap();
        let _ = write!(text, "\n[{}]\n{table}", toml::Value::from(name));
    }
    text
}
