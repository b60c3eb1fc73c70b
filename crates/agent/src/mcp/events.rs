//! Answers over HTTP that come as events. No event is passed over in silence that a call may wait for.

use std::collections::HashMap;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use futures_core::Stream;
use futures_core::stream::BoxStream;
use reqwest::header::{HeaderName, HeaderValue};
use rmcp::model::{ClientJsonRpcMessage, JsonRpcMessage, RequestId, ServerJsonRpcMessage};
use rmcp::transport::streamable_http_client::{
    SseError, StreamableHttpClient, StreamableHttpError, StreamableHttpPostResponse,
};
use sse_stream::Sse;

use super::messages::{Line, failed, read};

/// A client in whose event streams an event that cannot be read fails the call that it answers.
#[derive(Clone)]
pub(super) struct EventClient(pub(super) reqwest::Client);

type Events = BoxStream<'static, Result<Sse, SseError>>;
type HttpError = StreamableHttpError<reqwest::Error>;

impl StreamableHttpClient for EventClient {
    type Error = reqwest::Error;

    async fn post_message(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let id = id_of(&message);
        let posted = self
            .0
            .post_message(uri, message, session_id, auth_header, custom_headers);
        Ok(readable(posted.await?, id))
    }

    async fn post_message_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        message: ClientJsonRpcMessage,
        session_id: Option<Arc<str>>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<StreamableHttpPostResponse, HttpError> {
        let id = id_of(&message);
        let posted = self.0.post_message_with_max_sse_event_size(
            uri,
            message,
            session_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        Ok(readable(posted.await?, id))
    }

    async fn delete_session(
        &self,
        uri: Arc<str>,
        session_id: Arc<str>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<(), HttpError> {
        let deleted = self
            .0
            .delete_session(uri, session_id, auth_header, custom_headers);
        deleted.await
    }

    async fn get_stream(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
    ) -> Result<Events, HttpError> {
        let opened = self
            .0
            .get_stream(uri, session_id, last_event_id, auth_header, custom_headers);
        opened.await
    }

    async fn get_stream_with_max_sse_event_size(
        &self,
        uri: Arc<str>,
        session_id: Option<Arc<str>>,
        last_event_id: Option<String>,
        auth_header: Option<String>,
        custom_headers: HashMap<HeaderName, HeaderValue>,
        max_sse_event_size: usize,
    ) -> Result<Events, HttpError> {
        let opened = self.0.get_stream_with_max_sse_event_size(
            uri,
            session_id,
            last_event_id,
            auth_header,
            custom_headers,
            max_sse_event_size,
        );
        opened.await
    }
}

fn id_of(message: &ClientJsonRpcMessage) -> Option<RequestId> {
    match message {
        JsonRpcMessage::Request(request) => Some(request.id.clone()),
        _ => None,
    }
}

/// The answer to the request with this id.
fn readable(
    answer: StreamableHttpPostResponse,
    id: Option<RequestId>,
) -> StreamableHttpPostResponse {
    match (answer, id) {
        (StreamableHttpPostResponse::Sse(events, session), Some(id)) => {
            let events = ReadableEvents { events, id };
            StreamableHttpPostResponse::Sse(Box::pin(events), session)
        }
        (answer, _) => answer,
    }
}

/// The events of the answer to one request.
struct ReadableEvents {
    events: Events,
    id: RequestId,
}

impl Stream for ReadableEvents {
    type Item = Result<Sse, SseError>;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<Self::Item>> {
        let mut next = ready!(self.events.as_mut().poll_next(context));
        if let Some(Ok(event)) = &mut next {
            let is_message = matches!(event.event.as_deref(), None | Some("" | "message"));
            if let Some(data) = event.data.as_mut().filter(|_| is_message) {
                let message: Option<ServerJsonRpcMessage> = match read(data.as_bytes()) {
                    Line::Nothing => None,
                    // As on standard output, words for people are no answer.
                    Line::Unreadable(..) if !data.trim_start().starts_with('{') => None,
                    Line::Message(message) => Some(message),
                    Line::Unreadable(_, why) => Some(failed(self.id.clone(), &why)),
                };
                // Written again, it has no halves of surrogate pairs any more.
                if let Some(Ok(text)) = message.map(|message| serde_json::to_string(&message)) {
                    *data = text;
                }
            }
        }
        Poll::Ready(next)
    }
}
