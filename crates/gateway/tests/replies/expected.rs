//! The expected response for a text that is streamed: a call is decided when it ends.

use std::collections::HashSet;

use plaincall_reply::{ReplyCheck, ReplyItem, ReplyReader, Stop, Unclosed};
use plaincall_syntax::Dialect;
use plaincall_testkit::strict_client::Recorded;
use plaincall_tool::{Limits, ToolSet};

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
    let check = ReplyCheck::new(dialect, Unclosed::Reject).unwrap();
    let check = check.without_gate();
    let mut reader = ReplyReader::new(dialect, tools, check, Limits::for_reading()).unwrap();
    let items: Vec<ReplyItem<'_>> = reader.feed(text).collect();
    let items = items.into_iter().chain(reader.finish(stop).items);
    let mut ids = HashSet::new();
    let mut seen = Vec::new();
    for item in items {
        let ReplyItem::Call(read) = item else {
            continue;
        };
        let (call, bound) = (&read.call, read.bound());
        let is_known = |id: &String| *id != call.id && ids.contains(id);
        if call.dependencies.iter().any(is_known) {
            break;
        }
        ids.insert(call.id.clone());
        // Its dependency does not exist.
        let bound = bound.ok().filter(|_| call.dependencies.is_empty());
        let arguments = bound.map(|bound| bound.arguments.to_value().to_string());
        seen.push(arguments.map(|arguments| (call.name.clone(), arguments)));
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
