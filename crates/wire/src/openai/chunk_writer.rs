//! Writes the chunks of a streamed response without intermediate values.

use std::collections::HashSet;

use super::chunk::ChatCompletionChunk;
use super::error::{ErrorBody, ErrorObject};
use super::message::ToolCall;
use super::response::Usage;
use crate::ToJson;
use crate::json::Json;
use crate::sse::encode_data;
use crate::write_to;

/// The length of the rest of most events, in bytes, so that few are copied while they grow.
const EVENT_ROOM: usize = 192;

/// The maximum number of unknown fields kept for each object of the next chunk.
const MOST_FIELDS: usize = 256;
/// Their maximum total length, in bytes.
const MOST_BYTES: usize = 1 << 20;

/// The fields that all chunks of a stream repeat. All fields are public, so that literals with `..ChunkHead::default()` work.
#[derive(Clone, Debug, Default)]
pub struct ChunkHead<'a> {
    /// The id of the response.
    pub id: &'a str,
    /// The creation time, in seconds since 1970.
    pub created: u64,
    /// The model.
    pub model: &'a str,
    /// The service tier, if known.
    pub service_tier: Option<&'a str>,
    /// The fingerprint of the system, if known.
    pub system_fingerprint: Option<&'a str>,
    /// Whether the client requested the usage; if so, every other chunk has `"usage": null`.
    pub includes_usage: bool,
}

/// The field in which reasoning is streamed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReasoningField {
    /// `reasoning_content`
    ReasoningContent,
    /// `reasoning`
    Reasoning,
}

/// Writes the events of one streamed response to a buffer.
///
/// The caller ensures the order: [`role`](Self::role) first, [`finish`](Self::finish) once, then
/// [`usage`](Self::usage) if the client requested it, then [`done_event`].
///
/// ```
/// use plaincall_wire::openai::{ChunkHead, ChunkWriter, done_event};
///
/// let head = ChunkHead { id: "chatcmpl-1", created: 1_700_000_000, model: "m", ..ChunkHead::default() };
/// let mut writer = ChunkWriter::new(&head, 0);
/// let mut out = Vec::new();
/// writer.call(0, "call_1", "add", &mut out);
/// writer.arguments(0, r#"{"a":1"#, &mut out);
/// done_event(&mut out);
/// assert_eq!(
///     String::from_utf8(out)?,
///     concat!(
///         r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"id":"call_1","type":"function","function":{"name":"add","arguments":""}}]},"logprobs":null,"finish_reason":null}]}"#,
///         "\n\n",
///         r#"data: {"id":"chatcmpl-1","object":"chat.completion.chunk","created":1700000000,"model":"m","choices":[{"index":0,"delta":{"tool_calls":[{"index":0,"function":{"arguments":"{\"a\":1"}}]},"logprobs":null,"finish_reason":null}]}"#,
///         "\n\ndata: [DONE]\n\n",
///     )
/// );
/// # Ok::<(), std::string::FromUtf8Error>(())
/// ```
#[derive(Clone, Debug)]
pub struct ChunkWriter {
    /// The beginning of an event, up to the list of choices.
    head: Vec<u8>,
    /// The beginning of the choice, up to its delta.
    choice: Vec<u8>,
    includes_usage: bool,
    /// Fields of read chunks for the next written one.
    carried: Carried,
}

#[derive(Clone, Debug, Default)]
struct Carried {
    chunk: Fields,
    choice: Fields,
    delta: Fields,
}

/// Names and JSON texts.
#[derive(Clone, Debug, Default)]
struct Fields(Vec<(String, String)>);

impl ChunkWriter {
    /// Creates a writer for the choice with this index, usually 0.
    pub fn new(head: &ChunkHead<'_>, choice: u64) -> Self {
        let mut begin = b"{\"index\":".to_vec();
        write_to(&choice, &mut begin);
        begin.extend_from_slice(b",\"delta\":{");
        Self {
            head: head.written(),
            choice: begin,
            includes_usage: head.includes_usage,
            carried: Carried::default(),
        }
    }

    /// Changes the repeated fields for the following chunks. Carried fields stay.
    pub fn set_head(&mut self, head: &ChunkHead<'_>) {
        self.head = head.written();
        self.includes_usage = head.includes_usage;
    }

    /// Writes the first chunk, with the role.
    pub fn role(&mut self, out: &mut Vec<u8>) {
        self.begin(out);
        out.extend_from_slice(b"\"role\":\"assistant\",\"content\":\"\"");
        self.end(None, out);
    }

    /// Writes a piece of the text.
    pub fn content(&mut self, text: &str, out: &mut Vec<u8>) {
        self.text("content", text, out);
    }

    /// Writes a piece of the reasoning.
    pub fn reasoning(&mut self, name: ReasoningField, text: &str, out: &mut Vec<u8>) {
        let name = match name {
            ReasoningField::ReasoningContent => "reasoning_content",
            ReasoningField::Reasoning => "reasoning",
        };
        self.text(name, text, out);
    }

    /// Writes a piece of the text with which the model declines to answer.
    pub fn refusal(&mut self, text: &str, out: &mut Vec<u8>) {
        self.text("refusal", text, out);
    }

    fn text(&mut self, name: &str, text: &str, out: &mut Vec<u8>) {
        self.begin(out);
        field(name, &text, out);
        self.end(None, out);
    }

    /// Writes the start of a call: its index, from 0 without gaps, its id and the name of the tool.
    pub fn call(&mut self, index: u64, id: &str, name: &str, out: &mut Vec<u8>) {
        self.begin(out);
        out.extend_from_slice(b"\"tool_calls\":[{\"index\":");
        write_to(&index, out);
        out.extend_from_slice(b",\"id\":");
        write_to(&id, out);
        out.extend_from_slice(b",\"type\":\"function\",\"function\":{\"name\":");
        write_to(&name, out);
        out.extend_from_slice(b",\"arguments\":\"\"}}]");
        self.end(None, out);
    }

    /// Writes a piece of the text of a call's arguments.
    pub fn arguments(&mut self, index: u64, piece: &str, out: &mut Vec<u8>) {
        self.begin(out);
        out.extend_from_slice(b"\"tool_calls\":[{\"index\":");
        write_to(&index, out);
        out.extend_from_slice(b",\"function\":{\"arguments\":");
        write_to(&piece, out);
        out.extend_from_slice(b"}}]");
        self.end(None, out);
    }

    /// Writes a piece of a call as another server wrote it, with this index and without fields that are `null`.
    pub fn call_piece(&mut self, index: u64, piece: &ToolCall<'_>, out: &mut Vec<u8>) {
        let mut piece = piece.clone();
        piece.index = Some(index);
        piece.unknown.forget_nulls();
        if let Some(function) = &mut piece.function {
            function.unknown.forget_nulls();
        }
        self.begin(out);
        out.extend_from_slice(b"\"tool_calls\":[");
        one_line(out, |out| write_to(&piece, out));
        out.push(b']');
        self.end(None, out);
    }

    /// Writes a chunk with an empty delta. Carried fields stay.
    pub fn empty(&self, out: &mut Vec<u8>) {
        self.begin(out);
        out.extend_from_slice(b"},\"logprobs\":null,\"finish_reason\":null}]");
        self.end_chunk(out);
    }

    /// Writes the end of the response with a finish reason.
    pub fn finish(&mut self, reason: &str, out: &mut Vec<u8>) {
        self.begin(out);
        self.end(Some(reason), out);
    }

    /// Writes the usage, in a chunk without choices.
    pub fn usage(&mut self, usage: &Usage<'_>, out: &mut Vec<u8>) {
        out.extend_from_slice(&self.head);
        out.extend_from_slice(b"],\"usage\":");
        one_line(out, |out| write_to(usage, out));
        self.carried.chunk.write(false, out);
        out.extend_from_slice(b"}\n\n");
    }

    /// Carries the unknown fields and token probabilities of a read chunk over to the next written one. A repeated field
    /// replaces its earlier value.
    ///
    /// For each of chunk, choice and delta, at most 256 fields and 1 MiB are carried; the rest is dropped.
    pub fn carry(&mut self, chunk: &ChatCompletionChunk<'_>, choice: u64) {
        self.carried.chunk.keep(chunk.unknown.iter());
        let is_ours = |number: Option<u64>| number.unwrap_or_default() == choice;
        for choice in chunk.choices().iter().filter(|one| is_ours(one.index)) {
            let logprobs = choice.logprobs.iter().map(|value| ("logprobs", value));
            let fields = choice.unknown.iter().chain(logprobs);
            self.carried.choice.keep(fields);
            if let Some(delta) = &choice.delta {
                self.carried.delta.keep(delta.unknown.iter());
            }
        }
    }

    fn begin(&self, out: &mut Vec<u8>) {
        out.reserve(self.head.len() + self.choice.len() + EVENT_ROOM);
        out.extend_from_slice(&self.head);
        out.extend_from_slice(&self.choice);
    }

    fn end(&mut self, reason: Option<&str>, out: &mut Vec<u8>) {
        let is_first = out.ends_with(b"{");
        self.carried.delta.write(is_first, out);
        out.push(b'}');
        if !self.carried.choice.holds("logprobs") {
            out.extend_from_slice(b",\"logprobs\":null");
        }
        self.carried.choice.write(false, out);
        out.extend_from_slice(b",\"finish_reason\":");
        write_to(&reason, out);
        out.extend_from_slice(b"}]");
        self.carried.chunk.write(false, out);
        self.end_chunk(out);
    }

    fn end_chunk(&self, out: &mut Vec<u8>) {
        if self.includes_usage {
            out.extend_from_slice(b",\"usage\":null");
        }
        out.extend_from_slice(b"}\n\n");
    }
}

impl ChunkHead<'_> {
    /// Returns the beginning of an event, up to the list of choices.
    fn written(&self) -> Vec<u8> {
        let mut bytes = b"data: {\"id\":".to_vec();
        write_to(&self.id, &mut bytes);
        bytes.extend_from_slice(b",\"object\":\"chat.completion.chunk\",\"created\":");
        write_to(&self.created, &mut bytes);
        bytes.extend_from_slice(b",\"model\":");
        write_to(&self.model, &mut bytes);
        let optional = [
            ("service_tier", self.service_tier),
            ("system_fingerprint", self.system_fingerprint),
        ];
        for (name, value) in optional {
            if let Some(value) = value {
                bytes.push(b',');
                field(name, &value, &mut bytes);
            }
        }
        bytes.extend_from_slice(b",\"choices\":[");
        bytes
    }
}

impl Fields {
    fn holds(&self, name: &str) -> bool {
        self.0.iter().any(|(known, _)| known == name)
    }

    /// Adds these fields, replacing those with the same names.
    fn keep<'f>(&mut self, fields: impl Iterator<Item = (&'f str, &'f Json<'f>)> + Clone) {
        if !self.0.is_empty() {
            let names: HashSet<&str> = fields.clone().map(|(name, _)| name).collect();
            self.0.retain(|(name, _)| !names.contains(name.as_str()));
        }
        let kept = self.0.iter().map(|(name, value)| name.len() + value.len());
        let mut bytes: usize = kept.sum();
        for (name, value) in fields {
            let more = name.len() + value.text().len();
            if self.0.len() < MOST_FIELDS && bytes + more <= MOST_BYTES {
                self.0.push((name.to_owned(), value.text().to_owned()));
                bytes += more;
            }
        }
    }

    /// Writes the fields after other fields, or as the first of their object.
    fn write(&mut self, is_first: bool, out: &mut Vec<u8>) {
        for (number, (name, value)) in self.0.drain(..).enumerate() {
            if number > 0 || !is_first {
                out.push(b',');
            }
            write_to(&name, out);
            out.push(b':');
            one_line(out, |out| out.extend_from_slice(value.as_bytes()));
        }
    }
}

/// Writes the event that ends a stream with an error.
pub fn error_event(error: &ErrorObject<'_>, out: &mut Vec<u8>) {
    encode_data(&crate::write(&ErrorBody::new(error.clone())), out);
}

/// Writes the event that ends a stream.
pub fn done_event(out: &mut Vec<u8>) {
    encode_data("[DONE]", out);
}

fn field(name: &str, value: &impl ToJson, out: &mut Vec<u8>) {
    write_to(&name, out);
    out.push(b':');
    write_to(value, out);
}

/// Replaces line ends, which JSON contains only between values. In an event, they would end its line.
fn one_line(out: &mut Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
    let begin = out.len();
    write(out);
    let written = out.get_mut(begin..).unwrap_or_default();
    for byte in written
        .iter_mut()
        .filter(|byte| matches!(byte, b'\n' | b'\r'))
    {
        *byte = b' ';
    }
}
