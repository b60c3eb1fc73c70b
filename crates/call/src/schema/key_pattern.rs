//! The patterns of `patternProperties`, as far as they are plain: characters, classes, groups, and how often.

use regex_lite::{Regex, RegexBuilder};

/// Whether a key matches a pattern.
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

#[cfg(test)]
mod tests {
    use super::Verdict::{self, No, Unknown, Yes};
    use super::matches;

    fn check(pattern: &str, key: &str, expected: Verdict) {
        assert_eq!(matches(pattern, key), expected, "{pattern} {key}");
    }

    #[test]
    fn plain_patterns_are_decided() {
        for (pattern, key, expected) in [
            ("^[0-9]+$", "2024", Yes),
            ("^[0-9]+$", "", No),
            ("^[0-9]+$", "20a", No),
            ("^x-", "x-y", Yes),
            ("^x-", "ax-", No),
            ("x-", "ax-", Yes),
            ("", "", Yes),
            ("^.*$", "anything", Yes),
            ("^S_", "S_0", Yes),
            ("_id$", "user_id", Yes),
            ("_id$", "user_id2", No),
            (r"^\d{4}-\d{2}$", "2024-01", Yes),
            (r"^\d{4}-\d{2}$", "2024-1", No),
            (r"^\w{2,}\.$", "ab.", Yes),
            (r"^\w{2,3}$", "abcd", No),
            ("^[^a-c-]?z$", "dz", Yes),
            ("^[^a-c-]?z$", "-z", No),
            ("^a*a*a*b$", "aaaa", No),
            ("^(a|b)$", "a", Yes),
            ("^(a|b)$", "ab", No),
            ("^a|b$", "ax", Yes),
            ("^a|b$", "xb", Yes),
            ("^a|b$", "xbx", No),
            ("^(?:get|set)_[a-z]+$", "set_x", Yes),
            ("^(?:get|set)_[a-z]+$", "sot_x", No),
            ("^(ab){2,3}$", "abab", Yes),
            ("^(ab){2,3}$", "ab", No),
            ("^(ab){2,3}$", "abababab", No),
            ("^(a|ab)(c|bcd)$", "abcd", Yes),
            ("^((a|b)+-)*c$", "ab-a-c", Yes),
            ("^((a|b)+-)*c$", "ab-ac", No),
            ("^(a*)*$", "aaa", Yes),
            ("^(a*)*$", "b", No),
            ("^()$", "", Yes),
            ("^a+?$", "aa", Yes),
            ("x|", "", Yes),
            ("(", "a", Unknown),
            (")", "a", Unknown),
            ("(a", "a", Unknown),
            ("^(?=a)", "a", Unknown),
            ("^(?i)a", "a", Unknown),
            (r"(a)\1", "aa", Unknown),
            (r"^\p{L}$", "a", Unknown),
            ("^[", "a", Unknown),
            ("a{2", "aa", Unknown),
            ("^a**$", "a", Unknown),
            ("^a++$", "a", Unknown),
            ("^a+??$", "a", Unknown),
            ("[]", "a", Unknown),
            ("[^]", "a", Unknown),
            ("[a--b]", "a", Unknown),
            ("[a[b]]", "a", Unknown),
            ("^[.*+?(]$", "(", Yes),
            ("^.$", "\r", No),
            (r"^\.\[$", ".[", Yes),
            (r"\bx", "x", Unknown),
        ] {
            check(pattern, key, expected);
        }
        let slow = "a*".repeat(40) + "b$";
        check(&slow, &"a".repeat(200), No);
        check(&"a?".repeat(10_000), "a", Unknown);
        check("^(a{100}){100}$", "a", Unknown);
        check("^(a+)+$", &("a".repeat(100) + "b"), No);
        check("^(a|a)*$", &("a".repeat(100) + "b"), No);
        check("^(ab)*$", &"ab".repeat(2000), Unknown);
        check(&"(".repeat(100_000), "a", Unknown);
    }
}
