//! Pointers: the locations of values in the arguments.

use std::borrow::Cow;

pub(crate) use plaincall_names::pointers::{escape, unescape};
use plaincall_syntax::{Section, is_blank};

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pointer<'t> {
    pub text: &'t str,
    pub segments: Vec<Cow<'t, str>>,
    /// Whether each segment is a key regardless of its form; later segments are read by their form.
    pub keys: Vec<bool>,
}

/// The reason why an argument cannot be placed. `Display` writes the fixed texts of `spec/block.md` 7.9.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PointerError {
    pub code: &'static str,
    pub section: Section,
    pub message: String,
}

impl PointerError {
    fn new(code: &'static str, section: Section, message: impl Into<String>) -> Self {
        Self {
            code,
            section,
            message: message.into(),
        }
    }

    pub(crate) fn duplicate(pointer: &str) -> Self {
        let message = format!("Duplicate pointer: {pointer}");
        Self::new("duplicate_pointer", Section::SamePlace, message)
    }

    pub(crate) fn conflict(pointer: &str, why: &str) -> Self {
        let message = format!("Pointer conflict: {pointer} {why}");
        Self::new("pointer_conflict", Section::SamePlace, message)
    }

    pub(crate) fn gap(expected: usize, got: &str) -> Self {
        let message = format!("Array index gap: expected {expected}, got {got}");
        Self::new("array_index_gap", Section::Index, message)
    }

    pub fn invalid_index(segment: &str) -> Self {
        let message = format!("Invalid array index: {segment}");
        Self::new("invalid_array_index", Section::Index, message)
    }

    pub fn value_on_line(pointer: &str) -> Self {
        let message = format!("Value on the pointer line: {pointer}");
        Self::new(
            "value_on_pointer_line",
            Section::ValueOnPointerLine,
            message,
        )
    }

    pub fn value_too_long(pointer: &str) -> Self {
        let message = format!("Value too long: {pointer}");
        Self::new("value_too_long", Section::Limits, message)
    }

    /// Returns `true` if a schema may resolve the error: a segment that looks like an index or contains a blank may be
    /// a key.
    pub fn is_fixable(code: &str) -> bool {
        matches!(
            code,
            "pointer_conflict"
                | "array_index_gap"
                | "invalid_array_index"
                | "value_on_pointer_line"
        )
    }
}

/// Trims a pointer and removes one leading `/`; also returns whether there was one.
pub fn shown(written: &str) -> (&str, bool) {
    let trimmed = written.trim_matches(is_blank);
    match trimmed.strip_prefix('/') {
        Some(rest) => (rest, true),
        None => (trimmed, false),
    }
}

impl<'t> Pointer<'t> {
    fn of(text: &'t str, segments: Vec<Cow<'t, str>>) -> Self {
        Self {
            text,
            segments,
            keys: Vec::new(),
        }
    }

    /// Parses a pointer that [`shown`] has prepared, with the checks of `spec/block.md` 7.6 up to the form of the
    /// segments.
    pub(crate) fn parse(text: &'t str, depth: usize) -> Result<Self, PointerError> {
        if text.contains(is_blank) {
            return Err(PointerError::value_on_line(text));
        }
        let segments = segments(text, depth)?;
        if let Some(segment) = segments.iter().find(|segment| is_bad_index(segment)) {
            return Err(PointerError::invalid_index(segment));
        }
        Ok(Self::of(text, segments))
    }

    pub(crate) fn counts(&self, depth: usize) -> bool {
        let is_key = self.keys.get(depth).is_some_and(|is_key| *is_key);
        !is_key
            && self
                .segments
                .get(depth)
                .is_some_and(|segment| is_index(segment))
    }

    /// Parses a pointer for a lookup; an invalid one leads nowhere.
    pub fn lenient(written: &'t str) -> Self {
        let (text, _) = shown(written);
        Self::of(text, text.split('/').map(unescape).collect())
    }

    pub(crate) fn member(name: &'t str, text: &'t str) -> Self {
        Self::of(text, vec![Cow::Borrowed(name)])
    }

    pub(crate) fn beginning(text: &str, count: usize) -> &str {
        let end = text
            .match_indices('/')
            .nth(count.saturating_sub(1))
            .map_or(text.len(), |(at, _)| at);
        text.get(..end).unwrap_or_default()
    }
}

/// Returns the unescaped segments of a pointer: none empty, at most `depth`.
pub fn segments(text: &str, depth: usize) -> Result<Vec<Cow<'_, str>>, PointerError> {
    if text.split('/').any(str::is_empty) {
        let message = format!("Empty pointer segment: {text}");
        let (code, section) = ("empty_pointer_segment", Section::EmptySegment);
        return Err(PointerError::new(code, section, message));
    }
    if text.split('/').nth(depth).is_some() {
        let message = format!("Pointer too deep: {text}");
        return Err(PointerError::new(
            "pointer_too_deep",
            Section::Limits,
            message,
        ));
    }
    Ok(text.split('/').map(unescape).collect())
}

/// Returns `true` for an index: `0`, or digits without a leading zero.
pub fn is_index(segment: &str) -> bool {
    segment == "0"
        || (!segment.is_empty()
            && !segment.starts_with('0')
            && segment.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Returns `true` for a segment that looks like an index but is invalid: `-1`, `01`.
pub fn is_bad_index(segment: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match segment.strip_prefix('-') {
        Some(rest) => is_digits(rest),
        None => segment.len() > 1 && segment.starts_with('0') && is_digits(segment),
    }
}

/// Returns why a key cannot be written as a pointer, to complete the sentence "the name of a parameter …".
pub fn unusable_key(key: &str) -> Option<&'static str> {
    if key.is_empty() {
        Some("must not be empty")
    } else if key.contains(is_blank) {
        Some(
            "must not contain a space or tab: on a pointer line, the text after it would be a value",
        )
    } else if key.contains(['\n', '\r']) {
        Some("must not contain a line end")
    } else if is_bad_index(key) {
        Some("must not look like a list index")
    } else {
        None
    }
}
