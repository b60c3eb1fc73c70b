//! Ollama's API: [`ChatRequest`] and [`ChatResponse`] of `POST /api/chat`, and the lines of a streamed response.

use std::borrow::Cow;

use crate::ToJson;
use crate::json::Json;
use crate::openai::{ToolCall, ToolChoice};

object! {
    /// The body of a request. Fields that do not change the reply, such as `keep_alive`, are in `unknown`.
    pub struct ChatRequest<'a> {
        /// The model.
        "model" model: Option<Cow<'a, str>>,
        /// The conversation so far.
        "messages" messages: Option<Vec<Message<'a>>>,
        /// The tools, in the format of chat completions.
        "tools" tools: Option<Json<'a>>,
        /// The tool choice of chat completions, which the API does not have.
        "tool_choice" tool_choice: Option<ToolChoice<'a>>,
        /// Whether a reply may have several calls, which the API does not have.
        "parallel_tool_calls" parallel_tool_calls: Option<bool>,
        /// The format of the text: `json`, or a JSON Schema.
        "format" format: Option<Json<'a>>,
        /// The options of the model.
        "options" options: Option<Options<'a>>,
        /// Whether the response is streamed. Default: `true`.
        "stream" stream: Option<bool>,
        /// Whether the model thinks, or how much: `high`, `medium`, `low`.
        "think" think: Option<Json<'a>>,
    }

    /// The options of a model. Sampling parameters and others are in `unknown`.
    pub struct Options<'a> {
        /// The maximum number of output tokens, unless it is negative.
        "num_predict" num_predict: Option<Json<'a>>,
    }

    /// A message of the conversation or of a response.
    pub struct Message<'a> {
        /// The role: `system`, `user`, `assistant` or `tool`.
        "role" role: Option<Cow<'a, str>>,
        /// The text.
        "content" content: Option<Cow<'a, str>>,
        /// The reasoning.
        "thinking" thinking: Option<Cow<'a, str>>,
        /// The images, in Base64.
        "images" images: Option<Vec<Cow<'a, str>>>,
        /// The calls. Their arguments are objects, and not every client sends their ids back.
        "tool_calls" tool_calls: Option<Vec<ToolCall<'a>>>,
        /// The name of the tool, in a message with the role `tool`.
        "tool_name" tool_name: Option<Cow<'a, str>>,
        /// The id of the call, in a message with the role `tool`.
        "tool_call_id" tool_call_id: Option<Cow<'a, str>>,
    }

    /// A response, or a line of a streamed one. Only the last line has the fields from `done_reason` on. Durations are in
    /// nanoseconds.
    pub struct ChatResponse<'a> {
        /// The model that answered.
        "model" model: Option<Cow<'a, str>>,
        /// The creation time, as in RFC 3339.
        "created_at" created_at: Option<Cow<'a, str>>,
        /// The message, or a piece of it.
        "message" message: Option<Message<'a>>,
        /// Whether the response is complete.
        "done" done: Option<bool>,
        /// The reason for its end: `stop`, `length`.
        "done_reason" done_reason: Option<Cow<'a, str>>,
        /// The duration of the whole request.
        "total_duration" total_duration: Option<u64>,
        /// The time to load the model.
        "load_duration" load_duration: Option<u64>,
        /// The number of input tokens.
        "prompt_eval_count" prompt_eval_count: Option<u64>,
        /// The time to read the input.
        "prompt_eval_duration" prompt_eval_duration: Option<u64>,
        /// The number of output tokens.
        "eval_count" eval_count: Option<u64>,
        /// The time to write the output.
        "eval_duration" eval_duration: Option<u64>,
    }

    /// The body of an error response, and the last line of a stream that failed.
    pub struct ErrorBody<'a> {
        /// The message for people.
        "error" error: Option<Cow<'a, str>>,
    }
}

/// Characters that some clients treat as line ends, and their JSON escapes.
const SEPARATORS: [(char, &str); 3] = [
    ('\u{85}', "\\u0085"),
    ('\u{2028}', "\\u2028"),
    ('\u{2029}', "\\u2029"),
];

/// Appends a line of a streamed response. Characters that some clients treat as line ends are escaped.
pub fn encode_line(value: &impl ToJson, out: &mut Vec<u8>) {
    let mut line = crate::write(value);
    for (separator, escape) in SEPARATORS {
        if line.contains(separator) {
            line = line.replace(separator, escape);
        }
    }
    out.extend_from_slice(line.as_bytes());
    out.push(b'\n');
}

/// Returns a time in seconds since 1970 as in RFC 3339.
///
/// ```
/// assert_eq!(plaincall_wire::ollama::time(1_709_210_096), "2024-02-29T12:34:56Z");
/// ```
pub fn time(seconds: u64) -> String {
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    // Years begin in March, so that a leap day is the last one; 719,468 days are from March of the year 0 to 1970.
    let days = days + 719_468;
    let (era, day) = (days / 146_097, days % 146_097);
    let year = (day - day / 1_460 + day / 36_524 - day / 146_096) / 365;
    let day = day - (365 * year + year / 4 - year / 100);
    let month = (5 * day + 2) / 153;
    let day = day - (153 * month + 2) / 5 + 1;
    let (year, month) = match month {
        0..10 => (era * 400 + year, month + 3),
        _ => (era * 400 + year + 1, month - 9),
    };
    let (hour, minute, second) = (second / 3_600, second / 60 % 60, second % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}
