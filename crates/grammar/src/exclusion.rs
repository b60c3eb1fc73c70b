//! The texts that a grammar excludes from prose, values and bodies (`spec/grammar.md` 3).

use plaincall_syntax::{Dialect, DialectError, Syntax};

use crate::near_misses;
use crate::pattern::{Characters, Pattern};

/// The characters that JSON has behind a backslash.
const JSON_ESCAPES: &str = "\"\\/bfnrtu";
/// Excluded everywhere: engines end a text with it.
const NUL: &str = "\0";

/// The texts that another text must not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Exclusion {
    /// Excluded anywhere.
    pub(crate) anywhere: Vec<String>,
    /// Excluded at the beginning of a line. A line end may be part of them.
    pub(crate) line_begins: Vec<Pattern>,
}

impl Exclusion {
    /// The markers of one syntax, and their near misses at the beginning of a line.
    pub(crate) fn of_markers(dialect: &Dialect) -> Result<Self, DialectError> {
        let forms = dialect.without_reasoning().markers()?;
        let texts: Vec<String> = forms.iter().map(|form| form.text.clone()).collect();
        let line_begins = match dialect.syntax() {
            Some(Syntax::Emoji) => near_misses::of_emoji(&texts),
            _ => near_misses::of_block(&texts, dialect.is_escaped()),
        };
        let anywhere = texts.into_iter().chain([NUL.to_owned()]).collect();
        Ok(Self {
            anywhere,
            line_begins,
        })
    }

    /// Excludes more texts.
    pub(crate) fn and(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.anywhere.extend(more);
        self
    }

    /// Excludes more: all that begins with this many characters of what is excluded.
    pub(crate) fn of_begins(&self, length: usize) -> Self {
        let mut all = Self {
            anywhere: Vec::new(),
            line_begins: Vec::new(),
        };
        for text in &self.anywhere {
            let begin: String = text.chars().take(length).collect();
            if !all.anywhere.contains(&begin) {
                all.anywhere.push(begin);
            }
        }
        for pattern in &self.line_begins {
            let (begin, _) = pattern.begin(length);
            if !all.line_begins.contains(&begin) {
                all.line_begins.push(begin);
            }
        }
        all
    }

    /// Excludes these texts only.
    pub(crate) fn of_texts(texts: impl IntoIterator<Item = String>) -> Self {
        Self {
            anywhere: texts.into_iter().chain([NUL.to_owned()]).collect(),
            line_begins: Vec::new(),
        }
    }
}

/// The beginnings of the escapes of markers: all but the last character, and a backslash. There are none in a dialect without
/// escapes.
pub(crate) fn escapes(markers: &[String], dialect: &Dialect) -> Vec<String> {
    let stems = stems(markers, dialect);
    stems.map(|(stem, _)| format!("{stem}\\")).collect()
}

/// The texts that JSON must not contain. In an escaped dialect, JSON's own backslash could be read as an escape.
pub(crate) fn in_json(markers: &[String], dialect: &Dialect) -> Exclusion {
    let escapes = stems(markers, dialect).flat_map(|(stem, last)| {
        let followed = JSON_ESCAPES.contains(last);
        let one = followed.then(|| format!("{stem}\\{last}"));
        [format!("{stem}\\\\")].into_iter().chain(one)
    });
    Exclusion::of_texts(markers.iter().cloned().chain(escapes))
}

/// The markers of an escaped dialect, without their last character, and this character.
fn stems<'m>(markers: &'m [String], dialect: &Dialect) -> impl Iterator<Item = (&'m str, char)> {
    let markers = markers.iter().filter(|_| dialect.is_escaped());
    markers.filter_map(|marker| {
        let (at, last) = marker.char_indices().next_back()?;
        Some((marker.get(..at)?, last))
    })
}

/// An id of a call, of at most 32 characters. Characters with which a marker could begin in a header are skipped.
pub(crate) fn id(markers: &[String]) -> Pattern {
    let all = Characters::of_ascii_words();
    let is_inside = |marker: &&String| marker.chars().all(|one| all.has(one) || ":,".contains(one));
    let begins = markers.iter().filter(is_inside);
    let begins: String = begins.filter_map(|marker| marker.chars().next()).collect();
    Pattern::Characters(all.without(&begins)).repeat(1, Some(32))
}

/// The rest of a block header after the name: an id and dependencies.
pub(crate) fn header(markers: &[String]) -> Pattern {
    let colon = || Pattern::literal(":");
    let more = Pattern::sequence([Pattern::literal(","), id(markers)]).repeat(0, None);
    let dependencies = Pattern::sequence([colon(), id(markers), more]).optional();
    let id = Pattern::sequence([colon(), id(markers), dependencies]).optional();
    Pattern::sequence([id, Pattern::literal("\n")])
}
