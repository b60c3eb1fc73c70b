//! The patterns of `patternProperties`, as far as they are plain: characters, classes, groups, and how often.

use regex_lite::{Regex, RegexBuilder};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Verdict {
    Yes,
    No,
    /// The pattern has more in it than is understood here, or is too much work.
    Unknown,
}

/// How large a pattern may be once it is compiled, in bytes.
const SIZE: usize = 16 << 10;
/// The longest pattern and the longest key, in bytes. A search takes the product of what both are.
const LONGEST: usize = 500;

/// Whether `key` matches `pattern` somewhere, as the patterns of JSON Schema do.
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

/// The pattern as `regex_lite` writes it; `None` if ECMAScript, in whose words it is, may mean something else by it.
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
                // One without characters, and classes in classes.
                if is_in_class || rest.peek() == Some(&']') {
                    return None;
                }
                is_in_class = true;
            }
            '&' | '~' | '-' if is_in_class && rest.peek() == Some(&character) => return None,
            // Of what may follow `(?`, only `:` is plain.
            '(' if !is_in_class && rest.next_if_eq(&'?').is_some() => {
                rest.next_if_eq(&':')?;
                written.push_str("(?:");
            }
            // As few as possible or as many: whether it matches is the same. Nothing else is counted twice.
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
