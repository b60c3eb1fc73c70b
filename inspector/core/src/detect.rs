//! Detection of logs, and of the dialect of a reply.

use plaincall_config::DialectOptions;
use plaincall_reply::{Document, ToolCall};
use plaincall_report::log::is_log;
use plaincall_syntax::{Code, Dialect, MarkerUse, Syntax};
use plaincall_tool::definitions::read_tool_definitions;
use serde::Serialize;

/// The detected properties of a text.
#[derive(Serialize)]
pub(crate) struct Detected {
    is_log: bool,
    /// Whether the text is definitions of tools.
    is_tools: bool,
    /// Why a file of JSON that seems to be definitions of tools is not.
    tools_error: Option<String>,
    /// Options with the markers that the text seems to have, if none of its markers is known.
    offer: Option<DialectOptions>,
    dialect: DialectOptions,
    /// The findings, for people.
    found: Vec<String>,
}

/// Detects the dialect. Without reasoning, a reply cannot start inside it.
pub(crate) fn detect(text: &[u8], no_reasoning: bool) -> Detected {
    let tools = tools(text);
    let mut detected = Detected {
        is_log: is_log(text),
        is_tools: matches!(tools, Some(Ok(()))),
        tools_error: tools.and_then(Result::err),
        offer: None,
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
    match document.syntax {
        Some(syntax) => detected.found.push(format!("the {} syntax", syntax.name())),
        None => detected.offer = other_markers(&text, &detected.dialect, no_reasoning),
    }
    detected
}

/// Returns whether the text can be read as definitions of tools, if it looks like them: JSON with a schema, and no calls.
fn tools(text: &[u8]) -> Option<Result<(), String>> {
    const SCHEMAS: [&str; 4] = [
        "\"parameters\"",
        "\"input_schema\"",
        "\"inputSchema\"",
        "\"tools\"",
    ];
    let first = text.trim_ascii_start().first().copied();
    let text = String::from_utf8_lossy(text);
    // A reply is not parsed as JSON if it cannot be.
    if !matches!(first, Some(b'[' | b'{')) {
        return None;
    }
    match read_tool_definitions(&text) {
        Ok(tools) => (!tools.is_empty()).then_some(Ok(())),
        Err(error) => {
            let has_schema = SCHEMAS.iter().any(|key| text.contains(key));
            let document = Document::parse(&text, &Dialect::auto());
            let has_calls = document.is_ok_and(|it| it.calls().next().is_some());
            (has_schema && !has_calls).then(|| Err(error.to_string()))
        }
    }
}

/// Returns the markers of a text whose markers differ from the default in their beginning, such as `@@@GADGET_START:`, if they
/// close a call. They may also be mistakes of the model, so a person decides. All else is as detected.
fn other_markers(
    text: &str,
    detected: &DialectOptions,
    no_reasoning: bool,
) -> Option<DialectOptions> {
    /// The maximum length of the beginning, in characters.
    const LONGEST: usize = 8;
    /// The maximum number of beginnings that are tried.
    const MOST: usize = 4;
    let dialect = Dialect::block();
    let [start, argument, end] = dialect.markers().ok().and_then(|markers| {
        let of = |usage| {
            let found = markers.iter().find(|marker| marker.usage == usage)?;
            Some(found.text.trim_start_matches('!').to_owned())
        };
        Some([
            of(MarkerUse::Start(Syntax::Block))?,
            of(MarkerUse::Argument)?,
            of(MarkerUse::End(Syntax::Block))?,
        ])
    })?;
    let mut beginnings: Vec<&str> = Vec::new();
    for line in text.lines() {
        let Some((beginning, _)) = line.split_once(&start) else {
            continue;
        };
        let is_word = |c: char| c.is_alphanumeric() || c.is_whitespace();
        let is_other = !beginning.is_empty()
            && beginning.chars().count() <= LONGEST
            && !beginning.contains(is_word);
        if is_other && beginnings.len() < MOST && !beginnings.contains(&beginning) {
            beginnings.push(beginning);
        }
    }
    let options = beginnings.into_iter().map(|beginning| DialectOptions {
        start_prefix: Some(format!("{beginning}{start}")),
        arg_prefix: Some(format!("{beginning}{argument}")),
        end_prefix: Some(format!("{beginning}{end}")),
        ..detected.clone()
    });
    options.into_iter().find(|options| {
        let dialect = options.of_reply(no_reasoning);
        let document = dialect.map(|it| Document::parse(text, &it));
        document.is_ok_and(|it| it.is_ok_and(|it| it.calls().any(ToolCall::is_closed)))
    })
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
