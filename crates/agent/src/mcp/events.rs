//! The HTTP transport. An event that a call may wait for is never dropped silently.

use std::borrow::Cow;
use std::collections::HashMap;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use futures_core::stream::BoxStream;
use futures_util::{StreamExt as _, stream};
use plaincall_http::http::header::{
    ACCEPT, CONTENT_LENGTH, CONTENT_TYPE, HeaderMap, HeaderName, HeaderValue, LOCATION,
    WWW_AUTHENTICATE,
};
use plaincall_http::http::uri::InvalidUri;
use plaincall_http::http::{Method, Request, StatusCode};
use plaincall_http::{Bytes, HttpClient, HttpError, HttpResponse, Waits};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::common::http_header::{
    EVENT_STREAM_MIME_TYPE, HEADER_LAST_EVENT_ID, HEADER_SESSION_ID, JSON_MIME_TYPE,
};
use rmcp::transport::streamable_http_client::{
    AuthRequiredError, HttpStatusError, InsufficientScopeError, SseError, StreamableHttpClient,
    StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::{Sse, SseStream};
use url::Url;

use super::messages::{LONGEST_MESSAGE, Line, Noise, failed, read, skip, with_digits};

/// The most redirects that are followed, all within one server.
const REDIRECTS: usize = 5;
/// How much of the body of an error is quoted, in characters.
const QUOTED: usize = 4 << 10;
/// A connection has no time limit; each call has its own.
const WAITS: Waits = Waits::all(Duration::MAX);

/// Sends requests to one server. An invalid event fails the call that it answers.
#[derive(Clone)]
pub(super) struct EventClient(pub(super) HttpClient, pub(super) Noise);

type Events = BoxStream<'static, Result<Sse, SseError>>;
type Failure = StreamableHttpError<HttpError>;
type Headers = HashMap<HeaderName, HeaderValue>;

impl EventClient {
    /// Sends a request. Follows a redirect only if it keeps the method and the server, because another server must not get
    /// these headers. Headers of the protocol replace configured ones.
    async fn ask(
        &self,
        uri: &str,
        method: Method,
        session: Option<Arc<str>>,
        headers: Headers,
        body: Bytes,
    ) -> Result<HttpResponse, Failure> {
        let mut heads = HeaderMap::from_iter(headers);
        let accepted = format!("{EVENT_STREAM_MIME_TYPE}, {JSON_MIME_TYPE}");
        heads.insert(ACCEPT, value(&accepted)?);
        if method == Method::POST {
            heads.insert(CONTENT_TYPE, value(JSON_MIME_TYPE)?);
        }
        if let Some(session) = session {
            heads.insert(HEADER_SESSION_ID, value(&session)?);
        }
        let mut url = Url::parse(uri).map_err(|error| odd(&error))?;
        for left in (0..=REDIRECTS).rev() {
            let mut request = Request::new(body.clone());
            *request.method_mut() = method.clone();
            *request.headers_mut() = heads.clone();
            let uri = url.as_str().parse();
            *request.uri_mut() = uri.map_err(|error: InvalidUri| odd(&error))?;
            let sent = self.0.send(request, WAITS).await;
            let response = sent.map_err(StreamableHttpError::Client)?;
            let location = response.header(&LOCATION);
            match url.join(location) {
                Ok(next)
                    if left > 0
                        && !location.is_empty()
                        && matches!(response.status(), 307 | 308)
                        && next.origin() == url.origin() =>
                {
                    url = next;
                }
                _ => match response.encoding() {
                    Some(encoding) => {
                        return Err(odd(&format!(
                            "the content encoding `{encoding}`, although none is accepted"
                        )));
                    }
                    None => return refused(response),
                },
            }
        }
        Err(StreamableHttpError::UnexpectedEndOfStream)
    }
}

fn value(text: &str) -> Result<HeaderValue, Failure> {
    HeaderValue::from_str(text).map_err(|error| odd(&error))
}

fn odd(error: &dyn fmt::Display) -> Failure {
    StreamableHttpError::UnexpectedServerResponse(error.to_string().into())
}

/// Converts error statuses into errors.
fn refused(response: HttpResponse) -> Result<HttpResponse, Failure> {
    let challenge = response.headers().get(WWW_AUTHENTICATE);
    let challenge = challenge.map(|value| String::from_utf8_lossy(value.as_bytes()).into_owned());
    match (response.status(), challenge) {
        (401, Some(challenge)) => Err(StreamableHttpError::AuthRequired(AuthRequiredError::new(
            challenge,
        ))),
        (403, Some(challenge)) => Err(StreamableHttpError::InsufficientScope(
            InsufficientScopeError::new(challenge, None),
        )),
        (status @ 429, _) => Err(HttpStatusError::new(status, None).into()),
        (status @ 500.., _) if !response.content_type().starts_with(JSON_MIME_TYPE) => {
            Err(HttpStatusError::new(status, None).into())
        }
        _ => Ok(response),
    }
}

impl StreamableHttpClient for EventClient {
    type Error = HttpError;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session: Option<Arc<str>>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<StreamableHttpPostResponse, Failure> {
        let has_session = session.is_some();
        let body = serde_json::to_vec(&message)?.into();
        let asked = self.ask(&uri, Method::POST, session, headers, body);
        let mut response = asked.await?;
        let id = match message {
            JsonRpcMessage::Request(request) => Some(request.id),
            _ => None,
        };
        let status = response.status();
        let is_good = (200..300).contains(&status);
        if matches!(status, 202 | 204) {
            return Ok(StreamableHttpPostResponse::Accepted);
        }
        if status == 404 && has_session {
            return Err(StreamableHttpError::SessionExpired);
        }
        let session = response.headers().get(HEADER_SESSION_ID);
        let session = session.and_then(|value| value.to_str().ok().map(str::to_owned));
        let content_type = response.content_type();
        let is_json = content_type.starts_with(JSON_MIME_TYPE);
        if !is_good {
            let body = response.error_body(Vec::new()).await;
            // For authentication errors the status counts, not the body.
            if status == 400 && has_session && is_about_session(&body) {
                return Err(StreamableHttpError::SessionExpired);
            }
            if is_json
                && !matches!(status, 401 | 403)
                && let Ok(error @ JsonRpcMessage::Error(_)) = serde_json::from_slice(&body)
            {
                let error = answering(error, id);
                return Ok(StreamableHttpPostResponse::Json(error, session));
            }
            if status >= 500 {
                return Err(HttpStatusError::new(status, None).into());
            }
            return Err(unexpected(status, &body));
        }
        if content_type.starts_with(EVENT_STREAM_MIME_TYPE) {
            let events = events(response, id, self.1.clone());
            return Ok(StreamableHttpPostResponse::Sse(events, session));
        }
        let is_empty = response.header(&CONTENT_LENGTH) == "0";
        if is_json || is_empty {
            let body = response.body(Vec::new(), LONGEST_MESSAGE).await;
            let body = body.map_err(StreamableHttpError::Client)?;
            let text = with_digits(String::from_utf8_lossy(&body));
            return match serde_json::from_str(&text) {
                Ok(message) => Ok(StreamableHttpPostResponse::Json(
                    answering(message, id),
                    session,
                )),
                // A notification has no answer.
                Err(_) if id.is_none() => Ok(StreamableHttpPostResponse::Accepted),
                Err(_) if is_empty => Err(StreamableHttpError::UnexpectedContentType(None)),
                Err(_) => Err(unexpected(status, &body)),
            };
        }
        Err(StreamableHttpError::UnexpectedContentType(Some(
            content_type,
        )))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session: Arc<str>,
        _: Option<String>,
        headers: Headers,
    ) -> Result<(), Failure> {
        // Many servers keep no sessions; this one is over in any case.
        let asked = self.ask(&uri, Method::DELETE, Some(session), headers, Bytes::new());
        asked.await.map(drop)
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session: Option<Arc<str>>,
        last_event: Option<String>,
        _: Option<String>,
        mut headers: Headers,
    ) -> Result<Events, Failure> {
        if let Some(id) = last_event {
            let name = HeaderName::from_static(HEADER_LAST_EVENT_ID);
            headers.insert(name, value(&id)?);
        }
        let asked = self.ask(&uri, Method::GET, session, headers, Bytes::new());
        let mut response = asked.await?;
        match response.status() {
            200..300 => {}
            405 => return Err(StreamableHttpError::ServerDoesNotSupportSse),
            status => return Err(unexpected(status, &response.error_body(Vec::new()).await)),
        }
        let content_type = response.content_type();
        if !content_type.starts_with(EVENT_STREAM_MIME_TYPE) {
            return Err(StreamableHttpError::UnexpectedContentType(Some(
                content_type,
            )));
        }
        Ok(events(response, None, self.1.clone()))
    }
}

/// Returns whether a body is an error about the session, which rejects a request before it is read: an error with the id of the
/// request is the answer of a call that ran.
fn is_about_session(body: &[u8]) -> bool {
    let Ok(error) = serde_json::from_slice::<serde_json::Value>(body) else {
        return false;
    };
    let message = error["error"]["message"].as_str().unwrap_or_default();
    error["id"].is_null() && message.to_lowercase().contains("session")
}

/// Gives an error the id of the request that the HTTP response answers: servers that reject a request do not read its id.
fn answering(mut message: ServerJsonRpcMessage, id: Option<RequestId>) -> ServerJsonRpcMessage {
    if let (JsonRpcMessage::Error(error), Some(id)) = (&mut message, id) {
        error.id = Some(id);
    }
    message
}

fn unexpected(status: u16, body: &[u8]) -> Failure {
    let status = StatusCode::from_u16(status);
    let status = status.map_or_else(|error| error.to_string(), |status| status.to_string());
    let body: String = String::from_utf8_lossy(body).chars().take(QUOTED).collect();
    StreamableHttpError::UnexpectedServerResponse(Cow::Owned(format!("HTTP {status}: {body}")))
}

/// The events of a response to the request with this id, if any.
fn events(response: HttpResponse, id: Option<RequestId>, noise: Noise) -> Events {
    // Bytes since the last event.
    let waiting = Arc::new(AtomicUsize::new(0));
    let begun = (response, Arc::clone(&waiting));
    let pieces = stream::unfold(begun, async |(mut response, waiting)| {
        let piece = match response.piece().await {
            Ok(None) => return None,
            Ok(Some(piece)) => {
                let before = waiting.fetch_add(piece.len(), Ordering::Relaxed);
                if before + piece.len() > LONGEST_MESSAGE {
                    Err(io::Error::other(format!(
                        "an event has more than {LONGEST_MESSAGE} bytes"
                    )))
                } else {
                    Ok(piece)
                }
            }
            Err(error) => Err(io::Error::other(error)),
        };
        Some((piece, (response, waiting)))
    });
    let events = SseStream::from_bytes_stream(Box::pin(pieces));
    Box::pin(events.map(move |event| {
        waiting.store(0, Ordering::Relaxed);
        event.map(|event| readable(event, id.as_ref(), &noise))
    }))
}

/// Checks an event. An invalid one fails the request that it answers; one without a message loses its data.
fn readable(mut event: Sse, id: Option<&RequestId>, noise: &Noise) -> Sse {
    let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
    let Some(data) = event.data.take().filter(|_| is_message) else {
        return event;
    };
    let message: Option<ServerJsonRpcMessage> = match (read(data.as_bytes()), id) {
        (Line::Message(message), _) => Some(message),
        (Line::Unreadable(Some(_), why), Some(id)) => Some(failed(id.clone(), &why)),
        (Line::Nothing | Line::Unreadable(..), _) => {
            skip(data.as_bytes(), noise);
            None
        }
    };
    // Re-serialized without unpaired surrogates.
    event.data = message.and_then(|message| serde_json::to_string(&message).ok());
    event
}
