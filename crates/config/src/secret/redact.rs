//! Removes secrets from the text of a file, as far as names and patterns reveal them.
//!
//! The result is shown to a user who decides whether to trust the file. Only values are removed, never a part of a program: the value
//! of a key with a secret name, the argument of such an option, a password in a URL, and words that resemble
//! keys.

use std::ops::Range;

use super::{HIDDEN, is_secret_name, scheme_end};
use crate::Document;
use crate::node::{Node, Value};

/// Replaces a secret in output.
pub type Hide = fn(&str) -> String;

/// Replaces a secret with the placeholder.
pub fn not_shown(_: &str) -> String {
    HIDDEN.to_owned()
}

/// Replaces a secret without changing byte positions.
pub fn starred(secret: &str) -> String {
    "*".repeat(secret.len())
}

/// The minimum length of a word with a known key prefix.
const SHORT_KEY: usize = 12;
/// The minimum number of consecutive letters and digits in a word that resembles a key.
const RUN: usize = 16;
/// The minimum number of hexadecimal digits, with or without separators.
const HEXADECIMAL: usize = 32;

/// Known prefixes of keys.
const BEGINNINGS: &str = "sk- sk_ pk- rk_ ghp_ gho_ ghs_ github_pat_ glpat- xox AKIA AIza hf_ eyJ";

/// The keys of headers.
const HEADERS: [&str; 2] = ["headers", "http_headers"];

/// Values that describe the type of a parameter.
const KINDS: &str = "string integer number boolean array object any";

/// Removes the secrets from a TOML or JSON text.
pub fn redacted(text: &str, hide: Hide) -> String {
    let document = Document::json_or_toml("", text);
    let mut spans = Vec::new();
    if document.is_well_formed() {
        secrets(text, document.root(), "", "", false, &mut spans);
        spans.sort_by_key(|span| span.start);
    } else {
        rests_of_lines(text, &mut spans);
    }
    let mut shown = String::with_capacity(text.len());
    let mut at = 0;
    for span in spans {
        shown += &redacted_prose(text.get(at..span.start).unwrap_or_default(), hide);
        shown += &hide(text.get(span.clone()).unwrap_or_default());
        at = span.end;
    }
    shown + &redacted_prose(text.get(at..).unwrap_or_default(), hide)
}

/// Finds the secrets below a key. `before` is the previous element of the list. Every value of a header is one.
fn secrets(
    text: &str,
    node: &Node,
    key: &str,
    before: &str,
    is_in_headers: bool,
    spans: &mut Vec<Range<usize>>,
) {
    let is_in_headers = is_in_headers || HEADERS.contains(&key);
    match &node.value {
        Value::Table(entries) => {
            for (key, node) in entries {
                secrets(text, node, key, "", is_in_headers, spans);
            }
        }
        Value::List(items) => {
            let mut before = "";
            for node in items {
                secrets(text, node, key, before, is_in_headers, spans);
                before = node.value.text().unwrap_or_default();
            }
        }
        Value::Text(value) => {
            let written = text.get(node.span.clone()).unwrap_or_default();
            let inside = written.trim_matches(['"', '\'']);
            let start = node.span.start + written.find(inside).unwrap_or_default();
            if is_in_headers && !value.is_empty() || is_secret(key, before, value) {
                spans.push(start..start + inside.len());
            } else if let Some(end) = inside
                .rfind('@')
                .filter(|_| key == "url" && scheme_end(inside) == 0)
            {
                spans.push(start..start + end);
            } else if let Some((name, _)) = inside.split_once('=').filter(is_assignment) {
                spans.push(start + name.len() + 1..start + inside.len());
            }
        }
        _ if is_in_headers => spans.push(node.span.clone()),
        _ => {}
    }
}

/// Returns whether a value is secret because of the name of its key, or of the previous option in a list.
fn is_secret(key: &str, before: &str, value: &str) -> bool {
    let is_kind = KINDS
        .split(' ')
        .any(|kind| kind == value.trim_end_matches('?'));
    let is_option = value.starts_with('-') && key == "args";
    let is_named = is_secret_name(key)
        || (before.starts_with('-') && is_secret_name(before) && !before.contains('='));
    let is_place = is_place(value) && !value.contains(' ');
    is_named && !is_place && !is_kind && !is_option && !value.is_empty()
}

/// Returns whether the value is `NAME=secret` or `--name=secret`.
fn is_assignment((name, value): &(&str, &str)) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_word = !value.is_empty() && !value.contains(char::is_whitespace) && !is_place(value);
    is_secret_name(name) && name.chars().all(is_name) && is_word
}

fn is_place(value: &str) -> bool {
    value.starts_with(['/', '~', '.'])
}

/// Finds secrets by name in a text that cannot be parsed: the rest of the line, or the next line.
fn rests_of_lines(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut at = 0;
    let (mut is_open, mut is_in_headers) = (false, false);
    for line in text.split_inclusive('\n') {
        if line.starts_with('[') {
            is_in_headers = HEADERS.iter().any(|key| line.contains(key));
        }
        let mut ends = line.match_indices(['=', ':', ',']).map(|(end, _)| end);
        let from = ends.find(|end| {
            let before = line.get(..*end).unwrap_or_default();
            let name = before.trim_end_matches([' ', '\t', '"', '\'']);
            let word = name.rsplit(|c| !is_of_word(c)).next();
            is_in_headers
                || word.is_some_and(|word| is_secret_name(word) || HEADERS.contains(&word))
        });
        let from = from.map(|end| end + 1);
        if let Some(rest) = is_open.then_some(0).or(from) {
            let behind = line.get(rest..).unwrap_or_default().trim_end();
            is_open = behind.is_empty();
            spans.push(at + rest..at + rest + behind.len());
        }
        at += line.len();
    }
}

/// Removes the secrets from prose.
pub fn redacted_prose(text: &str, hide: Hide) -> String {
    let text = without_passwords(text, hide);
    let mut shown = String::with_capacity(text.len());
    for piece in text.split_inclusive(|c| !is_of_word(c)) {
        let word = piece.trim_end_matches(|c| !is_of_word(c));
        if looks_like_a_key(word) {
            shown += &hide(word);
        } else {
            shown += word;
        }
        shown += piece.get(word.len()..).unwrap_or_default();
    }
    shown
}

/// Removes user information and secret query parameters from URLs.
fn without_passwords(text: &str, hide: Hide) -> String {
    let mut shown = String::with_capacity(text.len());
    let mut rest = text;
    while let Some((before, behind)) = rest.split_once("://") {
        let is_end = |c: char| c.is_whitespace() || "\"'<>`()".contains(c);
        let (address, behind) = behind.split_at(behind.find(is_end).unwrap_or(behind.len()));
        rest = behind;
        let host_end = address.find(['/', '\\', '?', '#']).unwrap_or(address.len());
        let (host, path) = address.split_at(host_end);
        shown.extend([before, "://"]);
        match host.rsplit_once('@') {
            Some((user, host)) => shown.extend([&hide(user), "@", host]),
            None => shown.push_str(host),
        }
        for (place, part) in path.split(['?', '&']).enumerate() {
            if place > 0 {
                shown.push(if place == 1 { '?' } else { '&' });
            }
            match part.split_once('=') {
                Some((name, value)) if place > 0 && is_secret_name(name) => {
                    shown.extend([name, "=", &hide(value)]);
                }
                _ => shown.push_str(part),
            }
        }
    }
    shown + rest
}

fn is_of_word(c: char) -> bool {
    c.is_ascii_alphanumeric() || matches!(c, '_' | '-' | '.' | '+')
}

/// Returns whether a text can be the name of an environment variable, and does not begin like a key.
pub(crate) fn is_variable_name(text: &str) -> bool {
    let is_outside = |c: char| c == '=' || c == '\0' || c.is_whitespace();
    let is_key = begins_like_a_key(text) && text.contains(|c: char| c.is_ascii_digit());
    !text.is_empty() && !text.contains(is_outside) && !is_key
}

/// Returns whether a word has a known key prefix, and the length of a key.
fn begins_like_a_key(word: &str) -> bool {
    let mut beginnings = BEGINNINGS.split(' ');
    word.len() >= SHORT_KEY && beginnings.any(|begin| word.starts_with(begin))
}

/// Returns whether a word has a known key prefix or appears random.
fn looks_like_a_key(word: &str) -> bool {
    let word = word.trim_matches(['.', '-', '+']);
    let has = |run: &str, is: fn(&u8) -> bool| run.bytes().any(|byte| is(&byte));
    let is_mixed = |run: &str| has(run, u8::is_ascii_digit) && has(run, u8::is_ascii_alphabetic);
    let is_run = |run: &str| run.len() >= RUN && is_mixed(run);
    let digits = word.bytes().filter(u8::is_ascii_hexdigit).count();
    let is_hexadecimal = digits >= HEXADECIMAL && digits + word.matches('-').count() == word.len();
    begins_like_a_key(word)
        || word.split(['-', '.', '_', '+']).any(is_run)
        || is_hexadecimal && is_mixed(word)
}
