//! Matches of patterns.
#![allow(clippy::unwrap_used, reason = "tests")]

use plaincall::rules::Pattern;
use proptest::prelude::*;

/// Matches by backtracking, in exponential time.
fn naive(pattern: &str, text: &str) -> bool {
    let split = |text: &str| {
        let mut characters = text.chars();
        characters
            .next()
            .map(|first| (first, characters.as_str().to_owned()))
    };
    if let Some(rest) = pattern.strip_prefix("**") {
        return naive(rest, text) || split(text).is_some_and(|(_, behind)| naive(pattern, &behind));
    }
    match (split(pattern), split(text)) {
        (None, None) => true,
        (Some(('*', rest)), None) => naive(&rest, ""),
        (Some(('*', rest)), Some((first, behind))) => {
            naive(&rest, text) || (first != '/' && naive(pattern, &behind))
        }
        (Some(('?', rest)), Some((first, behind))) => first != '/' && naive(&rest, &behind),
        (Some((wanted, rest)), Some((first, behind))) => wanted == first && naive(&rest, &behind),
        (None, Some(_)) | (Some(_), None) => false,
    }
}

fn check(pattern: &str, text: &str, expected: bool) {
    assert_eq!(
        Pattern::new(pattern).matches(text),
        expected,
        "{pattern:?} and {text:?}"
    );
    assert_eq!(
        naive(pattern, text),
        expected,
        "{pattern:?} and {text:?}, tried"
    );
}

#[test]
fn matches() {
    for (pattern, fits, does_not) in [
        ("", &[""][..], &["a", "/"][..]),
        ("a", &["a"], &["", "A", "aa", "ab", "ba", "a/"]),
        ("?", &["a", "ä", "🛠"], &["", "ab", "/"]),
        ("*", &["", "a", "a.b", "-"], &["/", "a/b"]),
        ("**", &["", "a", "/", "a/b", "a\nb"], &[]),
        ("***", &["", "a/b"], &[]),
        (
            "src/*",
            &["src/", "src/a"],
            &["src", "src/a/b", "xsrc/a", "Src/a"],
        ),
        (
            "src/**",
            &["src/", "src/a", "src/a/b"],
            &["src", "src2/a", "/src/a"],
        ),
        (
            "**/*.rs",
            &["a/b.rs", "/.rs", "a/b/c.rs"],
            &["b.rs", "a/b.rs/", "a/b.r"],
        ),
        ("*.*.*", &["..", "a.b.c", "a.b.c.d"], &["a.b", "a./b.c"]),
        ("a*b*a", &["aba", "abba", "aabaa"], &["ab", "ba", "abab"]),
        ("[a-c]{x,y}\\", &["[a-c]{x,y}\\"], &["b", "ax"]),
        ("read-??", &["read-me", "read-äö"], &["read-m", "read-m/"]),
    ] {
        for text in fits {
            check(pattern, text, true);
        }
        for text in does_not {
            check(pattern, text, false);
        }
    }
}

/// A backtracking matcher would never finish.
#[test]
fn hostile_patterns_end() {
    let text = "a".repeat(50_000);
    for (part, end) in [("*a", "b"), ("**a", "b"), ("*?", "/"), ("**a*", "b/")] {
        let pattern = Pattern::new(part.repeat(40) + end);
        assert!(!pattern.matches(&text), "{pattern}");
        assert!(pattern.matches(&format!("{text}{end}")), "{pattern}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn the_same_as_by_backtracking(pattern in "[ab/*?]{0,8}", text in "[ab/ä]{0,10}") {
        prop_assert_eq!(Pattern::new(pattern.as_str()).matches(&text), naive(&pattern, &text));
    }
}
