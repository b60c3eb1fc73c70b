//! Patterns for paths: `*.rs`, `src/**/*.{c,h}`.

use std::path::Path;

use regex::{Regex, RegexBuilder};

use crate::builtin::spelling::named;

const LONGEST: usize = 1_000;
/// How large a pattern may be once it is compiled, in bytes.
const SIZE: usize = 1 << 20;

/// A pattern. One without a slash is held against the name alone, wherever it lies.
#[derive(Debug)]
pub(super) struct Glob {
    regex: Regex,
    is_for_names: bool,
}

impl Glob {
    /// `*` stands for characters but a slash, `**` for any, `?` for one, `[a-z]` for one of these, `{a,b}` for one of
    /// these texts.
    pub(super) fn new(text: &str) -> Result<Self, String> {
        let wrong = |why: &str| {
            format!(
                "the glob {} {why}; write one such as `*.rs` or `src/**/*.txt`",
                named(text)
            )
        };
        if text.is_empty() {
            return Err("the glob is empty; leave it out, or write one such as `*.rs`".to_owned());
        }
        if text.len() > LONGEST {
            return Err(format!(
                "the glob has more than {LONGEST} bytes; write a shorter one"
            ));
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
            .map_err(|_| wrong("cannot be read"))?;
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
                // With its slash it also stands for no directory at all.
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
        return Err("lacks a `}`");
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
    Err("lacks a `]`")
}
