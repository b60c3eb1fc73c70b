//! Glob patterns for paths: `*.rs`, `src/**/*.{c,h}`.

use std::path::Path;

use regex::{Regex, RegexBuilder};

use crate::builtin::spelling::named;

const LONGEST: usize = 1_000;
/// The largest compiled pattern, in bytes.
const SIZE: usize = 1 << 20;

/// A pattern. A pattern without a slash matches the file name in any directory.
#[derive(Debug)]
pub(super) struct Glob {
    regex: Regex,
    is_for_names: bool,
}

impl Glob {
    /// Parses a pattern with `*`, `**`, `?`, `[a-z]` and `{a,b}`. Only `**` matches a slash.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "the glob {} {why}; examples: `*.rs`, `src/**/*.txt`",
                named(text)
            )
        };
        if text.is_empty() {
            return Err("the glob is empty; omit it, or use one such as `*.rs`".to_owned());
        }
        if text.len() > LONGEST {
            return Err(format!("the glob has more than {LONGEST} bytes"));
        }
        let pattern = text
            .strip_prefix("./")
            .unwrap_or(text)
            .trim_start_matches('/');
        let regex = to_regex(pattern).map_err(wrong)?;
        let regex = RegexBuilder::new(&regex)
            .size_limit(SIZE)
            .dot_matches_new_line(true)
            .build()
            .map_err(|_| wrong("is invalid"))?;
        Ok(Self {
            regex,
            is_for_names: !pattern.contains('/'),
        })
    }

    pub(super) fn fits(&self, path: &Path) -> bool {
        let text = if self.is_for_names {
            path.file_name().unwrap_or_default().to_string_lossy()
        } else {
            path.to_string_lossy()
        };
        self.regex.is_match(&text)
    }
}

fn to_regex(pattern: &str) -> Result<String, &'static str> {
    let mut regex = String::from("^");
    let mut depth = 0;
    let mut rest = pattern.chars().peekable();
    while let Some(character) = rest.next() {
        match character {
            '*' if rest.next_if_eq(&'*').is_some() => {
                // `**/` also matches no directory.
                let is_whole_part = regex == "^" || regex.ends_with('/');
                if is_whole_part && rest.next_if_eq(&'/').is_some() {
                    regex.push_str("(?:.*/)?");
                } else {
                    regex.push_str(".*");
                }
            }
            '*' => regex.push_str("[^/]*"),
            '?' => regex.push_str("[^/]"),
            '[' => class(&mut regex, &mut rest)?,
            '{' => {
                depth += 1;
                regex.push_str("(?:");
            }
            '}' if depth > 0 => {
                depth -= 1;
                regex.push(')');
            }
            ',' if depth > 0 => regex.push('|'),
            '\\' => match rest.next() {
                Some(escaped) => push(&mut regex, escaped),
                None => return Err("ends with a backslash"),
            },
            _ => push(&mut regex, character),
        }
    }
    if depth > 0 {
        return Err("has no closing `}`");
    }
    regex.push('$');
    Ok(regex)
}

fn push(regex: &mut String, character: char) {
    regex.push_str(&regex::escape(character.encode_utf8(&mut [0; 4])));
}

fn class(
    regex: &mut String,
    rest: &mut std::iter::Peekable<std::str::Chars<'_>>,
) -> Result<(), &'static str> {
    regex.push('[');
    if rest.next_if(|c| matches!(c, '!' | '^')).is_some() {
        regex.push_str("^/");
    }
    let mut is_first = true;
    for character in rest.by_ref() {
        match character {
            ']' if !is_first => {
                regex.push(']');
                return Ok(());
            }
            '-' => regex.push('-'),
            _ => push(regex, character),
        }
        is_first = false;
    }
    Err("has no closing `]`")
}
