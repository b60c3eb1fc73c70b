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
    /// A list of calls in Python: `[add(a=5)]`.
    Python,
}

/// The texts that begin a call in another format, in either case, each with the text that ends it (`spec/common.md` 9.1).
/// An empty end means that the call ends with its JSON. No text begins another one. Those that begin with a letter count at the
/// beginning of a line, and those with `to=functions.` in the text after stripped tokens.
pub const CALL_TAGS: &[(&str, &str)] = &[
    ("<tool_call>", "</tool_call>"),
    ("<tool_calls>", "</tool_calls>"),
    ("<tool_use>", "</tool_use>"),
    ("<tool_code>", "</tool_code>"),
    ("<tool_call name=", "</tool_call>"),
    ("<minimax:tool_call>", "</minimax:tool_call>"),
    ("<seed:tool_call>", "</seed:tool_call>"),
    ("<toolcall>", "</toolcall>"),
    ("<tool name=", "</tool>"),
    ("<tool=", "</tool>"),
    ("<function=", "</function>"),
    ("<function name=", "</function>"),
    ("<function_call>", "</function_call>"),
    ("<function_calls>", "</function_calls>"),
    ("<start_function_call>", "<end_function_call>"),
    ("<invoke name=", "</invoke>"),
    ("<steptml:invoke name=", "</steptml:invoke>"),
    ("<use_mcp_tool>", "</use_mcp_tool>"),
    ("<|tool_call|>", ""),
    ("<|tool_call>", "<tool_call|>"),
    ("<|tool_calls|>", ""),
    ("<|tool_call_start|>", "<|tool_call_end|>"),
    ("<|tool_call_begin|>", "<|tool_call_end|>"),
    ("<|tool_calls_section_begin|>", "<|tool_calls_section_end|>"),
    ("<|python_tag|>", ""),
    ("<|python_start|>", "<|python_end|>"),
    ("<|action_start|>", "<|action_end|>"),
    ("<|start_action|>", "<|end_action|>"),
    ("<|channel|>commentary to=", ""),
    ("<|channel|>analysis to=", ""),
    ("<|start|>assistant<|channel|>commentary to=", ""),
    ("<|start|>assistant<|channel|>analysis to=", ""),
    ("<|start|>assistant to=", ""),
    ("commentary to=functions.", ""),
    ("analysis to=functions.", ""),
    ("assistantcommentary to=functions.", ""),
    ("assistantanalysis to=functions.", ""),
    ("assistant to=functions.", ""),
    ("functools[", ""),
    ("action: ```json", "```"),
    ("action:```json", "```"),
    (
        "<\u{FF5C}DSML\u{FF5C}function_calls>",
        "</\u{FF5C}DSML\u{FF5C}function_calls>",
    ),
    (
        "<\u{FF5C}DSML\u{FF5C}tool_calls>",
        "</\u{FF5C}DSML\u{FF5C}tool_calls>",
    ),
    (
        "<\u{FF5C}DSML\u{FF5C}invoke name=",
        "</\u{FF5C}DSML\u{FF5C}invoke>",
    ),
    ("<|DSML|function_calls>", "</|DSML|function_calls>"),
    ("<|DSML|tool_calls>", "</|DSML|tool_calls>"),
    ("<|DSML|invoke name=", "</|DSML|invoke>"),
    (
        "<\u{FF5C}tool_calls_begin\u{FF5C}>",
        "<\u{FF5C}tool_calls_end\u{FF5C}>",
    ),
    ("<|tool_calls_begin|>", "<|tool_calls_end|>"),
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

/// The end of the tags that are words.
const RECIPIENT: &str = "to=functions.";

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

/// The first bytes of all signs, of all emoji, and of signs in a wrong encoding.
pub(crate) const SIGN_BYTES: [u8; 3] = [0xC3, 0xE2, 0xF0];

/// How the tool sign begins when its UTF-8 was read in another encoding.
const MISDECODED: &[&str] = &[
    "\u{F0}\u{178}\u{203A}",                        // Windows-1252
    "\u{F0}\u{9F}\u{9B}",                           // Latin-1
    "\u{C3}\u{B0}\u{C5}\u{B8}\u{E2}\u{20AC}\u{BA}", // Windows-1252, twice
    "\u{C3}\u{B0}\u{C2}\u{9F}\u{C2}\u{9B}",         // Latin-1, twice
    "\u{C3}\u{B0}\u{C2}\u{178}\u{C2}\u{203A}",      // Latin-1, then Windows-1252
    "\u{C3}\u{B0}\u{C5}\u{B8}\u{E2}\u{80}\u{BA}",   // Windows-1252, then Latin-1
];

/// Returns the length and role of a marker with another emoji at the front.
pub(crate) fn other_sign(rest: &str) -> Option<(usize, Role)> {
    let sign = rest.chars().next()?;
    let misdecoded = behind_misdecoded(rest);
    let is_emoji = matches!(u32::from(sign), 0x2300..=0x23FF | 0x2600..=0x27BF | 0x1F000..=0x1FAFF);
    let behind = misdecoded.or_else(|| rest.get(sign.len_utf8()..).filter(|_| is_emoji))?;
    let behind = behind.strip_prefix('\u{FE0F}').unwrap_or(behind);
    let before = rest.len() - behind.len();
    if behind.starts_with(EMOJI_END_TAIL) {
        return Some((before + EMOJI_END_TAIL.len(), Role::EmojiEnd(Family::Real)));
    }
    let is_tool = misdecoded.is_some() || SIGNS.contains(&sign);
    let header = behind.strip_prefix('[').filter(|_| is_tool)?;
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

/// Returns what follows the tool sign in a wrong encoding.
fn behind_misdecoded(rest: &str) -> Option<&str> {
    let behind = MISDECODED.iter().find_map(|it| rest.strip_prefix(it))?;
    let near = behind.get(..floor_char_boundary(behind, 32))?;
    let rest = near.trim_start_matches(|c: char| !c.is_ascii() || c == ' ');
    behind.get(near.len() - rest.len()..)
}

/// Returns the tags of other formats at any position.
pub(crate) fn other_tags(text: &str) -> Vec<(Span, CallFormat)> {
    let signs = memchr3_iter(b'<', b'[', b'`', text.as_bytes()).filter_map(|at| tag_at(text, at));
    let words = text.match_indices(RECIPIENT).filter_map(|(at, word)| {
        let (before, end) = (text.get(..at)?, at + word.len());
        let tags = CALL_TAGS.iter();
        let tags = tags.filter_map(|(tag, _)| tag.strip_suffix(RECIPIENT));
        let len = tags
            .filter(|tag| ends_with(before, tag))
            .map(str::len)
            .max();
        Some((Span::new(at - len?, end), CallFormat::Tag))
    });
    let mut found: Vec<_> = signs.chain(words).collect();
    found.sort_by_key(|(span, _)| span.start);
    // A word may be the end of a tag.
    found.dedup_by(|(next, _), (last, _)| next.start < last.end);
    found
}

fn tag_at(text: &str, at: usize) -> Option<(Span, CallFormat)> {
    let rest = text.get(at..)?;
    let is_front = |tag: &&str| {
        let front = rest.get(..tag.len());
        front.is_some_and(|front| front.eq_ignore_ascii_case(tag))
    };
    let tag = CALL_TAGS.iter().map(|(tag, _)| *tag).find(is_front);
    if let Some(tag) = tag {
        return Some((Span::new(at, at + tag.len()), CallFormat::Tag));
    }
    let head = rest.get(..floor_char_boundary(rest, NEAR))?;
    let is_name = |c: char| c.is_alphabetic() || c == '_';
    let name = head.strip_prefix('[')?.trim_start();
    name.starts_with(is_name).then_some(())?;
    // Markup that was removed leaves blanks in names.
    let head: String = head.split_whitespace().collect();
    (begins_python(&head) == Begins::Yes).then(|| (Span::new(at, at + 1), CallFormat::Python))
}

fn ends_with(text: &str, end: &str) -> bool {
    let begin = text.len().checked_sub(end.len());
    let last = begin.and_then(|begin| text.get(begin..));
    last.is_some_and(|last| last.eq_ignore_ascii_case(end))
}

/// Whether a text begins in some way.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[allow(clippy::exhaustive_enums, reason = "no other answer")]
pub enum Begins {
    /// It does not.
    No,
    /// Its continuation decides.
    Perhaps,
    /// It does.
    Yes,
}

/// Returns whether a text begins with a list of calls in Python: `[`, a name, `(`, and a keyword argument or `)`
/// (`spec/common.md` 9.1).
pub fn begins_python(text: &str) -> Begins {
    let Some(mut rest) = text.strip_prefix('[').map(str::trim_start) else {
        return Begins::No;
    };
    for sign in ['(', '='] {
        if rest.is_empty() {
            return Begins::Perhaps;
        }
        if sign == '=' && rest.starts_with(')') {
            break;
        }
        let behind = rest.trim_start_matches(|c: char| c.is_alphanumeric() || "_.".contains(c));
        if !rest.starts_with(|c: char| c.is_alphabetic() || c == '_') {
            return Begins::No;
        }
        if behind.is_empty() {
            return Begins::Perhaps;
        }
        let Some(behind) = behind.strip_prefix(sign) else {
            return Begins::No;
        };
        rest = behind.trim_start();
    }
    Begins::Yes
}

/// Returns calls in other formats in text order, without nested ones.
pub(crate) fn other_formats(text: &str) -> Vec<(Span, CallFormat)> {
    let tags = tags(text);
    let mut objects = objects(text).into_iter().peekable();
    let mut found = Vec::new();
    for (span, format, until) in tags {
        while let Some(object) = objects.next_if(|object| object.start < span.start) {
            found.push((object, CallFormat::Json));
        }
        // The call after a tag is not a second match.
        while objects.next_if(|object| object.start <= until).is_some() {}
        found.push((span, format));
    }
    found.extend(objects.map(|object| (object, CallFormat::Json)));
    found
}

/// Returns the tags that count, each with the position where its call begins.
fn tags(text: &str) -> Vec<(Span, CallFormat, usize)> {
    let mut found = Vec::new();
    for (tag, format) in other_tags(text) {
        let behind = text.get(tag.end..).unwrap_or_default();
        let near = behind
            .get(..floor_char_boundary(behind, NEAR))
            .unwrap_or_default();
        let is_rest_of_tag = |c: char| !c.is_whitespace() && !"{[<".contains(c);
        let call = near.trim_start_matches(is_rest_of_tag).trim_start();
        // Without its tokens, `json` precedes the arguments.
        let arguments = call.trim_start_matches("json").trim_start();
        let is_followed = format == CallFormat::Tag
            && (call.starts_with(['{', '[', '<']) || arguments.starts_with('{'));
        let whole = text.get(tag.start..).unwrap_or_default();
        let is_whole = format == CallFormat::Tag || begins_python(whole) == Begins::Yes;
        if is_followed || is_whole && is_first_on_line(text, tag.start) {
            let name = near.find('(').filter(|_| format == CallFormat::Python);
            let tag = Span::new(tag.start, tag.end + name.unwrap_or(0));
            let inner = call.trim_start_matches(|c: char| c == '[' || c.is_whitespace());
            let until = tag.end + near.len() - inner.len();
            found.push((tag, format, until));
        }
    }
    found
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
