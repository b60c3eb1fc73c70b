//! Responses to clients.

use std::fmt::Write as _;

use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use percent_encoding::{AsciiSet, CONTROLS, utf8_percent_encode};
use plaincall_tool::definitions::ChangedTool;

use crate::api::ClientApi;
use crate::error::GatewayError;
use crate::server::body::{Body, Response};

pub(super) const JSON: HeaderValue = HeaderValue::from_static("application/json");
pub(super) const EVENT_STREAM: HeaderValue = HeaderValue::from_static("text/event-stream");
const PLAIN_TEXT: HeaderValue = HeaderValue::from_static("text/plain; charset=utf-8");
const METRICS: HeaderValue = HeaderValue::from_static("text/plain; version=0.0.4; charset=utf-8");

pub(super) const REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");
/// The header for the id of the request in Anthropic's API.
pub(super) const ANTHROPIC_REQUEST_ID: HeaderName = HeaderName::from_static("request-id");
/// The header that stops `OpenAI` clients from retrying, which they do by default for statuses from 500.
pub(super) const SHOULD_RETRY: HeaderName = HeaderName::from_static("x-should-retry");

/// The header that lists the offered tools that were loosened or dropped.
pub(super) const TOOLS: HeaderName = HeaderName::from_static("x-plaincall-tools");
/// The header with the number of calls that arrived as text, in a response that is not streamed.
pub(super) const RESCUED: HeaderName = HeaderName::from_static("x-plaincall-rescued");
/// The longest value of the header with the tools, in bytes.
const MAX_TOOLS: usize = 1024;
/// The characters to escape in its JSON pointers.
const ESCAPED: AsciiSet = CONTROLS.add(b' ').add(b',').add(b'%');

/// Returns the header that lists the tools that were loosened or dropped, if there are any.
pub(super) fn changed_tools(changed: &[ChangedTool]) -> HeaderMap {
    let mut headers = HeaderMap::new();
    if changed.is_empty() {
        return headers;
    }
    let mut value = String::new();
    for (index, tool) in changed.iter().enumerate() {
        let comma = if value.is_empty() { "" } else { ", " };
        let change = ["loosened", "dropped"][usize::from(tool.is_dropped)];
        let at = utf8_percent_encode(&tool.reason.at, &ESCAPED).to_string();
        if value.len() + at.len() > MAX_TOOLS {
            let _ = write!(value, "{comma}{} more", changed.len() - index);
            break;
        }
        let _ = write!(value, "{comma}{change} {at}");
    }
    if let Ok(value) = HeaderValue::from_str(&value) {
        headers.insert(TOOLS, value);
    }
    headers
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

/// Creates an error response in the format of this API.
pub(super) fn error(api: ClientApi, error: &GatewayError, request_id: &str) -> Response {
    let body = Body::from(api.error_body(error, Some(request_id)));
    let mut response = with(error.status, JSON, body);
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

/// Creates a stream in the format of this API.
pub(super) fn stream(api: ClientApi, body: Body) -> Response {
    let mut response = with(200, HeaderValue::from_static(api.stream_type()), body);
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
