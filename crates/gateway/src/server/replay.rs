//! Recorded replies, used instead of a model.

use std::convert::Infallible;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::stream;
use http::{Method, Request};
use http_body_util::StreamBody;
use hyper::body::Frame;
use plaincall_wire::openai::{ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, Usage};
use plaincall_wire::{RecordedReply, ReplayError, paths, read_replies};

use crate::api::chat::complete::CompleteResponse;
use crate::api::chat::streamed::StreamedResponse;
use crate::api::encoder::Encoder as _;
use crate::server::body::{Body, Response};
use crate::server::local::{LocalModel, ResponseFuture};
use crate::server::response::{self, EVENT_STREAM, JSON};

/// The length of the pieces of a streamed reply, in bytes.
const PIECE: usize = 12;
const MODELS: &str = r#"{"object":"list","data":[{"id":"replay","object":"model","created":0,"owned_by":"plaincall"}]}"#;

/// Recorded replies, used instead of a model. The position is the number of `assistant` messages in the request; after the
/// last reply, the last one is repeated.
#[derive(Clone, Debug)]
pub struct Replay(Arc<[RecordedReply]>);

impl Replay {
    /// Reads replies, one JSON document per line: a string, or an object with `content` and optionally `finish_reason`.
    ///
    /// # Errors
    /// Returns an error if a line is neither, or if there is no line.
    pub fn read(text: &str) -> Result<Self, ReplayError> {
        Ok(Self(read_replies(text)?.into()))
    }

    /// Returns the number of replies.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Returns `false`: there is always at least one reply.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    fn reply(&self, request: &ChatCompletionRequest<'_>) -> Option<Response> {
        let turns = request.messages.iter();
        let turn = turns
            .filter(|message| message.role() == "assistant")
            .count();
        let reply = self.0.get(turn).or(self.0.last())?;
        let id = format!("chatcmpl-replay-{turn}");
        let model = request.model.as_deref().unwrap_or("replay");
        let usage = Usage {
            prompt_tokens: Some(0),
            completion_tokens: Some(0),
            total_tokens: Some(0),
            ..Usage::default()
        };
        if !request.is_streamed() {
            let mut whole = CompleteResponse::new(id, 0);
            whole.content(&reply.content);
            whole.finish(&reply.finish_reason);
            whole.usage(&usage);
            let completion = whole.into_completion(ChatCompletion {
                model: Some(model.into()),
                ..ChatCompletion::default()
            });
            return Some(response::json(200, plaincall_wire::write(&completion)));
        }
        let mut stream = StreamedResponse::new("", 0, request.includes_usage());
        stream.begin(&ChatCompletionChunk {
            id: Some(id.into()),
            model: Some(model.into()),
            ..ChatCompletionChunk::default()
        });
        let mut pieces = Vec::new();
        let mut rest = reply.content.as_str();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE.min(rest.len())));
            rest = after;
            stream.content(piece);
            pieces.push(stream.take());
        }
        stream.finish(&reply.finish_reason);
        stream.usage(&usage);
        stream.done();
        pieces.push(stream.take());
        let pieces = pieces.into_iter().map(Bytes::from);
        let frames = pieces.map(|piece| Ok::<_, Infallible>(Frame::data(piece)));
        let body = Body::new(StreamBody::new(stream::iter(frames)));
        Some(response::with(200, EVENT_STREAM, body))
    }
}

/// The response to other requests.
const NOT_FOUND: &str = r#"{"error":{"message":"recorded replies answer POST /v1/chat/completions and GET /v1/models","type":"invalid_request_error","param":null,"code":null}}"#;

impl LocalModel for Replay {
    fn answer(&self, request: Request<Bytes>) -> ResponseFuture {
        let response = match (request.method(), request.uri().path()) {
            (&Method::GET, paths::MODELS) => Ok(response::json(200, MODELS.to_owned())),
            (&Method::POST, paths::CHAT) => match plaincall_wire::read(request.body()) {
                Ok(request) => self
                    .reply(&request)
                    .ok_or_else(|| "no recorded reply".into()),
                Err(error) => Err(error.into()),
            },
            _ => Ok(response::with(404, JSON, Body::from(NOT_FOUND))),
        };
        Box::pin(std::future::ready(response))
    }
}
