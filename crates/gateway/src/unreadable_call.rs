//! The end of the arguments of an invalid call that was sent while the model wrote it (`spec/gateway.md` 5).

use plaincall_reply::{CallError, ToolCall};
use serde_json::Value;

use crate::compiled::CompiledDialect;
use crate::invalid_call_mark::InvalidCallMark;
use crate::key::Secret;

/// An invalid call that the client sent back.
pub(crate) struct UnreadableCall {
    /// The name that the model wrote.
    pub(crate) name: String,
    /// The arguments as they were sent, without the reason.
    pub(crate) arguments: String,
    pub(crate) reason: String,
}

const BEGIN: &str = " (Not run: ";
/// The longest reason, in bytes.
const MAX_REASON: usize = 600;
/// The longest name, in bytes.
const MAX_NAME: usize = 256;
/// The number of characters of the proof that the gateway wrote the reason.
const PROOF: usize = 12;

/// Returns the error of a call in one line without markers, which could contain the key of the conversation.
pub(crate) fn reason(call: &ToolCall, error: &CallError, compiled: &CompiledDialect) -> String {
    let mut text = error.to_string().replace(['\n', '\r'], " ");
    if compiled.escaper.escape(&text) != text {
        let problem = InvalidCallMark::of(call, error).problem();
        text = format!("it {problem}");
    }
    text.truncate(text.floor_char_boundary(MAX_REASON));
    text
}

/// Returns the text that follows the unreadable arguments of a call: its name, the reason and a proof.
pub(crate) fn ending(secret: &Secret, id: &str, name: &str, reason: &str) -> String {
    let name = name.get(..name.floor_char_boundary(MAX_NAME));
    let text = format!("{}: {reason}", name.unwrap_or_default());
    let proof = proof(secret, id, &text);
    format!("{BEGIN}{text}; {proof})")
}

fn proof(secret: &Secret, id: &str, text: &str) -> String {
    let mut word = secret.word(&[b"invalid", id.as_bytes(), text.as_bytes()]);
    word.truncate(PROOF);
    word
}

impl UnreadableCall {
    /// Finds the reason in the arguments of the call with this id, or in a text in them: clients rename such a call, or
    /// wrap its arguments.
    pub(crate) fn find(secret: &Secret, id: &str, arguments: &str) -> Option<Self> {
        if !arguments.contains(BEGIN) {
            return None;
        }
        match serde_json::from_str::<Value>(arguments) {
            Ok(value) => Self::in_value(secret, id, &value),
            Err(_) => Self::in_text(secret, id, arguments),
        }
    }

    fn in_value(secret: &Secret, id: &str, value: &Value) -> Option<Self> {
        match value {
            Value::String(text) => Self::in_text(secret, id, text),
            Value::Array(values) => values
                .iter()
                .find_map(|value| Self::in_value(secret, id, value)),
            Value::Object(fields) => fields
                .values()
                .find_map(|value| Self::in_value(secret, id, value)),
            _ => None,
        }
    }

    fn in_text(secret: &Secret, id: &str, text: &str) -> Option<Self> {
        // Clients quote the arguments once or twice. Arguments of the model may have it too, before the gateway's.
        let found = text.rmatch_indices(BEGIN).take(8);
        found.into_iter().find_map(|(at, _)| {
            let (before, after) = (text.get(..at)?, text.get(at + BEGIN.len()..)?);
            let most = MAX_NAME + MAX_REASON + PROOF + 8;
            let after = after.get(..after.floor_char_boundary(most))?;
            let ends = after.match_indices(')');
            let is_proven = |end: usize| {
                let (text, given) = after.get(..end)?.rsplit_once("; ")?;
                let is_long = given.len() == PROOF;
                (is_long && given == proof(secret, id, text)).then_some(text)
            };
            let text = ends.into_iter().find_map(|(end, _)| is_proven(end))?;
            let (name, reason) = text.split_once(": ")?;
            // Clients quote the arguments after words of their own.
            let begin = before.find('{').unwrap_or_default();
            Some(Self {
                name: name.to_owned(),
                arguments: before.get(begin..)?.to_owned(),
                reason: reason.to_owned(),
            })
        })
    }

    /// Returns the message to the model, in place of the client's error.
    pub(crate) fn message(&self) -> String {
        let reason = self.reason.trim_end_matches('.');
        format!(
            "This call was not run: {reason}. If you still need it, write it again, corrected.\n"
        )
    }
}
