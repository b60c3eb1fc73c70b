//! The texts in fields of a request that the gateway does not know.

use std::borrow::Cow;
use std::iter;
use std::ops::Range;

use memchr::{memchr, memchr2_iter};
use plaincall_reply::{PromptTextBuilder, Untrusted};
use plaincall_wire::openai::constrained;
use plaincall_wire::{Json, Unknown, replace_lone_surrogates};

/// The fields whose strings are addresses, encoded files or ids.
const DATA: [&str; 10] = [
    "audio_url",
    "data",
    "file_data",
    "file_id",
    "file_url",
    "id",
    "image_url",
    "url",
    "uuid",
    "video_url",
];
/// The fields of a request that direct the model server. Fields that begin with `stop` and those for grammars do too.
const DIRECTIVES: [&str; 2] = ["bad_words", "chat_template"];

/// Whose fields they are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Fields {
    /// Fields of a message or a part of its content.
    Message,
    /// Options of the request, some of which direct the model server and stay unchanged.
    Request,
}

impl Fields {
    fn has_text(self, name: &str) -> bool {
        let directs = || name.starts_with("stop") || DIRECTIVES.contains(&name);
        self == Self::Message || !directs() && !constrained::REQUEST_FIELDS.contains(&name)
    }
}

/// Escapes the texts in unknown fields, for the dialects of a prompt. Fields whose names contain a marker are removed.
pub(super) fn escape(fields: &mut Unknown<'_>, of: Fields, prompt_text: &PromptTextBuilder) {
    let mut changed = Vec::new();
    for (name, json) in fields.iter().filter(|(name, _)| of.has_text(name)) {
        let is_plain = is_name(name) || prompt_text.escape(Untrusted::new(name)) == name;
        let json = escaped(name, json.text(), prompt_text);
        if !is_plain || json.is_some() {
            changed.push((name.to_owned(), json.filter(|_| is_plain)));
        }
    }
    for (name, json) in changed {
        // The client may have sent it twice.
        fields.remove(&name);
        if let Some(json) = json {
            fields.set(name, json);
        }
    }
}

/// Returns the texts in unknown fields.
pub(super) fn texts<'f>(
    fields: &'f Unknown<'_>,
    of: Fields,
) -> impl Iterator<Item = Cow<'f, str>> + 'f {
    let fields = fields.iter().filter(move |(name, _)| of.has_text(name));
    fields.flat_map(|(name, json)| {
        let json = json.text();
        strings(name, json).filter_map(|range| decoded(json.get(range)?).map(Cow::Owned))
    })
}

/// Escapes the texts in the JSON of a field; `None` if none has a marker.
fn escaped(name: &str, json: &str, prompt_text: &PromptTextBuilder) -> Option<Json<'static>> {
    let mut out = String::new();
    let mut copied = 0;
    for range in strings(name, json) {
        let text = decoded(json.get(range.clone())?);
        let escaped = match text
            .as_deref()
            .map(|text| prompt_text.escape(Untrusted::new(text)))
        {
            Some(Cow::Borrowed(_)) => continue,
            Some(Cow::Owned(escaped)) => escaped,
            // Every string of valid JSON can be read.
            None => String::new(),
        };
        out.push_str(json.get(copied..range.start)?);
        out.push_str(&plaincall_wire::write(&escaped));
        copied = range.end;
    }
    if copied == 0 {
        return None;
    }
    out.push_str(json.get(copied..)?);
    Some(Json::parse(&out).ok()?.into_owned())
}

/// Returns whether a text is an ordinary name of a field, a kind or a role. Such a name is not escaped, even if it is a marker.
pub(super) fn is_name(text: &str) -> bool {
    let is_part = |byte: u8| byte.is_ascii_alphanumeric() || b"_-.".contains(&byte);
    text.bytes().all(is_part)
}

/// Returns the places of the keys and the strings in the JSON of a field, with their quotes, except for ordinary keys and strings
/// that are data.
fn strings<'j>(name: &'j str, json: &'j str) -> impl Iterator<Item = Range<usize>> + 'j {
    let mut at = 0;
    let mut key = Some(name);
    iter::from_fn(move || {
        loop {
            let start = at + memchr(b'"', json.as_bytes().get(at..)?)?;
            let end = start + 1 + end_of_string(json.get(start + 1..)?)?;
            let is_value = start == 0 || json.get(at..start)?.trim() == ":";
            at = end;
            let is_data = is_value && key.is_some_and(|key| DATA.contains(&key));
            let is_key = json.get(end..)?.trim_start().starts_with(':');
            key = json.get(start + 1..end - 1).filter(|_| is_key);
            if !is_data && !key.is_some_and(is_name) {
                return Some(start..end);
            }
        }
    })
}

/// Returns the place after the quote that ends a string.
fn end_of_string(text: &str) -> Option<usize> {
    let mut next = 0;
    let mut found = memchr2_iter(b'"', b'\\', text.as_bytes());
    loop {
        let at = found.by_ref().find(|at| *at >= next)?;
        if text.as_bytes().get(at) == Some(&b'"') {
            return Some(at + 1);
        }
        next = at + 2;
    }
}

/// Returns the text of a JSON string.
fn decoded(string: &str) -> Option<String> {
    serde_json::from_str(&replace_lone_surrogates(string)).ok()
}
