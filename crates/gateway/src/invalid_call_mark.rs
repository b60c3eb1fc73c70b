//! The mark of a reply that ended before an invalid call (`spec/gateway.md` 5).

use crate::key::Secret;

/// The error of the call before which a reply ended. It is encoded as whitespace after the arguments of the last sent call, which
/// JSON ignores, so that the next request can report it to the model.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum InvalidCallMark {
    /// No allowed tool has its name.
    UnknownTool,
    /// Its arguments do not match the tool's schema.
    Arguments,
    /// It is incomplete or malformed.
    Form,
}

/// The number of characters of a mark. They hold 24 bits, which do not occur by chance.
const LENGTH: usize = 12;
const BLANKS: [char; 4] = [' ', '\t', '\n', '\r'];

impl InvalidCallMark {
    const ALL: [Self; 3] = [Self::UnknownTool, Self::Arguments, Self::Form];

    pub(crate) fn mark(self, secret: &Secret, id: &str) -> String {
        let digest = secret.digest(&[b"cut", id.as_bytes(), &[self as u8]]);
        let blank = |byte: &u8| BLANKS.get(usize::from(byte & 3)).copied().unwrap_or(' ');
        digest.iter().take(LENGTH).map(blank).collect()
    }

    /// Finds the mark at the end of these arguments of the call with this id.
    pub(crate) fn find(secret: &Secret, id: &str, arguments: &str) -> Option<Self> {
        let begin = arguments.len().checked_sub(LENGTH)?;
        let end = arguments
            .get(begin..)
            .filter(|end| end.chars().all(|c| BLANKS.contains(&c)))?;
        Self::ALL
            .into_iter()
            .find(|kind| kind.mark(secret, id) == end)
    }

    pub(crate) fn sentence(self) -> String {
        let problem = match self {
            Self::UnknownTool => "which named no available tool",
            Self::Arguments => "which had invalid arguments",
            Self::Form => "which was incomplete or malformed",
        };
        format!(
            "\nYour reply was stopped before its next call, {problem}. That call was not executed. If you still need it, write it again, corrected.\n"
        )
    }
}
