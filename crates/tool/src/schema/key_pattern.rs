//! The simple patterns of `patternProperties`: characters, classes, groups and repetition.

use regex_lite::{Regex, RegexBuilder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Yes,
    No,
    /// The pattern uses other features, or is too much work.
    Unknown,
}

/// The maximum size of a compiled pattern, in bytes.
const SIZE: usize = 16 << 10;
/// The maximum length of patterns and keys, in bytes. A search takes the product of both lengths.
const LONGEST: usize = 500;

/// Returns whether `pattern` matches anywhere in `key`, as in JSON Schema.
pub(crate) fn matches(pattern: &str, key: &str) -> Verdict {
    let is_short = pattern.len() <= LONGEST && key.len() <= LONGEST;
    match is_short.then(|| compiled(pattern)).flatten() {
        Some(regex) if regex.is_match(key) => Verdict::Yes,
        Some(_) => Verdict::No,
        None => Verdict::Unknown,
    }
}

fn compiled(pattern: &str) -> Option<Regex> {
    let pattern = plain(pattern)?;
    RegexBuilder::new(&pattern).size_limit(SIZE).build().ok()
}

/// Converts an ECMAScript pattern for `regex_lite`; `None` if its meaning may differ.
fn plain(pattern: &str) -> Option<String> {
    let mut written = String::new();
    let mut rest = pattern.chars().peekable();
    let mut is_in_class = false;
    let mut was_count = false;
    while let Some(character) = rest.next() {
        let is_count = !is_in_class && matches!(character, '*' | '+' | '?' | '}');
        match character {
            '\\' => {
                let escaped = rest.next()?;
                if escaped.is_ascii_alphanumeric() && !"dDwW".contains(escaped) {
                    return None;
                }
                written.extend(['\\', escaped]);
            }
            '.' if !is_in_class => written.push_str(r"[^\n\r\u{2028}\u{2029}]"),
            '[' => {
                written.push('[');
                written.extend(rest.next_if_eq(&'^'));
                // Empty classes, and classes in classes.
                if is_in_class || rest.peek() == Some(&']') {
                    return None;
                }
                is_in_class = true;
            }
            '&' | '~' | '-' if is_in_class && rest.peek() == Some(&character) => return None,
            // After `(?`, only `:` is simple.
            '(' if !is_in_class && rest.next_if_eq(&'?').is_some() => {
                rest.next_if_eq(&':')?;
                written.push_str("(?:");
            }
            // Lazy or greedy repetition makes no difference for a match. No other quantifier may be repeated.
            '?' if was_count && !matches!(rest.peek(), Some('*' | '+' | '?' | '{')) => {}
            '*' | '+' | '?' | '{' if was_count => return None,
            _ => {
                is_in_class &= character != ']';
                written.push(character);
            }
        }
        was_count = is_count;
    }
    Some(written)
}
