//! Calls as clients receive them: unique ids, and unparsable arguments for invalid calls.

use std::collections::HashSet;

use plaincall_gateway::ModelSettings;
use serde_json::{Value, json};

use crate::replies::model::{plan, recorded, streaming};

/// Returns the ids of the calls in a reply to a conversation that contains these ids.
fn ids(taken: &[String]) -> Vec<String> {
    let calls: Vec<Value> = taken
        .iter()
        .map(|id| json!({"id": id, "type": "function", "function": {"name": "now", "arguments": "{}"}}))
        .collect();
    let messages =
        json!([{"role": "user", "content": "Do it."}, {"role": "assistant", "tool_calls": calls}]);
    let plan = plan(&json!({"messages": messages}), &ModelSettings::default());
    let reply = "!!!GADGET_START:now\n!!!GADGET_END\n".repeat(100);
    let calls = recorded(&plan, &[&reply], "stop").recorded.calls;
    calls.into_iter().map(|call| call.id).collect()
}

#[test]
fn ids_are_fresh() {
    let given = ids(&[]);
    assert_eq!(given.iter().collect::<HashSet<_>>().len(), 100);
    assert_eq!(ids(&given[..50])[..50], given[50..]);
}

/// Returns the brackets of a text, for a client that closes open ones.
fn has_mismatch(text: &str) -> bool {
    let (mut open, mut is_in_string, mut is_escaped) = (Vec::new(), false, false);
    for c in text.chars() {
        if is_in_string {
            is_in_string = c != '"' || is_escaped;
            is_escaped = c == '\\' && !is_escaped;
            continue;
        }
        match c {
            '"' => is_in_string = true,
            '{' => open.push('}'),
            '[' => open.push(']'),
            '}' | ']' if open.pop() != Some(c) => return true,
            _ => {}
        }
    }
    false
}

/// The text of a call may be split anywhere.
#[test]
fn no_truncated_arguments_can_be_closed() {
    let plan = plan(&json!({}), &streaming());
    let header = "!!!GADGET_START:search\n";
    let arguments = "!!!ARG:query\nx\"}\\[{\n]\n!!!ARG:tags/0\na]\"\n!!!ARG:tags/1\nb\n!!!ARG:range/from\n1.5\n!!!ARG:range/to\nnull\n!!!ARG:deep\ntrue\n";
    for cut in 0..=arguments.len() {
        for middle in [0, cut / 2, cut] {
            let (begin, rest) = arguments[..cut].split_at(middle);
            let pieces = [header, begin, rest];
            let calls = recorded(&plan, &pieces, "length").recorded.calls;
            let [call] = &calls[..] else {
                panic!("one call: {calls:?}");
            };
            assert!(has_mismatch(&call.arguments), "{}", call.arguments);
            let read = serde_json::from_str::<Value>(&call.arguments);
            assert!(read.is_err(), "{}", call.arguments);
        }
    }
}
