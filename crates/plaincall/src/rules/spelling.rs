//! How surely a text fits a pattern, if the same thing can be written in several ways.
//!
//! A rule that allows must be sure: what could mean something else than it seems to does not fit. A rule that denies must
//! not be dodged by another spelling: whatever could mean something that fits does fit.

use std::borrow::Cow;

use super::pattern::Pattern;

/// How surely something fits, the less sure first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// It does not, however it is read.
    No,
    /// It may: read in some way it does.
    Perhaps,
    /// It does.
    Yes,
}

/// How surely a text fits.
pub(super) fn fit(pattern: &Pattern, text: &str) -> Fit {
    let matches = pattern.matches(text);
    if matches && !(pattern.has_wildcard() && is_doubtful(text)) {
        Fit::Yes
    } else if matches || fits_otherwise(pattern, text) {
        Fit::Perhaps
    } else {
        Fit::No
    }
}

/// Whether a text may mean another path than it seems to.
pub(super) fn is_doubtful(text: &str) -> bool {
    text.contains(|c: char| c == '\\' || c.is_control())
        || text
            .split('/')
            .any(|segment| segment == "." || segment == "..")
        || encoded(text)
            .any(|byte| matches!(byte, b'.' | b'/' | b'\\' | b'%') || byte.is_ascii_control())
}

/// The bytes that are written as in an address, `%2e` for a point.
fn encoded(text: &str) -> impl Iterator<Item = u8> {
    text.split('%').skip(1).filter_map(leading_byte)
}

/// The byte that two digits at the beginning stand for.
fn leading_byte(text: &str) -> Option<u8> {
    let digits = text.get(..2)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| is_number)
}

/// The text with the characters that are written as in an address.
fn decoded(text: &str) -> String {
    let mut parts = text.split('%');
    let mut bytes = Vec::from(parts.next().unwrap_or_default());
    for part in parts {
        if let (Some(byte), Some(rest)) = (leading_byte(part), part.get(2..)) {
            bytes.push(byte);
            bytes.extend_from_slice(rest.as_bytes());
        } else {
            bytes.push(b'%');
            bytes.extend_from_slice(part.as_bytes());
        }
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

/// Whether the text fits if it is read as a program might read it.
fn fits_otherwise(pattern: &Pattern, text: &str) -> bool {
    let plain_pattern = without_empty_segments(pattern);
    readings(text)
        .iter()
        .any(|reading| pattern.matches(reading) || fits_as_path(&plain_pattern, reading))
}

/// How often a text is taken for one that was written as in an address, and once more for what comes out.
const DECODINGS: usize = 3;

/// The text as it may arrive behind a program that reads it as an address, drops control characters, ends at one, trims
/// blanks, or takes a backslash for a slash or for nothing.
fn readings(text: &str) -> Vec<Cow<'_, str>> {
    let mut found = vec![Cow::Borrowed(text)];
    for _ in 0..DECODINGS {
        let last = found.last().filter(|last| encoded(last).next().is_some());
        let Some(next) = last.map(|last| decoded(last)) else {
            break;
        };
        found.push(Cow::Owned(next));
    }
    each_reading(&mut found, |text| {
        let (before, _) = text.split_once(|c: char| c.is_control())?;
        let without = text.replace(|c: char| c.is_control(), "");
        Some([before.to_owned(), without])
    });
    for reading in &mut found {
        if reading.trim().len() < reading.len() {
            *reading = Cow::Owned(reading.trim().to_owned());
        }
    }
    each_reading(&mut found, |text| {
        let has_backslash = text.contains('\\');
        has_backslash.then(|| [text.replace('\\', "/"), text.replace('\\', "")])
    });
    found
}

/// Adds what else each of them may be.
fn each_reading(found: &mut Vec<Cow<'_, str>>, other: impl Fn(&str) -> Option<[String; 2]>) {
    let more: Vec<[String; 2]> = found.iter().filter_map(|reading| other(reading)).collect();
    found.extend(more.into_iter().flatten().map(Cow::Owned));
}

fn fits_as_path(plain_pattern: &Pattern, text: &str) -> bool {
    let path = Path::of(text);
    let folder = format!("{}/", path.text);
    [&path.text, &folder].into_iter().any(|text| {
        if path.climbs {
            plain_pattern.matches_in_some_folder(text)
        } else {
            plain_pattern.matches(text)
        }
    })
}

/// A path without empty segments, `.` and `..`, and without a slash at its end.
struct Path {
    /// Whether it leads up from where it begins, which nobody knows here: what is left may lie in any folder.
    climbs: bool,
    text: String,
}

impl Path {
    fn of(text: &str) -> Self {
        let is_absolute = text.starts_with('/');
        let mut climbs = false;
        let mut segments: Vec<&str> = Vec::new();
        for segment in text.split('/') {
            match segment {
                "" | "." => {}
                ".." => {
                    // There is nothing above the root.
                    climbs |= segments.pop().is_none() && !is_absolute;
                }
                other => segments.push(other),
            }
        }
        let root = if is_absolute { "/" } else { "" };
        Self {
            climbs,
            text: format!("{root}{}", segments.join("/")),
        }
    }
}

/// The pattern as it has to be for paths that are written in the shortest way.
fn without_empty_segments(pattern: &Pattern) -> Pattern {
    let text = pattern.as_str();
    let root = if text.starts_with('/') { "/" } else { "" };
    let segments: Vec<&str> = text
        .split('/')
        .filter(|segment| !matches!(*segment, "" | "."))
        .collect();
    Pattern::new(format!("{root}{}", segments.join("/")))
}
