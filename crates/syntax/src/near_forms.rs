//! Near misses other than misspelled markers: other emoji, and calls in the formats that models were trained on
//! (`spec/common.md` 9.1, 9.2). Each table has one form per line.

use crate::{ceil_char_boundary, floor_char_boundary};
use std::collections::VecDeque;

use memchr::memchr3_iter;

use crate::is_blank;
use crate::markers::{EMOJI_END_TAIL, Family, Role};
use crate::span::Span;

/// A call format of other systems.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum CallFormat {
    /// A tag that begins a call: `<tool_call>`, `[TOOL_CALLS]`, a fence.
    Tag,
    /// A JSON object with the name of a tool and its arguments.
    Json,
}

/// The texts that begin a call in another format, in either case, each with the text that ends it (`spec/common.md` 9.1).
/// An empty end means that the call ends with its JSON.
pub const CALL_TAGS: &[(&str, &str)] = &[
    ("<tool_call>", "</tool_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<tool_use>", "</tool_use>"),
    ("<tool_code>", "</tool_code>"),
    ("<tool name=", "</tool>"),
    ("<tool=", "</tool>"),
    ("<function=", "</function>"),
    ("<function name=", "</function>"),
    ("<function_call>", "</function_call>"),
    ("<function_calls>", "</function_calls>"),
    ("<start_function_call>", "<end_function_call>"),
    ("<invoke name=", "</invoke>"),
    ("<use_mcp_tool>", "</use_mcp_tool>"),
    ("<|tool_call|>", ""),
    ("<|tool_calls|>", ""),
    ("<|tool_call_start|>", "<|tool_call_end|>"),
    ("<|tool_call_begin|>", "<|tool_call_end|>"),
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ("<|python_tag|>", ""),
    ("<|channel|>commentary to=", ""),
    (
        "<\u{FF5C}tool\u{2581}calls\u{2581}begin\u{FF5C}>",
        "<\u{FF5C}tool\u{2581}calls\u{2581}end\u{FF5C}>",
    ),
    (
        "<\u{FF5C}tool\u{2581}call\u{2581}begin\u{FF5C}>",
        "<\u{FF5C}tool\u{2581}call\u{2581}end\u{FF5C}>",
    ),
    (
        "<|tool\u{2581}calls\u{2581}begin|>",
        "<|tool\u{2581}calls\u{2581}end|>",
    ),
    (
        "<|tool\u{2581}call\u{2581}begin|>",
        "<|tool\u{2581}call\u{2581}end|>",
    ),
    ("[TOOL_CALLS]", ""),
    ("[TOOL_CALL]", "[/TOOL_CALL]"),
    ("[TOOL_REQUEST]", "[END_TOOL_REQUEST]"),
    ("```tool_call", "```"),
    ("```tool_code", "```"),
    ("```tool_use", "```"),
    ("```function_call", "```"),
];

/// Signs that models write instead of the tool sign.
const SIGNS: &[char] = &[
    '\u{1F527}', // wrench
    '\u{1F528}', // hammer
    '\u{1F529}', // nut and bolt
    '\u{2692}',  // hammer and pick
    '\u{2699}',  // gear
    '\u{26CF}',  // pick
    '\u{1F9F0}', // toolbox
    '\u{1FA9B}', // screwdriver
    '\u{1FA9A}', // saw
    '\u{1F6E1}', // shield
    '\u{1F916}', // robot
    '\u{1F4DE}', // telephone receiver
];

/// The keys that name the tool in a JSON call (`spec/common.md` 9.1).
pub const CALL_NAME_KEYS: &[&str] = &["name", "tool", "tool_name", "function", "action"];

/// The keys that hold the arguments in a JSON call (`spec/common.md` 9.1).
pub const CALL_ARGUMENT_KEYS: &[&str] = &[
    "arguments",
    "parameters",
    "args",
    "input",
    "tool_input",
    "action_input",
];

/// The maximum distance between a tag and its call, and the maximum length of a header after another sign, in bytes.
const NEAR: usize = 256;

/// The maximum tracked nesting depth of objects.
const DEPTH: usize = 64;

/// The first bytes of all signs, and of all emoji.
pub(crate) const SIGN_BYTES: [u8; 2] = [0xE2, 0xF0];

/// Returns the length and role of a marker with another emoji at the front.
pub(crate) fn other_sign(rest: &str) -> Option<(usize, Role)> {
    let sign = rest.chars().next()?;
    let is_emoji = matches!(u32::from(sign), 0x2300..=0x23FF | 0x2600..=0x27BF | 0x1F000..=0x1FAFF);
    let behind = rest.get(sign.len_utf8()..).filter(|_| is_emoji)?;
    let behind = behind.strip_prefix('\u{FE0F}').unwrap_or(behind);
    let before = rest.len() - behind.len();
    if behind.starts_with(EMOJI_END_TAIL) {
        return Some((before + EMOJI_END_TAIL.len(), Role::EmojiEnd(Family::Real)));
    }
    let header = behind.strip_prefix('[').filter(|_| SIGNS.contains(&sign))?;
    let header = header
        .get(..floor_char_boundary(header, NEAR))
        .unwrap_or_default();
    let end = header.find([']', '\n'])?;
    let begins_name = header.starts_with(|c: char| c.is_alphanumeric() || c == '_');
    let is_header = header.get(end..)?.starts_with(']');
    // A Markdown link.
    let is_link = header.get(end + 1..)?.starts_with(['(', '[', ':']);
    (begins_name && is_header && !is_link).then_some((before + 1, Role::EmojiStart(Family::Real)))
}

/// Returns the tags of other formats at any position.
pub(crate) fn other_tags(text: &str) -> Vec<(Span, CallFormat)> {
    tags_anywhere(text)
        .map(|span| (span, CallFormat::Tag))
        .collect()
}

/// Returns calls in other formats in text order, without nested ones.
pub(crate) fn other_formats(text: &str) -> Vec<(Span, CallFormat)> {
    let tags = tags(text);
    let mut objects = objects(text).into_iter().peekable();
    let mut found = Vec::new();
    for (span, until) in tags {
        while let Some(object) = objects.next_if(|object| object.start < span.start) {
            found.push((object, CallFormat::Json));
        }
        // The call after a tag is not a second match.
        while objects.next_if(|object| object.start <= until).is_some() {}
        found.push((span, CallFormat::Tag));
    }
    found.extend(objects.map(|object| (object, CallFormat::Json)));
    found
}

/// Returns the tags that count, each with the position where its call begins.
fn tags(text: &str) -> Vec<(Span, usize)> {
    let mut found = Vec::new();
    for tag in tags_anywhere(text) {
        let behind = text.get(tag.end..).unwrap_or_default();
        let near = behind
            .get(..floor_char_boundary(behind, NEAR))
            .unwrap_or_default();
        let is_rest_of_tag = |c: char| !c.is_whitespace() && !"{[<".contains(c);
        let call = near.trim_start_matches(is_rest_of_tag).trim_start();
        let is_followed = call.starts_with(['{', '[', '<']);
        if is_followed || is_first_on_line(text, tag.start) {
            let inner = call.trim_start_matches(|c: char| c == '[' || c.is_whitespace());
            let until = tag.end + near.len() - inner.len();
            found.push((tag, until));
        }
    }
    found
}

fn tags_anywhere(text: &str) -> impl Iterator<Item = Span> {
    memchr3_iter(b'<', b'[', b'`', text.as_bytes()).filter_map(|at| {
        let rest = text.get(at..)?;
        let is_front = |tag: &&str| {
            let front = rest.get(..tag.len());
            front.is_some_and(|front| front.eq_ignore_ascii_case(tag))
        };
        let tag = CALL_TAGS.iter().map(|(tag, _)| *tag).find(is_front)?;
        Some(Span::new(at, at + tag.len()))
    })
}

/// Returns whether only a limited number of blanks precede this position on its line.
fn is_first_on_line(text: &str, at: usize) -> bool {
    let before = text.get(..at).unwrap_or_default();
    let from = ceil_char_boundary(before, at.saturating_sub(16));
    let before = before
        .get(from..)
        .unwrap_or_default()
        .trim_end_matches(is_blank);
    (before.is_empty() && from == 0) || before.ends_with('\n')
}

/// An open JSON object.
struct Object {
    start: usize,
    has_name: bool,
    has_arguments: bool,
}

/// Finds JSON objects with the name of a tool and its arguments, valid or not: from the brace to the second key's colon.
fn objects(text: &str) -> Vec<Span> {
    let mut found: Vec<Span> = Vec::new();
    let mut open: VecDeque<Object> = VecDeque::new();
    let mut at = 0;
    while let Some(rest) = text.as_bytes().get(at..) {
        let Some(next) = memchr3_iter(b'{', b'}', b'"', rest).next() else {
            break;
        };
        let place = at + next;
        at = place + 1;
        match rest.get(next) {
            Some(b'{') => {
                if open.len() == DEPTH {
                    open.pop_front();
                }
                open.push_back(Object {
                    start: place,
                    has_name: false,
                    has_arguments: false,
                });
            }
            Some(b'}') => {
                open.pop_back();
            }
            _ => {
                let behind = text.get(at..).unwrap_or_default();
                let Some(len) = string_len(behind) else {
                    at += behind.find('\n').unwrap_or(behind.len());
                    continue;
                };
                let string = text.get(at..at + len).unwrap_or_default();
                at += len + 1;
                let behind = text.get(at..).unwrap_or_default().trim_start();
                let Some(value) = behind.strip_prefix(':') else {
                    continue;
                };
                let Some(object) = open.back_mut() else {
                    continue;
                };
                let was_call = object.has_name && object.has_arguments;
                object.has_name |=
                    CALL_NAME_KEYS.contains(&string) && value.trim_start().starts_with('"');
                object.has_arguments |= CALL_ARGUMENT_KEYS.contains(&string);
                if object.has_name && object.has_arguments && !was_call {
                    let span = Span::new(object.start, text.len() - value.len());
                    // An enclosing object was completed later; it is the call.
                    let is_outside = |inner: &Span| inner.start < span.start;
                    let outside = found.iter().rposition(is_outside);
                    found.truncate(outside.map_or(0, |last| last + 1));
                    found.push(span);
                }
            }
        }
    }
    found
}

/// Returns the length of a JSON string after its first quote; `None` if it does not end on its line.
fn string_len(rest: &str) -> Option<usize> {
    let bytes = rest.as_bytes();
    let mut at = 0;
    loop {
        match bytes.get(at)? {
            b'"' => return Some(at),
            b'\n' => return None,
            b'\\' if bytes.get(at + 1) != Some(&b'\n') => at += 2,
            _ => at += 1,
        }
    }
}
