//! Unpaired surrogates in JSON text. Programs that count UTF-16 units, such as JavaScript, may split an emoji
//! and write each half as an escape: `"\ud83d"`. UTF-8 cannot represent a half, so readers reject such JSON.

use std::borrow::Cow;
use std::mem::take;

/// The replacement for an unpaired surrogate.
const REPLACEMENT: &str = "\\ufffd";
/// The length of an escape such as `\ud83d`.
const ESCAPE: usize = 6;

/// Replaces each unpaired surrogate by U+FFFD.
pub fn replace_lone_surrogates(json: &str) -> Cow<'_, str> {
    rewrite(json, None)
}

/// Joins surrogate pairs that were split between the events of a stream.
///
/// A high surrogate at the end of a string waits for the next event in which the same field has text. If that begins with the low
/// surrogate, they become one character there; otherwise the half becomes U+FFFD.
#[derive(Clone, Debug, Default)]
pub struct SurrogateJoiner {
    waiting: Option<Half>,
}

/// A high surrogate.
#[derive(Clone, Debug)]
struct Half {
    /// The name of the field that ended with it.
    field: String,
    escape: String,
}

impl SurrogateJoiner {
    /// Returns whether a surrogate is waiting.
    pub fn is_waiting(&self) -> bool {
        self.waiting.is_some()
    }

    /// Returns the JSON of the next event, completed with a waiting surrogate.
    pub fn join<'j>(&mut self, json: &'j str) -> Cow<'j, str> {
        rewrite(json, Some(&mut self.waiting))
    }
}

/// Rewrites the strings of a JSON document. A high surrogate at the end of one waits in `pending`, if given.
fn rewrite<'j>(json: &'j str, mut place: Option<&mut Option<Half>>) -> Cow<'j, str> {
    let mut waiting = place.as_deref_mut().and_then(take);
    if waiting.is_none() && !json.contains("\\ud") && !json.contains("\\uD") {
        return Cow::Borrowed(json);
    }
    let mut out = String::with_capacity(json.len() + ESCAPE);
    let mut next = None;
    let mut field = "";
    let mut rest = json;
    while let Some((before, text, after)) = next_text(rest) {
        out.push_str(before);
        rest = after;
        if after.trim_ascii_start().starts_with(':') {
            field = text;
            push_whole(text, &mut out);
            out.push('"');
            continue;
        }
        let (text, high) = match high_at_the_end(text) {
            Some((text, escape)) if place.is_some() => (text, Some(escape)),
            _ => (text, None),
        };
        let mut text = text;
        let has_text = !text.is_empty() || high.is_some();
        if let Some(half) = waiting.take_if(|half| has_text && half.field == field) {
            if unit(text).is_some_and(is_low) {
                let (low, behind) = text.split_at(ESCAPE);
                out.push_str(&half.escape);
                out.push_str(low);
                text = behind;
            } else {
                out.push_str(REPLACEMENT);
            }
        }
        push_whole(text, &mut out);
        out.push('"');
        if let Some(escape) = high {
            next = Some(Half {
                field: field.to_owned(),
                escape: escape.to_owned(),
            });
        }
    }
    out.push_str(rest);
    if let Some(place) = &mut place {
        **place = next.or(waiting);
    }
    Cow::Owned(out)
}

/// Splits the JSON at its next string: the part up to its first quote, the string, and the part after its second one.
fn next_text(json: &str) -> Option<(&str, &str, &str)> {
    let (before, rest) = json.split_at_checked(json.find('"')? + 1)?;
    let mut bytes = rest.bytes().enumerate();
    while let Some((place, byte)) = bytes.next() {
        match byte {
            b'"' => return Some((before, rest.get(..place)?, rest.get(place + 1..)?)),
            b'\\' => {
                bytes.next();
            }
            _ => {}
        }
    }
    None
}

/// Writes a string with U+FFFD for each unpaired surrogate.
fn push_whole(text: &str, out: &mut String) {
    let mut rest = text;
    while let Some((before, escape)) = rest.find('\\').and_then(|at| rest.split_at_checked(at)) {
        out.push_str(before);
        let length = match unit(escape) {
            Some(high) if is_high(high) => match escape.get(ESCAPE..).and_then(unit) {
                Some(low) if is_low(low) => 2 * ESCAPE,
                _ => 0,
            },
            Some(low) if is_low(low) => 0,
            Some(_) => ESCAPE,
            None => 2,
        };
        let (kept, after) = if length == 0 {
            (REPLACEMENT, escape.get(ESCAPE..))
        } else {
            (escape.get(..length).unwrap_or(escape), escape.get(length..))
        };
        out.push_str(kept);
        rest = after.unwrap_or_default();
    }
    out.push_str(rest);
}

/// Splits a high surrogate off the end of a string.
fn high_at_the_end(text: &str) -> Option<(&str, &str)> {
    let at = text.len().checked_sub(ESCAPE)?;
    let (before, escape) = text.split_at_checked(at)?;
    let is_escaped = before
        .bytes()
        .rev()
        .take_while(|&byte| byte == b'\\')
        .count()
        % 2
        == 1;
    (!is_escaped && unit(escape).is_some_and(is_high)).then_some((before, escape))
}

/// Returns the UTF-16 unit at the beginning of the text, if it is written as `\uXXXX`.
fn unit(text: &str) -> Option<u16> {
    let digits = text.strip_prefix("\\u")?.get(..4)?;
    digits
        .bytes()
        .all(|digit| digit.is_ascii_hexdigit())
        .then(|| u16::from_str_radix(digits, 16).ok())?
}

fn is_high(unit: u16) -> bool {
    matches!(unit, 0xd800..=0xdbff)
}

fn is_low(unit: u16) -> bool {
    matches!(unit, 0xdc00..=0xdfff)
}
