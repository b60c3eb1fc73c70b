//! The results that messages report to a model.

use plaincall_agent::model::{Message, Role};

/// The result of a call, as the model reads it.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) struct ReportedCall {
    pub(crate) name: String,
    pub(crate) id: String,
    pub(crate) status: String,
}

/// Returns all calls that messages of the user report, in order. Fenced text is output.
pub(crate) fn reported(messages: &[Message]) -> Vec<ReportedCall> {
    let mut reported = Vec::new();
    for message in messages {
        let mut fence = None;
        for line in message.text.lines() {
            let is_fence = line.len() >= 3 && line.bytes().all(|byte| byte == b'`');
            match fence {
                None if is_fence => fence = Some(line),
                None if message.role == Role::User => reported.extend(reported_call(line)),
                Some(opened) if opened == line => fence = None,
                _ => {}
            }
        }
    }
    reported
}

/// `Result 1 of 2: tool read, id r, status ok`.
fn reported_call(line: &str) -> Option<ReportedCall> {
    let (_, call) = line.strip_prefix("Result ")?.split_once(": tool ")?;
    let (call, status) = call.rsplit_once(", status ")?;
    let (name, id) = call.split_once(", id ")?;
    Some(ReportedCall {
        name: name.to_owned(),
        id: id.to_owned(),
        status: status.to_owned(),
    })
}

/// Asserts that after the system message user and model take turns, and the last message is the user's.
pub(crate) fn check_turns(messages: &[Message]) {
    let rest = match messages.first() {
        Some(first) if first.role == Role::System => &messages[1..],
        _ => messages,
    };
    for (place, message) in rest.iter().enumerate() {
        let role = [Role::User, Role::Assistant][place % 2];
        assert_eq!(message.role, role, "message {place} of {rest:#?}");
        assert!(
            !message.text.trim().is_empty(),
            "an empty message: {rest:#?}"
        );
    }
    assert_eq!(rest.len() % 2, 1, "the model has the last word: {rest:#?}");
}

/// Returns the texts of the model in the messages.
pub(crate) fn replies(messages: &[Message]) -> Vec<&str> {
    let replies = messages
        .iter()
        .filter(|message| message.role == Role::Assistant);
    replies.map(|message| &*message.text).collect()
}
