//! Matching of values that can be written in several ways.
//!
//! A text that could mean something else does not match a rule that allows. A text that could mean a matching value matches
//! a rule that denies.

use std::borrow::Cow;

use super::pattern::Pattern;

const WINDOWS: &str = "windows";

/// The certainty of a match, in ascending order.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum Fit {
    /// No interpretation matches.
    No,
    /// Some interpretation matches.
    Perhaps,
    /// It certainly matches.
    Yes,
}

pub(super) fn fit(pattern: &Pattern, text: &str) -> Fit {
    fit_on(std::env::consts::OS, pattern, text)
}

/// Matches on a system, which may take several names for one file.
fn fit_on(system: &str, pattern: &Pattern, text: &str) -> Fit {
    let matches = pattern.matches(text);
    let may_lead_elsewhere =
        || is_doubtful(text) || system == WINDOWS && is_doubtful(&on_windows(text));
    if matches && !(pattern.has_wildcard() && may_lead_elsewhere()) {
        Fit::Yes
    } else if matches || matches_otherwise(system, pattern, text) {
        Fit::Perhaps
    } else {
        Fit::No
    }
}

/// Returns whether a text may mean another path than it appears to.
pub(super) fn is_doubtful(text: &str) -> bool {
    text.contains(|c: char| c == '\\' || c.is_control())
        || text
            .split('/')
            .any(|segment| segment == "." || segment == "..")
        || encoded(text)
            .any(|byte| matches!(byte, b'.' | b'/' | b'\\' | b'%') || byte.is_ascii_control())
}

/// Returns the percent-encoded bytes, such as `%2e`.
fn encoded(text: &str) -> impl Iterator<Item = u8> {
    text.split('%').skip(1).filter_map(leading_byte)
}

/// Decodes two hexadecimal digits at the beginning.
fn leading_byte(text: &str) -> Option<u8> {
    let digits = text.get(..2)?;
    let is_number = digits.bytes().all(|byte| byte.is_ascii_hexdigit());
    u8::from_str_radix(digits, 16).ok().filter(|_| is_number)
}

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

/// Returns whether the pattern matches another interpretation of the text.
fn matches_otherwise(system: &str, pattern: &Pattern, text: &str) -> bool {
    let mut patterns = vec![Cow::Borrowed(pattern.as_str())];
    let mut texts = interpretations(text);
    if system == WINDOWS {
        patterns.push(without_drive(pattern.as_str()).into());
        let others: Vec<String> = texts.iter().map(|text| on_windows(text)).collect();
        texts.extend(others.into_iter().map(Cow::Owned));
    }
    patterns.iter().any(|pattern| {
        let pattern = Pattern::new(in_one_case(system, pattern));
        let plain_pattern = without_empty_segments(&pattern);
        let mut texts = texts.iter().map(|text| in_one_case(system, text));
        texts.any(|text| pattern.matches(&text) || matches_as_path(&plain_pattern, &text))
    })
}

/// Returns a text in capitals, each for one letter, if the system ignores the case of names.
fn in_one_case<'t>(system: &str, text: &'t str) -> Cow<'t, str> {
    if !matches!(system, WINDOWS | "macos") {
        return text.into();
    }
    let capital = |letter: char| {
        let mut capitals = letter.to_uppercase();
        capitals.next().filter(|_| capitals.len() == 0)
    };
    let letters = text.chars();
    letters
        .map(|letter| capital(letter).unwrap_or(letter))
        .collect()
}

/// Returns a path with slashes and without its drive. From the current directory of a drive it may lead anywhere.
fn without_drive(path: &str) -> String {
    let path = path.replace('\\', "/");
    let devices = ["//?/", "//./"];
    let on_device = devices.iter().find_map(|device| path.strip_prefix(device));
    let path = on_device.unwrap_or(&path);
    match (path.as_bytes(), path.get(2..)) {
        ([letter, b':', b'/', ..], Some(path)) if letter.is_ascii_alphabetic() => path.to_owned(),
        ([letter, b':', ..], Some(path)) if letter.is_ascii_alphabetic() => format!("../{path}"),
        _ => path.to_owned(),
    }
}

/// Returns a path as Windows reads it: also without streams, and without dots and spaces at the ends of names.
fn on_windows(path: &str) -> String {
    let path = without_drive(path);
    let names = path.split('/').map(|name| {
        let name = name.split(':').next().unwrap_or_default();
        let short = name.trim_end_matches(['.', ' ']);
        let is_parent = short.is_empty() && name.starts_with("..");
        if is_parent { ".." } else { short }
    });
    names.collect::<Vec<&str>>().join("/")
}

/// How many times a text is percent-decoded.
const DECODINGS: usize = 3;

/// Returns the text as other programs may interpret it: percent-decoded, without control characters, truncated at one,
/// trimmed, or with backslashes as slashes or removed.
fn interpretations(text: &str) -> Vec<Cow<'_, str>> {
    let mut found = vec![Cow::Borrowed(text)];
    for _ in 0..DECODINGS {
        let last = found.last().filter(|last| encoded(last).next().is_some());
        let Some(next) = last.map(|last| decoded(last)) else {
            break;
        };
        found.push(Cow::Owned(next));
    }
    add_each(&mut found, |text| {
        let (before, _) = text.split_once(|c: char| c.is_control())?;
        let without = text.replace(|c: char| c.is_control(), "");
        Some([before.to_owned(), without])
    });
    for text in &mut found {
        if text.trim().len() < text.len() {
            *text = Cow::Owned(text.trim().to_owned());
        }
    }
    add_each(&mut found, |text| {
        let has_backslash = text.contains('\\');
        has_backslash.then(|| [text.replace('\\', "/"), text.replace('\\', "")])
    });
    found
}

/// Adds the other interpretations of each text.
fn add_each(found: &mut Vec<Cow<'_, str>>, other: impl Fn(&str) -> Option<[String; 2]>) {
    let more: Vec<[String; 2]> = found.iter().filter_map(|text| other(text)).collect();
    found.extend(more.into_iter().flatten().map(Cow::Owned));
}

fn matches_as_path(plain_pattern: &Pattern, text: &str) -> bool {
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

/// A path without empty segments, `.`, `..` and a trailing slash.
struct Path {
    /// Whether the path leads above its base directory, which is unknown here, so the rest may be in any directory.
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

/// Returns the pattern for normalized paths.
fn without_empty_segments(pattern: &Pattern) -> Pattern {
    let text = pattern.as_str();
    let root = if text.starts_with('/') { "/" } else { "" };
    let segments: Vec<&str> = text
        .split('/')
        .filter(|segment| !matches!(*segment, "" | "."))
        .collect();
    Pattern::new(format!("{root}{}", segments.join("/")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rules_know_the_names_that_a_system_takes_for_one() {
        use Fit::{No, Perhaps, Yes};
        let table = [
            ("linux", "**.key", Perhaps, "./a.key"),
            ("linux", "**.key", No, "A.KEY a.key. a.key::$DATA"),
            ("linux", "/etc/**", No, "/ETC/passwd"),
            ("macos", "**.key", Perhaps, "A.KEY ./a.Key"),
            ("macos", "**.key", No, "a.key. a.key::$DATA a.keys"),
            ("macos", "ä?.key", Perhaps, "Äß.key"),
            ("windows", "**.key", Yes, "a.key"),
            (
                "windows",
                "**.key",
                Perhaps,
                "A.KEY a.key. a.key::$DATA b:a.key",
            ),
            (
                "windows",
                "**.key",
                Perhaps,
                r"A.Key.:$DATA b/..\a.KEY... a.key_.",
            ),
            ("windows", "**.key", No, "a.keys a.key.txt a.txt"),
            (
                "windows",
                "secret/**",
                Perhaps,
                r"SECRET/a secret./a Secret\a",
            ),
            ("windows", "secret/**", Perhaps, "c:secret/a secret:x:$Y/a"),
            ("windows", "secret/**", No, "secrets/a c:/secret/a"),
            ("windows", r"secret\**", Perhaps, r"secret/a SECRET\a"),
            ("windows", "C:/secret/**", Yes, "C:/secret/a"),
            ("windows", "C:/secret/**", Perhaps, r"c:\Secret\a /secret/a"),
            (
                "windows",
                "C:/secret/**",
                Perhaps,
                r"\\?\c:\secret\a //./C:/secret/a",
            ),
            ("windows", "src/**", Yes, "src/a src/A. src/a:b"),
            ("windows", "src/**", Perhaps, "src/.../a SRC/a src/..__/a"),
            ("windows", "*", Perhaps, "c:a c:"),
            ("windows", "a:write", No, "a:read ab:write"),
            ("windows", "https://docs.rs/**", Yes, "https://docs.rs/a."),
        ];
        for (system, pattern, expected, texts) in table {
            for text in texts.split(' ').map(|text| text.replace('_', " ")) {
                let found = fit_on(system, &Pattern::new(pattern), &text);
                assert_eq!(found, expected, "{system} {pattern} {text}");
            }
        }
    }
}
