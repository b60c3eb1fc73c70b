//! Answers to clients.

use std::fmt::Write as _;

use axum::body::Body;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use axum::response::Response;
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use plaincall_call::definitions::ChangedTool;
use plaincall_wire::openai::ErrorBody;

use crate::error::GatewayError;

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const PLAIN_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header that keeps clients of `OpenAI` from sending a request again, their default for each status from 500 on.
pub(super) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The header that tells which offered tools could not be used as they are.
pub(super) const TOOLS: HeaderName = HeaderName::from_static("x-plaincall-tools");
/// The longest value of that header, in bytes.
const MAX_TOOLS: usize = 1024;
/// What is escaped in its pointers.
const NOT_IN_VALUE: AsciiSet = CONTROLS.add(b' ').add(b',').add(b'%');

/// An answer that tells which offered tools could not be used as they are.
pub(super) fn with_changed_tools(mut response: Response, changed: &[ChangedTool]) -> Response {
    if changed.is_empty() {
        return response;
    }
    let mut value = String::new();
    for (place, tool) in changed.iter().enumerate() {
        let comma = if value.is_empty() { "" } else { ", " };
        let what = ["loosened", "dropped"][usize::from(tool.is_dropped)];
        let at = utf8_percent_encode(&tool.reason.at, &NOT_IN_VALUE).to_string();
        if value.len() + at.len() > MAX_TOOLS {
            let _ = write!(value, "{comma}{} more", changed.len() - place);
            break;
        }
        let _ = write!(value, "{comma}{what} {at}");
    }
    if let Ok(value) = HeaderValue::from_str(&value) {
        response.headers_mut().insert(TOOLS, value);
    }
    response
}

pub(super) fn metrics(text: &str) -> Response {
    with(200, METRICS, Body::from(text.to_owned()))
}

pub(super) fn text(status: u16, text: &str) -> Response {
    with(status, PLAIN_TEXT, Body::from(text.to_owned()))
}

pub(super) fn json(status: u16, json: String) -> Response {
    with(status, JSON, Body::from(json))
}

/// Why there is no other answer.
pub(super) fn refused(error: &GatewayError) -> Response {
    let body = ErrorBody::new((*error.body).clone());
    let mut response = json(error.status, plaincall_wire::write(&body));
    if error.is_final() {
        let no = HeaderValue::from_static("false");
        response.headers_mut().insert(SHOULD_RETRY, no);
    }
    for (name, value) in &error.headers {
        let name = HeaderName::try_from(name.as_str());
        if let (Ok(name), Ok(value)) = (name, HeaderValue::from_str(value)) {
            response.headers_mut().append(name, value);
        }
    }
    response
}

pub(super) fn with_headers(mut response: Response, headers: HeaderMap) -> Response {
    response.headers_mut().extend(headers);
    response
}

/// An event stream.
pub(super) fn stream(body: Body) -> Response {
    let mut response = with(200, EVENT_STREAM, body);
    let no_cache = HeaderValue::from_static("no-cache");
    response.headers_mut().insert(CACHE_CONTROL, no_cache);
    response
}

pub(super) fn with(status: u16, content_type: HeaderValue, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).unwrap_or(StatusCode::BAD_GATEWAY);
    response.headers_mut().insert(CONTENT_TYPE, content_type);
    response
}
