//! Detection of logs, and of the dialect of a reply.

use plaincall_call::definitions::read_tool_definitions;
use plaincall_call::{Document, ToolCall};
use plaincall_config::DialectOptions;
use plaincall_report::log::is_log;
use plaincall_syntax::{Code, Dialect, MarkerUse, Syntax};
use serde::Serialize;

/// The detected properties of a text.
#[derive(Serialize)]
pub(crate) struct Detected {
    is_log: bool,
    /// Whether the text is definitions of tools.
    is_tools: bool,
    dialect: DialectOptions,
    /// The findings, for people.
    found: Vec<String>,
}

/// Detects the dialect. Without reasoning, a reply cannot start inside it.
pub(crate) fn detect(text: &[u8], no_reasoning: bool) -> Detected {
    let mut detected = Detected {
        is_log: is_log(text),
        is_tools: is_tools(text),
        dialect: DialectOptions::default(),
        found: Vec::new(),
    };
    if detected.is_log {
        detected.found.push("the log of a run".to_owned());
        return detected;
    }
    let text = String::from_utf8_lossy(text);
    if let Some(key) = key(&text).filter(|key| closes(&text, key)) {
        detected.found.push(format!("markers with the key `{key}`"));
        detected.dialect.key = Some(key);
    }
    let Ok(dialect) = detected.dialect.of_reply(no_reasoning) else {
        return detected;
    };
    if let Some(marker) = escaped_marker(&text, &dialect) {
        detected.found.push(format!("an escaped marker `{marker}`"));
        detected.dialect.escaped = true;
    }
    let Ok(document) = Document::parse(&text, &dialect) else {
        return detected;
    };
    let is_stray = |code: &str| code == Code::StrayReasoningClose.name();
    if !no_reasoning && document.diagnostics.iter().any(|it| is_stray(it.code)) {
        let found = "a text that starts inside reasoning";
        detected.found.push(found.to_owned());
        detected.dialect.in_reasoning = true;
    }
    if let Some(syntax) = document.syntax {
        detected.found.push(format!("the {} syntax", syntax.name()));
    }
    detected
}

fn is_tools(text: &[u8]) -> bool {
    // A reply is not parsed as JSON if it cannot be.
    let is_json = text
        .trim_ascii_start()
        .first()
        .is_some_and(|byte| matches!(byte, b'[' | b'{'));
    let definitions = is_json.then(|| read_tool_definitions(&String::from_utf8_lossy(text)));
    definitions.is_some_and(|read| read.is_ok_and(|tools| !tools.is_empty()))
}

/// Returns the key of the first marker that starts a call and has one, if it closes a call too: a misspelled marker does not.
fn key(text: &str) -> Option<String> {
    // A key that is found in the marker shows where keys are.
    const ANY: &str = "k3y";
    [Dialect::block(), Dialect::emoji()]
        .into_iter()
        .find_map(|dialect| {
            let markers = dialect.keyed(ANY).markers().ok()?;
            let starts = |usage| matches!(usage, MarkerUse::Start(Syntax::Block | Syntax::Emoji));
            markers
                .iter()
                .filter(|marker| starts(marker.usage))
                .find_map(|marker| {
                    let (before, after) = marker.text.split_once(ANY)?;
                    text.match_indices(before).find_map(|(at, _)| {
                        let rest = text.get(at + before.len()..)?;
                        let end = rest.find(|c: char| !c.is_ascii_alphanumeric())?;
                        let key = rest.get(..end)?;
                        let is_key = !key.is_empty() && rest.get(end..)?.starts_with(after);
                        is_key.then(|| key.to_owned())
                    })
                })
        })
}

fn closes(text: &str, key: &str) -> bool {
    let document = Document::parse(text, &Dialect::auto().keyed(key));
    document.is_ok_and(|document| document.calls().any(ToolCall::is_closed))
}

/// Returns a marker with a backslash before its last character, if the text contains one.
fn escaped_marker(text: &str, dialect: &Dialect) -> Option<String> {
    let markers = dialect.markers().ok()?;
    markers
        .iter()
        .filter(|marker| marker.usage != MarkerUse::Reasoning)
        .find_map(|marker| {
            let (last, _) = marker.text.char_indices().next_back()?;
            let (front, back) = marker.text.split_at_checked(last)?;
            let escaped = format!("{front}\\{back}");
            text.contains(&escaped).then_some(escaped)
        })
}
