//! Keys and the segments of JSON Pointers.

use std::borrow::Cow;

/// Returns the key of a segment of a pointer: `~1` means `/`, `~0` means `~`; any other `~` stays (`spec/block.md` 7.1).
pub fn unescape(segment: &str) -> Cow<'_, str> {
    if segment.contains('~') {
        Cow::Owned(segment.replace("~1", "/").replace("~0", "~"))
    } else {
        Cow::Borrowed(segment)
    }
}

/// Returns a key as a segment of a pointer.
pub fn escape(key: &str) -> Cow<'_, str> {
    if key.contains(['~', '/']) {
        Cow::Owned(key.replace('~', "~0").replace('/', "~1"))
    } else {
        Cow::Borrowed(key)
    }
}
