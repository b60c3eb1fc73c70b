//! The mark of a reply that ended before an invalid call (`spec/gateway.md` 5).

use plaincall_reply::{CallError, ToolCall};

use crate::key::Secret;

/// The error of the call before which a reply ended. It is encoded in the id of the last sent call, which every client sends
/// back, so that the next request can report it to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidCallMark {
    /// No allowed tool has its name.
    UnknownTool,
    /// Its arguments do not match the tool's schema.
    Arguments,
    /// It is incomplete or malformed.
    Form,
}

/// The number of characters of a mark. They hold 31 bits, which do not occur by chance.
const LENGTH: usize = 6;

impl InvalidCallMark {
    const ALL: [Self; 3] = [Self::UnknownTool, Self::Arguments, Self::Form];

    pub(crate) fn of(call: &ToolCall, error: &CallError) -> Self {
        match error {
            CallError::UnknownTool(_) => Self::UnknownTool,
            CallError::Arguments(_) if call.parse_error.is_none() => Self::Arguments,
            _ => Self::Form,
        }
    }

    /// Returns this id of a call with the mark at its end.
    pub(crate) fn mark(self, secret: &Secret, id: &str) -> String {
        let (begin, _) = split(id).unwrap_or((id, ""));
        begin.to_owned() + self.place(&word(secret, begin))
    }

    /// Finds the mark in the id of a call.
    pub(crate) fn find(secret: &Secret, id: &str) -> Option<Self> {
        let (begin, end) = split(id)?;
        let word = word(secret, begin);
        Self::ALL.into_iter().find(|kind| kind.place(&word) == end)
    }

    fn place(self, word: &str) -> &str {
        let from = LENGTH * self as usize;
        word.get(from..from + LENGTH).unwrap_or_default()
    }

    pub(crate) fn problem(self) -> &'static str {
        match self {
            Self::UnknownTool => "named no available tool",
            Self::Arguments => "had invalid arguments",
            Self::Form => "was incomplete or malformed",
        }
    }

    pub(crate) fn sentence(self) -> String {
        let problem = self.problem();
        format!(
            "\nYour reply was stopped before its next call, which {problem}. That call was not run. If you still need it, write it again, corrected.\n"
        )
    }
}

fn split(id: &str) -> Option<(&str, &str)> {
    id.split_at_checked(id.len().checked_sub(LENGTH)?)
}

/// Returns the marks of all kinds for the beginning of an id, one after another.
fn word(secret: &Secret, begin: &str) -> String {
    secret.word(&[b"cut", begin.as_bytes()])
}
