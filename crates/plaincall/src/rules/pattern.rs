//! Patterns with wildcards.

use std::fmt;

use serde::{Deserialize, Serialize};

use super::spelling::is_doubtful;

/// A pattern for a whole text (`spec/running.md`, "Rules").
///
/// `*` matches any number of characters except `/`, `**` any number of characters, and `?` one character except `/`. All
/// other characters match themselves; case matters. The time for a match is at most proportional to the length of the text
/// times the length of the pattern.
///
/// ```
/// use plaincall::rules::Pattern;
///
/// let sources = Pattern::new("src/**.rs");
/// assert!(sources.matches("src/deep/inside.rs"));
/// assert!(!sources.matches("src/deep/inside.rs.bak"));
/// assert!(!Pattern::new("src/*").matches("src/deep/inside.rs"));
/// ```
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(from = "String", into = "String")]
pub struct Pattern {
    text: String,
    parts: Vec<Part>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Part {
    /// This character.
    Character(char),
    /// `?`
    One,
    /// `*`
    Many,
    /// `**`
    Any,
}

impl Pattern {
    /// Parses a pattern. Every text is a valid pattern.
    pub fn new(text: impl Into<String>) -> Self {
        let text = text.into();
        let mut parts = Vec::new();
        let mut characters = text.chars().peekable();
        while let Some(character) = characters.next() {
            parts.push(match character {
                '*' if characters.next_if_eq(&'*').is_some() => Part::Any,
                '*' => Part::Many,
                '?' => Part::One,
                other => Part::Character(other),
            });
        }
        Self { text, parts }
    }

    /// Returns the text of the pattern.
    pub fn as_str(&self) -> &str {
        &self.text
    }

    /// Returns whether the pattern matches the whole text.
    pub fn matches(&self, text: &str) -> bool {
        self.matches_from([0], text)
    }

    /// Returns whether the pattern matches the text, or the text in any directory.
    pub(super) fn matches_in_some_folder(&self, text: &str) -> bool {
        // The states of a match after a slash: some directory matches what is before it.
        let behind_slashes = self.parts.iter().enumerate();
        let behind_slashes = behind_slashes.filter_map(|(place, part)| match part {
            Part::Character('/') => Some(place + 1),
            Part::Any => Some(place),
            Part::Character(_) | Part::One | Part::Many => None,
        });
        self.matches_from(std::iter::once(0).chain(behind_slashes), text)
    }

    /// Returns whether the rest of the pattern after one of these places matches the text.
    fn matches_from(&self, places: impl IntoIterator<Item = usize>, text: &str) -> bool {
        let mut now = Places::new(&self.parts);
        let mut next = Places::new(&self.parts);
        for place in places {
            now.add(place);
        }
        for character in text.chars() {
            if now.found.is_empty() {
                return false;
            }
            if now.is_at_an_open_end() {
                return true;
            }
            next.clear();
            for &place in &now.found {
                match self.parts.get(place) {
                    Some(Part::Character(wanted)) if *wanted == character => next.add(place + 1),
                    Some(Part::One) if character != '/' => next.add(place + 1),
                    Some(Part::Many) if character != '/' => next.add(place),
                    Some(Part::Any) => next.add(place),
                    _ => {}
                }
            }
            std::mem::swap(&mut now, &mut next);
        }
        now.holds(self.parts.len())
    }

    /// Returns whether it contains a wildcard. Otherwise it matches exactly one text.
    pub(super) fn has_wildcard(&self) -> bool {
        self.parts
            .iter()
            .any(|part| !matches!(part, Part::Character(_)))
    }

    /// Returns whether it can never match in a rule that allows, because all its matches are doubtful.
    pub(crate) fn allows_nothing(&self) -> bool {
        self.has_wildcard() && is_doubtful(&self.text)
    }
}

impl From<&str> for Pattern {
    fn from(text: &str) -> Self {
        Self::new(text)
    }
}

impl From<String> for Pattern {
    fn from(text: String) -> Self {
        Self::new(text)
    }
}

impl From<Pattern> for String {
    fn from(pattern: Pattern) -> Self {
        pattern.text
    }
}

impl fmt::Display for Pattern {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The current states of a match, all followed at once, so that there is no backtracking.
struct Places<'p> {
    parts: &'p [Part],
    found: Vec<usize>,
    is_found: Vec<bool>,
}

impl<'p> Places<'p> {
    fn new(parts: &'p [Part]) -> Self {
        Self {
            parts,
            found: Vec::new(),
            is_found: vec![false; parts.len() + 1],
        }
    }

    /// Adds a place, and those that are reached from it without another character.
    fn add(&mut self, mut place: usize) {
        while let Some(is_found) = self.is_found.get_mut(place) {
            if std::mem::replace(is_found, true) {
                return;
            }
            self.found.push(place);
            match self.parts.get(place) {
                Some(Part::Many | Part::Any) => place += 1,
                _ => return,
            }
        }
    }

    fn holds(&self, place: usize) -> bool {
        self.is_found.get(place) == Some(&true)
    }

    /// Returns whether any rest of the text matches.
    fn is_at_an_open_end(&self) -> bool {
        self.parts.last() == Some(&Part::Any) && self.holds(self.parts.len() - 1)
    }

    fn clear(&mut self) {
        for place in self.found.drain(..) {
            if let Some(is_found) = self.is_found.get_mut(place) {
                *is_found = false;
            }
        }
    }
}
