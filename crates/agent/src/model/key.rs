//! Secrets that go to servers.

use std::fmt;
use std::sync::Arc;

/// The shortest secret that is looked for in texts, in bytes. Shorter ones are words that stand everywhere.
const SHORTEST: usize = 8;
/// Servers quote keys whole, or so much of their beginning.
const BEGINNING: usize = 12;
const CONCEALED: &str = "[key]";

/// A key, or another secret. It goes to the server that it is for and is shown nowhere: not by `Debug`, and not in an
/// error where a server quotes it.
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
    /// A secret. Blanks and line ends around it, as files have them, do not count.
    pub fn new(secret: impl AsRef<str>) -> Self {
        Self(secret.as_ref().trim().into())
    }

    pub(crate) fn secret(&self) -> &str {
        &self.0
    }

    /// The text without the secret, and without a beginning of it.
    pub(crate) fn conceal(&self, text: &str) -> String {
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
            out.push_str(CONCEALED);
            rest = found.get(same..).unwrap_or_default();
        }
        out + rest
    }
}

impl fmt::Debug for Key {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "Key({CONCEALED})")
    }
}

impl<T: AsRef<str>> From<T> for Key {
    fn from(secret: T) -> Self {
        Self::new(secret)
    }
}
