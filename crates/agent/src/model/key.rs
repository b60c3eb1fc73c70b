//! Keys and other secrets.

use std::fmt;
use std::sync::Arc;

/// The shortest secret that is redacted, in bytes. Shorter ones occur in ordinary text.
const SHORTEST: usize = 8;
/// Servers quote whole keys, or prefixes of this length.
const BEGINNING: usize = 12;
const REDACTED: &str = "[key]";

/// An API key or another secret. `Debug` does not show it, and it is redacted in error messages that quote it.
///
/// ```
/// use plaincall_agent::model::Key;
///
/// let key = Key::new("sk-1234567890");
/// assert_eq!(format!("{key:?}"), "Key([key])");
/// ```
#[derive(Clone)]
pub struct Key(Arc<str>);

impl Key {
    /// Creates a key. Surrounding whitespace is removed.
    pub fn new(secret: impl AsRef<str>) -> Self {
        Self(secret.as_ref().trim().into())
    }

    pub(crate) fn secret(&self) -> &str {
        &self.0
    }

    /// Redacts the secret and its prefixes in a text.
    pub(crate) fn redact(&self, text: &str) -> String {
        let beginning = self.0.get(..self.0.floor_char_boundary(BEGINNING));
        let beginning = beginning.filter(|_| self.0.len() >= SHORTEST);
        let (mut out, mut rest) = (String::new(), text);
        while let Some(beginning) = beginning
            && let Some((before, _)) = rest.split_once(beginning)
        {
            let found = rest.get(before.len()..).unwrap_or_default();
            let pairs = found.chars().zip(self.0.chars());
            let same = pairs.take_while(|(one, other)| one == other);
            let same: usize = same.map(|(one, _)| one.len_utf8()).sum();
            out.push_str(before);
            out.push_str(REDACTED);
            rest = found.get(same..).unwrap_or_default();
        }
        out + rest
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key({REDACTED})")
    }
}

impl<T: AsRef<str>> From<T> for Key {
    fn from(secret: T) -> Self {
        Self::new(secret)
    }
}
