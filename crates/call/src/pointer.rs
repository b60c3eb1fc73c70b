//! Pointers: where in the arguments a value goes.

use std::borrow::Cow;

use plaincall_syntax::{Section, is_blank};

/// A pointer that is well formed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Pointer<'t> {
    /// As written, trimmed, without a leading `/`.
    pub(crate) text: &'t str,
    pub(crate) segments: Vec<Cow<'t, str>>,
    /// Which segments are keys whatever they look like; those behind the last are what they look like.
    pub(crate) keys: Vec<bool>,
}

/// Why an argument cannot be placed; `Display` gives the fixed texts of `spec/block.md` 7.9.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct PointerError {
    pub(crate) code: &'static str,
    pub(crate) section: Section,
    pub(crate) message: String,
}

impl PointerError {
    fn new(code: &'static str, section: Section, message: String) -> Self {
        Self {
            code,
            section,
            message,
        }
    }

    pub(crate) fn duplicate(pointer: &str) -> Self {
        Self::new(
            "duplicate_pointer",
            Section::SamePlace,
            format!("Duplicate pointer: {pointer}"),
        )
    }

    pub(crate) fn through_value(pointer: &str, value: &str) -> Self {
        let message = format!("Pointer conflict: {pointer} passes through the value {value}");
        Self::new("pointer_conflict", Section::SamePlace, message)
    }

    pub(crate) fn holds_others(pointer: &str) -> Self {
        let message = format!("Pointer conflict: {pointer} already holds other arguments");
        Self::new("pointer_conflict", Section::SamePlace, message)
    }

    pub(crate) fn gap(expected: usize, got: &str) -> Self {
        let message = format!("Array index gap: expected {expected}, got {got}");
        Self::new("array_index_gap", Section::Index, message)
    }

    pub(crate) fn invalid_index(segment: &str) -> Self {
        Self::new(
            "invalid_array_index",
            Section::Index,
            format!("Invalid array index: {segment}"),
        )
    }

    fn empty_segment(pointer: &str) -> Self {
        Self::new(
            "empty_pointer_segment",
            Section::EmptySegment,
            format!("Empty pointer segment: {pointer}"),
        )
    }

    pub(crate) fn value_on_line(pointer: &str) -> Self {
        Self::new(
            "value_on_pointer_line",
            Section::ValueOnPointerLine,
            format!("Value on the pointer line: {pointer}"),
        )
    }

    /// Whether a schema may say otherwise: that a segment is a key, though it looks like an index or holds a blank.
    pub(crate) fn may_be_mended(&self) -> bool {
        Self::is_mendable(self.code)
    }

    pub(crate) fn is_mendable(code: &str) -> bool {
        matches!(
            code,
            "pointer_conflict"
                | "array_index_gap"
                | "invalid_array_index"
                | "value_on_pointer_line"
        )
    }

    pub(crate) fn value_too_long(pointer: &str) -> Self {
        Self::new(
            "value_too_long",
            Section::Limits,
            format!("Value too long: {pointer}"),
        )
    }

    fn too_deep(pointer: &str) -> Self {
        Self::new(
            "pointer_too_deep",
            Section::Limits,
            format!("Pointer too deep: {pointer}"),
        )
    }
}

/// Trims a pointer and drops one leading `/`; says whether there was one.
pub(crate) fn shown(written: &str) -> (&str, bool) {
    let trimmed = written.trim_matches(is_blank);
    match trimmed.strip_prefix('/') {
        Some(rest) => (rest, true),
        None => (trimmed, false),
    }
}

impl<'t> Pointer<'t> {
    /// Reads a pointer that [`shown`] has prepared, with the checks of `spec/block.md` 7.6 up to the form of the
    /// segments.
    pub(crate) fn parse(text: &'t str, depth: usize) -> Result<Self, PointerError> {
        if text.contains(is_blank) {
            return Err(PointerError::value_on_line(text));
        }
        let segments = segments(text, depth)?;
        if let Some(segment) = segments.iter().find(|segment| is_bad_index(segment)) {
            return Err(PointerError::invalid_index(segment));
        }
        let keys = Vec::new();
        Ok(Self {
            text,
            segments,
            keys,
        })
    }

    /// Whether the segment at a depth counts items.
    pub(crate) fn counts(&self, depth: usize) -> bool {
        let is_key = self.keys.get(depth).is_some_and(|is_key| *is_key);
        !is_key
            && self
                .segments
                .get(depth)
                .is_some_and(|segment| is_index(segment))
    }

    /// Reads a pointer to look something up; a wrong one leads nowhere.
    pub(crate) fn lenient(written: &'t str) -> Self {
        let (text, _) = shown(written);
        let segments = text.split('/').map(unescape).collect();
        let keys = Vec::new();
        Self {
            text,
            segments,
            keys,
        }
    }

    /// The pointer to a member of the root.
    pub(crate) fn member(name: &'t str, text: &'t str) -> Self {
        let segments = vec![Cow::Borrowed(name)];
        let keys = Vec::new();
        Self {
            text,
            segments,
            keys,
        }
    }

    /// The beginning of the text that holds the first `count` segments.
    pub(crate) fn beginning(text: &str, count: usize) -> &str {
        let end = text
            .match_indices('/')
            .nth(count.saturating_sub(1))
            .map_or(text.len(), |(at, _)| at);
        text.get(..end).unwrap_or_default()
    }
}

/// The segments of a pointer, unescaped: none of them empty, and no more than `depth`.
pub(crate) fn segments(text: &str, depth: usize) -> Result<Vec<Cow<'_, str>>, PointerError> {
    if text.split('/').any(str::is_empty) {
        return Err(PointerError::empty_segment(text));
    }
    if text.split('/').nth(depth).is_some() {
        return Err(PointerError::too_deep(text));
    }
    Ok(text.split('/').map(unescape).collect())
}

/// Whether a segment counts items: `0`, or digits without a leading zero.
pub(crate) fn is_index(segment: &str) -> bool {
    segment == "0"
        || (!segment.is_empty()
            && !segment.starts_with('0')
            && segment.bytes().all(|byte| byte.is_ascii_digit()))
}

/// Whether a segment looks like an index but is none: `-1`, `01`.
pub(crate) fn is_bad_index(segment: &str) -> bool {
    let is_digits = |text: &str| !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    match segment.strip_prefix('-') {
        Some(rest) => is_digits(rest),
        None => segment.len() > 1 && segment.starts_with('0') && is_digits(segment),
    }
}

/// `~1` is `/`, then `~0` is `~`; any other `~` is itself.
pub(crate) fn unescape(segment: &str) -> Cow<'_, str> {
    if segment.contains('~') {
        Cow::Owned(segment.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(segment)
    }
}

/// The other direction of [`unescape`].
pub(crate) fn escape(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) {
        Cow::Owned(key.replace('~', "~0").replace('/', "~1"))
    } else {
        Cow::Borrowed(key)
    }
}
