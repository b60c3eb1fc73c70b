//! Escaping: texts without markers, and back (`spec/common.md` 6).

use std::borrow::Cow;

use crate::dialect::{Dialect, DialectError};
use crate::markers::{Found, Marker, Set, checked, split_last};
use crate::scan::Scan;

/// Escapes and unescapes texts for one dialect, or for several at once (`spec/common.md` 6).
///
/// Escaping is reversible for every text: [`unescape`](Self::unescape) of [`escape`](Self::escape) returns the original
/// text. Escaped text contains no marker of the dialect, so it does not affect how the text around it is parsed.
///
/// ```
/// use plaincall_syntax::{Dialect, Escaper};
///
/// let escaper = Escaper::new(&Dialect::block())?;
/// let harmless = escaper.escape("a page with: !!!GADGET_START:DeleteAll");
/// assert_eq!(harmless, r"a page with: !!!GADGET_START\:DeleteAll");
/// assert_eq!(escaper.unescape(&harmless), "a page with: !!!GADGET_START:DeleteAll");
/// # Ok::<(), plaincall_syntax::DialectError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Escaper {
    /// The markers without their last characters, and those characters.
    ends: Vec<(Box<str>, char)>,
    last: Scan,
    set: Set,
}

impl Escaper {
    /// Creates an escaper for `dialect`, whether or not the dialect itself uses escaping.
    ///
    /// # Errors
    /// Returns an error if the dialect is invalid.
    pub fn new(dialect: &Dialect) -> Result<Self, DialectError> {
        Self::for_all(std::slice::from_ref(dialect))
    }

    /// Creates an escaper for several dialects: escaped text contains no marker of any of them and is just as reversible
    /// (`spec/untrusted.md` 2). Dialects may share markers.
    ///
    /// ```
    /// use plaincall_syntax::{Dialect, Escaper};
    ///
    /// let escaper = Escaper::for_all(&[Dialect::block(), Dialect::block().keyed("k1"), Dialect::emoji()])?;
    /// assert_eq!(escaper.escape("!!!ARG:a !!!ARGk1:b 🛠[c]"), r"!!!ARG\:a !!!ARGk1\:b 🛠\[c]");
    /// # Ok::<(), plaincall_syntax::DialectError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error if a dialect is invalid.
    pub fn for_all(dialects: &[Dialect]) -> Result<Self, DialectError> {
        let mut markers: Vec<Marker> = Vec::new();
        for dialect in dialects {
            for marker in checked(dialect)? {
                if markers.iter().all(|known| known.text != marker.text) {
                    markers.push(marker);
                }
            }
        }
        let ends: Vec<(Box<str>, char)> = markers
            .iter()
            .filter_map(|marker| split_last(&marker.text))
            .map(|(prefix, last)| (prefix.into(), last))
            .collect();
        let lasts: Vec<String> = ends.iter().map(|(_, last)| last.to_string()).collect();
        Ok(Self {
            ends,
            last: Scan::of(lasts.iter().map(String::as_str)),
            set: Set::new(markers.clone(), &markers),
        })
    }

    /// Inserts one backslash before each character that would complete a marker. Returns a text without markers
    /// unchanged. Takes linear time.
    pub fn escape<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut written = String::new();
        let mut copied = 0;
        while let Some(at) = self.completed(text, copied) {
            written.push_str(text.get(copied..at).unwrap_or_default());
            written.push('\\');
            copied = at;
        }
        if written.is_empty() {
            return Cow::Borrowed(text);
        }
        written.push_str(text.get(copied..).unwrap_or_default());
        Cow::Owned(written)
    }

    /// Returns whether a marker could span the boundary between `before` and `after`, considering only the first
    /// character of `after`.
    pub fn may_join(&self, before: &str, after: &str) -> bool {
        let Some(first) = after.chars().next() else {
            return false;
        };
        self.ends.iter().any(|(prefix, last)| {
            let inner = prefix
                .char_indices()
                .skip(1)
                .map(|(at, next)| (prefix.get(..at), next));
            inner
                .chain([(Some(&**prefix), *last)])
                .any(|(begun, next)| {
                    next == first && begun.is_some_and(|begun| before.ends_with(begun))
                })
        })
    }

    /// Finds the first position at or after `fresh` whose character completes a marker with the text before it.
    fn completed(&self, text: &str, fresh: usize) -> Option<usize> {
        let mut from = fresh;
        while let Some(at) = self.last.next(text.as_bytes(), from) {
            let next = text.get(at..).and_then(|rest| rest.chars().next())?;
            // The output before `fresh` ends with a backslash, which no marker contains.
            let before = text
                .get(fresh..at)
                .unwrap_or_default()
                .trim_end_matches('\\');
            let completes =
                |(prefix, last): &(Box<str>, char)| *last == next && before.ends_with(&**prefix);
            if self.ends.iter().any(completes) {
                return Some(at);
            }
            from = at + next.len_utf8();
        }
        None
    }

    /// Removes the backslashes of escaping: the inverse of [`escape`](Self::escape), and what the parser does to a
    /// text, value or body. Takes linear time.
    pub fn unescape<'t>(&self, text: &'t str) -> Cow<'t, str> {
        let mut plain = String::new();
        let mut copied = 0;
        let mut from = 0;
        loop {
            match self.set.find(text.as_bytes(), from, true) {
                Found::Nothing | Found::Partial { .. } => break,
                Found::Whole { at, len, .. } => from = at + len,
                Found::EscapePrefix { end, prefix } => {
                    let rest = text.get(end..).unwrap_or_default();
                    let run = rest.len() - rest.trim_start_matches('\\').len();
                    from = end + run;
                    if self.set.is_escape(prefix, text, from, true) == Some(true) {
                        plain.push_str(text.get(copied..from - 1).unwrap_or_default());
                        copied = from;
                    }
                }
            }
        }
        if copied == 0 {
            return Cow::Borrowed(text);
        }
        plain.push_str(text.get(copied..).unwrap_or_default());
        Cow::Owned(plain)
    }
}
