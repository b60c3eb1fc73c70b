//! What a server says when it does not answer, as a sentence that says what to do.

use std::fmt;
use std::time::{Duration, SystemTime};

use plaincall_http::HttpResponse;
use plaincall_http::http::header::{DATE, HeaderMap, LOCATION, RETRY_AFTER};
use plaincall_wire::openai::{ErrorObject, read_error};
use plaincall_wire::{Json, page_title};

use super::ModelError;
use super::ModelErrorKind::{Broken, Busy, Refused, TooLong};
use crate::text::one_line;

/// The longest part of a server's own words that is told, in bytes.
const WORDS: usize = 600;

#[derive(Clone, Debug)]
pub(super) struct Asked<'a> {
    /// The beginning of the server's addresses.
    pub(super) base: String,
    /// What stands behind it.
    pub(super) path: &'a str,
    pub(super) model: &'a str,
    pub(super) has_key: bool,
}

impl Asked<'_> {
    pub(super) fn server(&self) -> String {
        format!("the model's server at {}", self.base)
    }

    /// The answer is not what the API says.
    pub(super) fn cannot_be_read(&self, error: &dyn fmt::Display) -> ModelError {
        let message = format!("the answer of {} cannot be read: {error}", self.server());
        ModelError::new(Broken, message)
    }

    fn refused(&self, why: &str) -> ModelError {
        ModelError::new(Refused, format!("{} {why}", self.server()))
    }

    /// What to do if there is nothing at the address.
    fn other_address(&self) -> String {
        let versions = ["/v1", "/v1beta", "/openai", "/v2", "/v3", "/v4"];
        if versions.iter().any(|version| self.base.contains(version)) {
            return "is the address right?".to_owned();
        }
        format!("the address may want /v1 at its end: {}/v1", self.base)
    }
}

/// Codes, types and words of servers whose model cannot read so much. In small letters.
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

/// Codes and words of servers that will not go on without money.
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

/// Why an answer is none, by its status and body.
pub(super) fn by_status(answer: &HttpResponse, body: &[u8], asked: &Asked<'_>) -> ModelError {
    let status = answer.status();
    let headers = answer.headers();
    if (300..400).contains(&status) {
        let to = headers.get(LOCATION).and_then(|to| to.to_str().ok());
        // What stands behind the `?` may be a key.
        let to = to.map(|to| to.split('?').next().unwrap_or_default());
        let to = to.map_or(String::new(), |to| format!(" to {}", cut(to)));
        return asked.refused(&format!(
            "sends elsewhere{to} (status {status}), which is not followed: give the address of the server itself"
        ));
    }
    let error = match page_title(&answer.content_type(), body) {
        Some(title) if title.is_empty() => ErrorObject::new("", "a page for people"),
        Some(title) => ErrorObject::new("", format!("a page for people, {title}")),
        None => read_error(body),
    };
    let mut told = by_words(Some(status), &error, asked);
    told.retry_after = retry_after(headers).or_else(|| retry_delay(&error));
    told
}

/// Why an answer is none, or broke off, by what the server says about it.
pub(super) fn by_words(
    status: Option<u16>,
    error: &ErrorObject<'_>,
    asked: &Asked<'_>,
) -> ModelError {
    let words = error.message.as_deref().unwrap_or_default();
    let kind = error.kind.as_deref().unwrap_or_default();
    let code = error.code.as_ref().map_or("", Json::text);
    let said = format!("{kind} {code} {words}").to_lowercase();
    let holds = |list: &[&str]| list.iter().any(|word| said.contains(word));
    let number = code.parse().ok();
    let known = status.or(number).or_else(|| by_kind(&said));
    let place = known.map_or(String::new(), |status| format!(" (status {status})"));
    let words = match cut(words) {
        words if words.is_empty() => String::new(),
        words => format!(": {words}"),
    };
    let server = asked.server();
    let model = asked.model;
    if known != Some(429) && holds(&TOO_LONG) || known == Some(413) {
        let message =
            format!("the conversation is longer than the model `{model}` can read{words}");
        return ModelError::new(TooLong, message);
    }
    let said_place = format!("{place}{words}");
    if known == Some(402) || holds(&NO_CREDIT) {
        return asked.refused(&format!(
            "does not go on{said_place}; see to the account of the key"
        ));
    }
    asked.refused(&match known {
        Some(401) if asked.has_key => {
            format!("does not take the key{said_place}; is it the right one for this server?")
        }
        Some(401) => format!("wants a key{said_place}; none was given"),
        Some(403) => {
            format!("does not allow this{said_place}; may the key use the model `{model}`?")
        }
        Some(404) if said.contains("model") && !said.contains("a page for people") => format!(
            "does not have the model `{model}`{said_place}; {}/models lists what it has",
            asked.base
        ),
        Some(404 | 405) => {
            let (path, other) = (asked.path, asked.other_address());
            format!("has nothing at {path}{said_place}; {other}")
        }
        Some(408 | 409 | 425 | 429) => {
            return ModelError::new(Busy, format!("{server} is busy{said_place}"));
        }
        Some(500..) => return ModelError::new(Busy, format!("{server} has failed{said_place}")),
        Some(400..) => format!("refuses the request{said_place}"),
        _ => return ModelError::new(Broken, format!("{server} has failed{words}")),
    })
}

/// The status that a kind of error stands for, in an answer that had begun well.
fn by_kind(said: &str) -> Option<u16> {
    let kinds = [
        ("overloaded", 529),
        ("rate_limit", 429),
        ("authentication_error", 401),
        ("permission_error", 403),
        ("not_found_error", 404),
        ("invalid_request_error", 400),
        ("api_error", 500),
        ("server_error", 500),
    ];
    let first = said.split(' ').next()?;
    let found = kinds.into_iter().find(|(kind, _)| first.contains(kind));
    found.map(|(_, status)| status)
}

pub(super) fn page(title: &str, asked: &Asked<'_>) -> ModelError {
    let title = match title {
        "" => String::new(),
        title => format!(" ({title})"),
    };
    asked.refused(&format!(
        "has answered with a page for people{title}: at this address is no model; {}",
        asked.other_address()
    ))
}

pub(super) fn unreadable(body: &[u8], asked: &Asked<'_>) -> ModelError {
    asked.refused(&format!(
        "has answered with what no model's server says: {}; {}",
        cut(&String::from_utf8_lossy(body)),
        asked.other_address()
    ))
}

/// A server has found a call although it was offered no tools: it has taken out of the text what should be read there.
pub(super) fn native_call(asked: &Asked<'_>) -> ModelError {
    asked.refused(
        "has answered with a tool call of its own, though it was offered no tools: turn its tool calls off (vLLM: without --enable-auto-tool-choice; llama.cpp: without --jinja, or with another chat template)",
    )
}

fn cut(words: &str) -> String {
    one_line(words, WORDS)
}

/// How long a server wants to be left alone, in whichever way it says so.
fn retry_after(headers: &HeaderMap) -> Option<Duration> {
    let text = |name: &str| headers.get(name)?.to_str().ok().map(str::trim);
    let number = |text: &str| text.parse::<f64>().ok();
    let milliseconds = text("retry-after-ms").and_then(number);
    if let Some(milliseconds) = milliseconds {
        return Duration::try_from_secs_f64(milliseconds / 1000.0).ok();
    }
    let after = text(RETRY_AFTER.as_str())?;
    if let Some(seconds) = number(after) {
        return Duration::try_from_secs_f64(seconds).ok();
    }
    let at = httpdate::parse_http_date(after).ok()?;
    // The server's own clock counts, if it shows it.
    let date = text(DATE.as_str()).and_then(|date| httpdate::parse_http_date(date).ok());
    let now = date.unwrap_or_else(SystemTime::now);
    Some(at.duration_since(now).unwrap_or_default())
}

/// The same, as Google tells it in the error itself: `"details":[{"retryDelay":"30s"}]`.
fn retry_delay(error: &ErrorObject<'_>) -> Option<Duration> {
    let details: Vec<serde_json::Value> = error.unknown.get("details")?.read().ok()?;
    let delays = details.iter().filter_map(|detail| detail.get("retryDelay"));
    let seconds = delays.filter_map(|delay| delay.as_str()?.strip_suffix('s'));
    let mut seconds = seconds.filter_map(|seconds| seconds.parse().ok());
    Duration::try_from_secs_f64(seconds.next()?).ok()
}
