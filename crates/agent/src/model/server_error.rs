//! Error messages for the error responses of servers.

use std::fmt;
use std::time::Duration;

use plaincall_http::http::header::LOCATION;
use plaincall_http::{HttpResponse, retry_after};
use plaincall_wire::openai::{ErrorObject, read_error};
use plaincall_wire::{Json, page_title};

use super::ModelError;
use super::ModelErrorKind::{Broken, Busy, Refused, TooLong};
use crate::text::one_line;

/// The longest part of a server's message that is quoted, in bytes.
const WORDS: usize = 600;

#[derive(Clone, Debug)]
pub(super) struct Asked<'a> {
    /// The base URL of the server.
    pub(super) base: String,
    /// The path of the request.
    pub(super) path: &'a str,
    pub(super) model: &'a str,
    pub(super) has_key: bool,
}

impl Asked<'_> {
    pub(super) fn server(&self) -> String {
        format!("the model's server at {}", self.base)
    }

    /// The error of a response that does not match the API.
    pub(super) fn cannot_be_read(&self, error: &dyn fmt::Display) -> ModelError {
        let message = format!("the response of {} is invalid: {error}", self.server());
        ModelError::new(Broken, message)
    }

    fn refused(&self, why: &str) -> ModelError {
        ModelError::new(Refused, format!("{} {why}", self.server()))
    }

    /// The advice for a wrong URL.
    fn other_address(&self) -> String {
        let versions = ["/v1", "/v1beta", "/openai", "/v2", "/v3", "/v4"];
        if versions.iter().any(|version| self.base.contains(version)) {
            return "is the URL right?".to_owned();
        }
        format!("the URL may need to end with /v1: {}/v1", self.base)
    }
}

/// Lower-case codes, types and phrases of servers for too long a conversation.
const TOO_LONG: [&str; 27] = [
    "context_length_exceeded",
    "context_window_exceeded",
    "exceed_context_size",
    "model_max_prompt_tokens_exceeded",
    "request_too_large",
    "context length",
    "context_length",
    "context window",
    "context size",
    "context limit",
    "maximum context",
    "max context",
    "available context",
    "context overflow",
    "context the overflows",
    "prompt is too long",
    "input is too long",
    "prompt too long",
    "too many tokens",
    "too many input tokens",
    "maximum prompt length",
    "maximum input length",
    "input token count",
    "prompt token count",
    "tokens in the input",
    "exceeds the maximum number of tokens",
    "n_keep >= n_ctx",
];

/// Codes and phrases of servers for missing credit.
const NO_CREDIT: [&str; 8] = [
    "insufficient_quota",
    "insufficient_balance",
    "insufficient balance",
    "insufficient credit",
    "billing_not_active",
    "billing_hard_limit",
    "credit balance",
    "more credits",
];

/// Returns a response without an error status.
pub(super) async fn checked(
    mut answer: HttpResponse,
    asked: &Asked<'_>,
) -> Result<HttpResponse, ModelError> {
    if answer.is_success() {
        return Ok(answer);
    }
    let body = answer.error_body(Vec::new()).await;
    Err(by_status(&answer, &body, asked))
}

/// Converts an error response, by its status and body.
fn by_status(answer: &HttpResponse, body: &[u8], asked: &Asked<'_>) -> ModelError {
    let status = answer.status();
    let headers = answer.headers();
    if (300..400).contains(&status) {
        let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
        // The query may contain a key.
        let to = to.map(|to| to.split('?').next().unwrap_or_default());
        let to = to.map_or(String::new(), |to| format!(" to {}", cut(to)));
        return asked.refused(&format!(
            "redirects{to} (status {status}), which is not followed; use the URL of the server itself"
        ));
    }
    let error = match page_title(&answer.content_type(), body) {
        Some(title) if title.is_empty() => ErrorObject::new("", "an HTML page"),
        Some(title) => ErrorObject::new("", format!("an HTML page, {title}")),
        None => read_error(body),
    };
    let mut found = by_words(Some(status), &error, asked);
    found.retry_after = retry_after(headers).or_else(|| retry_delay(&error));
    found
}

/// Converts an error object of a server, possibly in the middle of a response.
pub(super) fn by_words(
    status: Option<u16>,
    error: &ErrorObject<'_>,
    asked: &Asked<'_>,
) -> ModelError {
    let words = error.message.as_deref().unwrap_or_default();
    let kind = error.kind.as_deref().unwrap_or_default();
    let code = error.code.as_ref().map_or("", Json::text);
    let text = format!("{kind} {code} {words}").to_lowercase();
    let holds = |list: &[&str]| list.iter().any(|word| text.contains(word));
    let known = status.or_else(|| error.status());
    let place = known.map_or(String::new(), |status| format!(" (status {status})"));
    let words = match cut(words) {
        words if words.is_empty() => String::new(),
        words => format!(": {words}"),
    };
    let server = asked.server();
    let model = asked.model;
    if known != Some(429) && holds(&TOO_LONG) || known == Some(413) {
        let message =
            format!("the conversation exceeds the context window of the model `{model}`{words}");
        return ModelError::new(TooLong, message);
    }
    let details = format!("{place}{words}");
    if known == Some(402) || holds(&NO_CREDIT) {
        return asked.refused(&format!(
            "requires payment{details}; check the account of the key"
        ));
    }
    asked.refused(&match known {
        Some(401) if asked.has_key => {
            format!("rejected the key{details}; is it the right one for this server?")
        }
        Some(401) => format!("requires a key{details}"),
        Some(403) => {
            format!("denied access{details}; may the key use the model `{model}`?")
        }
        Some(404) if text.contains("model") && !text.contains("an html page") => format!(
            "does not have the model `{model}`{details}; {}/models lists its models",
            asked.base
        ),
        Some(404 | 405) => {
            let (path, other) = (asked.path, asked.other_address());
            format!("has no endpoint {path}{details}; {other}")
        }
        Some(408 | 409 | 425 | 429) => {
            return ModelError::new(Busy, format!("{server} is busy{details}"));
        }
        Some(500..) => return ModelError::new(Busy, format!("{server} failed{details}")),
        Some(400..) => format!("rejected the request{details}"),
        _ => return ModelError::new(Broken, format!("{server} failed{words}")),
    })
}

pub(super) fn page(title: &str, asked: &Asked<'_>) -> ModelError {
    let title = match title {
        "" => String::new(),
        title => format!(" ({title})"),
    };
    asked.refused(&format!(
        "returned an HTML page{title} instead of a model's response; {}",
        asked.other_address()
    ))
}

pub(super) fn unreadable(body: &[u8], asked: &Asked<'_>) -> ModelError {
    asked.refused(&format!(
        "returned something other than a model's response: {}; {}",
        cut(&String::from_utf8_lossy(body)),
        asked.other_address()
    ))
}

/// The error if a server parsed a native call out of the text although the request had no tools.
pub(super) fn native_call(asked: &Asked<'_>) -> ModelError {
    asked.refused(
        "returned a native tool call although the request has no tools; turn off its tool calls (vLLM: without --enable-auto-tool-choice; llama.cpp: without --jinja, or with another chat template)",
    )
}

fn cut(words: &str) -> String {
    one_line(words, WORDS)
}

/// The delay that a server asks for in the error body, as Google sends it: `"details":[{"retryDelay":"30s"}]`.
fn retry_delay(error: &ErrorObject<'_>) -> Option<Duration> {
    let details: Vec<serde_json::Value> = error.unknown.get("details")?.read().ok()?;
    let delays = details.iter().filter_map(|detail| detail.get("retryDelay"));
    let seconds = delays.filter_map(|delay| delay.as_str()?.strip_suffix('s'));
    let mut seconds = seconds.filter_map(|seconds| seconds.parse().ok());
    Duration::try_from_secs_f64(seconds.next()?).ok()
}
