//! The text of a file as anybody may see it: without what is secret in it, as far as its name or its look tells.
//!
//! It is shown to a person who decides whether to trust it. So only values are left out, and no part of a program: the value
//! of a key that is called like a secret, what follows an option that is, a password in an address, and words that look
//! like keys.

use std::ops::Range;

use super::{HIDDEN, names_a_secret};
use crate::Document;
use crate::node::{Node, Value};

/// What is shown in the place of a secret.
pub type Hide = fn(&str) -> String;

/// Says that something is there.
pub fn not_shown(_: &str) -> String {
    HIDDEN.to_owned()
}

/// Leaves each byte its place.
pub fn starred(secret: &str) -> String {
    "*".repeat(secret.len())
}

/// How long a word is at least that begins like the keys of some service.
const SHORT_KEY: usize = 12;
/// From so many letters and digits on, without a sign between them, a word looks like a key.
const RUN: usize = 16;
/// From so many hexadecimal digits on, signs between them or not.
const HEXADECIMAL: usize = 32;

/// How the keys of services begin.
const BEGINNINGS: &str = "sk- sk_ pk- rk_ ghp_ gho_ ghs_ github_pat_ glpat- xox AKIA AIza hf_ eyJ";

/// Values that say what kind of parameter something is.
const KINDS: &str = "string integer number boolean array object any";

/// A text of TOML or JSON without its secrets.
pub fn redacted(text: &str, hide: Hide) -> String {
    let document = Document::json_or_toml("", text);
    let mut spans = Vec::new();
    if document.is_well_formed() {
        secrets(text, document.root(), "", "", &mut spans);
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

/// Where secrets are below a key; `before` is the element before this one in a list.
fn secrets(text: &str, node: &Node, key: &str, before: &str, spans: &mut Vec<Range<usize>>) {
    match &node.value {
        Value::Table(entries) => {
            for (key, node) in entries {
                secrets(text, node, key, "", spans);
            }
        }
        Value::List(items) => {
            let mut before = "";
            for node in items {
                secrets(text, node, key, before, spans);
                before = node.value.text().unwrap_or_default();
            }
        }
        Value::Text(value) => {
            let written = text.get(node.span.clone()).unwrap_or_default();
            let inside = written.trim_matches(['"', '\'']);
            let start = node.span.start + written.find(inside).unwrap_or_default();
            if is_secret(key, before, value) {
                spans.push(start..start + inside.len());
            } else if let Some((name, _)) = inside.split_once('=').filter(is_assignment) {
                spans.push(start + name.len() + 1..start + inside.len());
            }
        }
        _ => {}
    }
}

/// Whether a value is secret by the name of its key, or by the option before it in a list.
fn is_secret(key: &str, before: &str, value: &str) -> bool {
    let is_kind = KINDS
        .split(' ')
        .any(|kind| kind == value.trim_end_matches('?'));
    let is_option = value.starts_with('-') && key == "args";
    let is_named = names_a_secret(key)
        || (before.starts_with('-') && names_a_secret(before) && !before.contains('='));
    let is_place = is_place(value) && !value.contains(' ');
    is_named && !is_place && !is_kind && !is_option && !value.is_empty()
}

/// Whether it is `NAME=secret` or `--name=secret`.
fn is_assignment((name, value): &(&str, &str)) -> bool {
    let is_name = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    let is_word = !value.is_empty() && !value.contains(char::is_whitespace) && !is_place(value);
    names_a_secret(name) && name.chars().all(is_name) && is_word
}

fn is_place(value: &str) -> bool {
    value.starts_with(['/', '~', '.'])
}

/// What is behind names of secrets in a text that cannot be read: the rest of the line, or the next line.
fn rests_of_lines(text: &str, spans: &mut Vec<Range<usize>>) {
    let mut at = 0;
    let mut is_open = false;
    for line in text.split_inclusive('\n') {
        let mut ends = line.match_indices(['=', ':', ',']).map(|(end, _)| end);
        let from = ends.find(|end| {
            let before = line.get(..*end).unwrap_or_default();
            let name = before.trim_end_matches([' ', '\t', '"', '\'']);
            let word = name.rsplit(|c| !is_of_word(c)).next();
            word.is_some_and(names_a_secret)
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

/// A text of prose without its secrets.
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

/// The text without what stands before `@` in addresses, and without the secrets in their queries.
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
                Some((name, value)) if place > 0 && names_a_secret(name) => {
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

/// Whether a word is the key of some service, or a text of chance.
fn looks_like_a_key(word: &str) -> bool {
    let word = word.trim_matches(['.', '-', '+']);
    let mut beginnings = BEGINNINGS.split(' ');
    let begins_so = beginnings.any(|begin| word.starts_with(begin));
    let has = |run: &str, is: fn(&u8) -> bool| run.bytes().any(|byte| is(&byte));
    let is_mixed = |run: &str| has(run, u8::is_ascii_digit) && has(run, u8::is_ascii_alphabetic);
    let is_run = |run: &str| run.len() >= RUN && is_mixed(run);
    let digits = word.bytes().filter(u8::is_ascii_hexdigit).count();
    let is_hexadecimal = digits >= HEXADECIMAL && digits + word.matches('-').count() == word.len();
    begins_so && word.len() >= SHORT_KEY
        || word.split(['-', '.', '_', '+']).any(is_run)
        || is_hexadecimal && is_mixed(word)
}
