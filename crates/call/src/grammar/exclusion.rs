//! The texts that a grammar excludes from prose, values and bodies (`spec/grammar.md` 3).

use plaincall_syntax::{Dialect, DialectError, Syntax};

use super::near_misses;
use super::pattern::{Characters, Pattern};

/// Excluded everywhere: engines end a text with it.
const NUL: &str = "\0";

/// The texts that another text must not contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Exclusion {
    /// Excluded anywhere.
    pub(super) anywhere: Vec<String>,
    /// Excluded at the beginning of a line. A line end may be part of them.
    pub(super) line_begins: Vec<Pattern>,
}

impl Exclusion {
    /// The markers of one syntax, and their near misses at the beginning of a line.
    pub(super) fn of_markers(dialect: &Dialect) -> Result<Self, DialectError> {
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
    pub(super) fn and(mut self, more: impl IntoIterator<Item = String>) -> Self {
        self.anywhere.extend(more);
        self
    }

    /// Excludes these texts only.
    pub(super) fn of_texts(texts: impl IntoIterator<Item = String>) -> Self {
        Self {
            anywhere: texts.into_iter().chain([NUL.to_owned()]).collect(),
            line_begins: Vec::new(),
        }
    }
}

/// An id of a call, of at most 32 characters. Characters with which a marker could begin in a header are skipped.
pub(super) fn id(markers: &[String]) -> Pattern {
    let all = Characters::of_words().and(&Characters::of_ranges([(0, 0x7F)]));
    let is_inside = |marker: &&String| marker.chars().all(|one| all.has(one) || ":,".contains(one));
    let begins = markers.iter().filter(is_inside);
    let begins: String = begins.filter_map(|marker| marker.chars().next()).collect();
    Pattern::Characters(all.without(&begins)).repeat(1, Some(32))
}

/// The rest of a block header after the name: an id and dependencies.
pub(super) fn header(markers: &[String]) -> Pattern {
    let colon = || Pattern::literal(":");
    let more = Pattern::sequence([Pattern::literal(","), id(markers)]).repeat(0, None);
    let dependencies = Pattern::sequence([colon(), id(markers), more]).optional();
    let id = Pattern::sequence([colon(), id(markers), dependencies]).optional();
    Pattern::sequence([id, Pattern::literal("\n")])
}
