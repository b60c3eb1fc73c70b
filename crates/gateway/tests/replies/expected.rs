//! The expected response for a complete text.

use std::collections::HashSet;

use plaincall_call::{Document, ReplyCheck, Stop, ToolSet, Unclosed, openai::openai_calls};
use plaincall_syntax::Dialect;
use plaincall_testkit::strict_client::Recorded;
use serde_json::Value;

/// The arguments of a call, without the reason that follows unreadable ones.
pub(crate) fn without_reason(arguments: &str) -> &str {
    let reason = arguments.rfind(" (Not run: ");
    &arguments[..reason.unwrap_or(arguments.len())]
}

/// The calls that a client sees, in their order: name and arguments, or nothing for one that it cannot read.
pub(crate) fn calls(
    text: &str,
    dialect: &Dialect,
    stop: Stop,
    tools: &ToolSet,
) -> Vec<Option<(String, String)>> {
    let document = Document::parse(text, dialect).unwrap();
    let check = ReplyCheck::new(dialect, Unclosed::Reject).unwrap();
    let found = openai_calls(&document, check, stop, Some(tools));
    let skipped: HashSet<usize> = found.skipped.iter().map(|call| call.index).collect();
    let mut right = found.tool_calls.into_iter();
    let mut ids = HashSet::new();
    let mut seen = Vec::new();
    for call in document.calls() {
        let is_known = |id: &String| *id != call.id && ids.contains(id);
        if call.dependencies.iter().any(is_known) {
            break;
        }
        ids.insert(call.id.clone());
        let found = if skipped.contains(&call.index) {
            None
        } else {
            right.next()
        };
        // Its dependency does not exist.
        let found = found.filter(|_| call.dependencies.is_empty());
        let text = |value: &Value| value.as_str().unwrap().to_owned();
        seen.push(found.map(|call| {
            let function = &call["function"];
            (text(&function["name"]), text(&function["arguments"]))
        }));
    }
    seen
}

/// Checks that a client gets these calls for the model's texts in repair rounds: all calls of the last text up to the
/// first invalid one, and none of the others.
pub(crate) fn check_rounds<'t>(
    recorded: &Recorded,
    texts: impl IntoIterator<Item = &'t str>,
    calls: impl Fn(&str) -> Vec<Option<(String, String)>>,
) {
    let sent = |text| -> Vec<_> { calls(text).into_iter().map_while(|call| call).collect() };
    let mut texts: Vec<&str> = texts.into_iter().collect();
    let last = texts.pop().expect("a round");
    for text in texts {
        assert_eq!(sent(text), [], "{text:?} is repaired");
    }
    let expected = sent(last);
    let found = recorded.calls.iter();
    let found: Vec<(String, String)> = found
        .map(|call| (call.name.clone(), call.arguments.clone()))
        .collect();
    assert_eq!(found, expected, "{last:?}");
    if expected.is_empty() && calls(last).first() == Some(&None) {
        let reason = recorded.finish_reason.as_deref();
        assert!(
            matches!(reason, None | Some("length" | "content_filter")),
            "{last:?}"
        );
    }
}

/// Checks that a client gets these calls for a text whose arguments are streamed.
pub(crate) fn check(recorded: &Recorded, calls: &[Option<(String, String)>], text: &str) {
    let readable = calls.iter().flatten();
    let readable: Vec<(&str, &str)> = readable
        .map(|(name, arguments)| (&**name, &**arguments))
        .collect();
    assert_eq!(recorded.readable(), readable, "{text:?}");
    assert_eq!(recorded.calls.len(), calls.len(), "{text:?}");
}
