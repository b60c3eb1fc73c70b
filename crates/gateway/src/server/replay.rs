//! Recorded replies in the place of a model.

use std::collections::VecDeque;
use std::convert::Infallible;
use std::future::ready;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use axum::body::{Body, Bytes, HttpBody};
use axum::http::{HeaderValue, Method, Request};
use hyper::body::Frame;
use plaincall_wire::openai::{
    ChatCompletion, ChatCompletionRequest, Choice, ChunkHead, ChunkWriter, Message, Usage,
    done_event,
};
use plaincall_wire::{Json, RecordedReply, ReplayError, read_replies};

use crate::server::answer::{self, EVENT_STREAM, JSON};
use crate::server::local::{Answered, LocalModel};

/// How long the pieces of a streamed reply are, in bytes.
const PIECE: usize = 12;
/// The list of models.
const MODELS: &str = r#"{"object":"list","data":[{"id":"replay","object":"model","created":0,"owned_by":"plaincall"}]}"#;

/// Recorded replies that are given in the place of a model's.
///
/// A request gets the reply whose number is that of the model's turns in it: the first request of a conversation the
/// first reply, the next the second; after the last it stays with that. So nothing need be kept.
///
/// ```
/// use plaincall_gateway::Replay;
///
/// let replay = Replay::read("\"Hello.\"\n{\"content\": \"Good\", \"finish_reason\": \"length\"}\n").expect("two replies");
/// assert_eq!(replay.len(), 2);
/// assert!(Replay::read("Hello.").unwrap_err().to_string().starts_with("line 1: "));
/// ```
#[derive(Clone, Debug)]
pub struct Replay(Arc<[Recorded]>);

#[derive(Clone, Debug)]
struct Recorded(RecordedReply);

impl Replay {
    /// Reads replies, one JSON document a line: a text, or an object with `content` and perhaps `finish_reason`.
    ///
    /// # Errors
    /// Says which line is neither, or that there is none.
    pub fn read(text: &str) -> Result<Self, ReplayError> {
        let replies = read_replies(text)?.into_iter().map(Recorded);
        Ok(Self(replies.collect()))
    }

    /// How many replies there are.
    pub fn len(&self) -> usize {
        self.0.len()
    }

    /// Whether there are none, which cannot be.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The answer to a request: its content type and its body.
    fn complete(
        &self,
        request: &ChatCompletionRequest<'_>,
    ) -> Result<(HeaderValue, Body), &'static str> {
        let turns = request
            .messages
            .iter()
            .filter(|message| message.role() == "assistant");
        let turn = turns.count();
        let reply = self.0.get(turn).or(self.0.last());
        let reply = reply.ok_or("there is no recorded reply")?;
        let model = request.model.as_deref().unwrap_or("replay");
        let usage = Usage {
            prompt_tokens: Some(0),
            completion_tokens: Some(0),
            total_tokens: Some(0),
            ..Usage::default()
        };
        let id = format!("chatcmpl-replay-{turn}");
        if request.is_streamed() {
            let head = ChunkHead {
                id: &id,
                model,
                includes_usage: request.includes_usage(),
                ..ChunkHead::default()
            };
            let pieces = reply.stream(&head, &usage);
            Ok((EVENT_STREAM, Body::new(Pieces(pieces))))
        } else {
            Ok((JSON, reply.whole(id, model, usage).into()))
        }
    }
}

/// What is said to who asks for anything else.
const NOTHING_ELSE: &str = r#"{"error":{"message":"recorded replies answer POST /v1/chat/completions and GET /v1/models","type":"invalid_request_error","param":null,"code":null}}"#;

impl LocalModel for Replay {
    fn answer(&self, request: Request<Bytes>) -> Answered {
        let answered = match (request.method(), request.uri().path()) {
            (&Method::GET, "/v1/models") => Ok((200, JSON, Body::from(MODELS))),
            (&Method::POST, "/v1/chat/completions") => match plaincall_wire::read(request.body()) {
                Ok(request) => match self.complete(&request) {
                    Ok((content_type, body)) => Ok((200, content_type, body)),
                    Err(error) => Err(error.into()),
                },
                Err(error) => Err(error.into()),
            },
            _ => Ok((404, JSON, Body::from(NOTHING_ELSE))),
        };
        let answered =
            answered.map(|(status, content_type, body)| answer::with(status, content_type, body));
        Box::pin(ready(answered))
    }
}

/// A body whose pieces are all there.
struct Pieces(VecDeque<Bytes>);

impl HttpBody for Pieces {
    type Data = Bytes;
    type Error = Infallible;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        _context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, Infallible>>> {
        Poll::Ready(self.0.pop_front().map(|piece| Ok(Frame::data(piece))))
    }
}

impl Recorded {
    fn stream(&self, head: &ChunkHead<'_>, usage: &Usage<'_>) -> VecDeque<Bytes> {
        let mut writer = ChunkWriter::new(head, 0);
        let mut pieces = VecDeque::new();
        let mut out = Vec::new();
        writer.role(&mut out);
        let mut rest = self.0.content.as_str();
        while !rest.is_empty() {
            let (piece, after) = rest.split_at(rest.ceil_char_boundary(PIECE.min(rest.len())));
            rest = after;
            writer.content(piece, &mut out);
            pieces.push_back(std::mem::take(&mut out).into());
        }
        writer.finish(&self.0.finish_reason, &mut out);
        if head.includes_usage {
            writer.usage(usage, &mut out);
        }
        done_event(&mut out);
        pieces.push_back(out.into());
        pieces
    }

    fn whole(&self, id: String, model: &str, usage: Usage<'_>) -> Bytes {
        let completion = ChatCompletion {
            id: Some(id.into()),
            object: Some("chat.completion".into()),
            created: Some(Json::new(&0)),
            model: Some(model.into()),
            choices: Some(vec![Choice {
                index: Some(0),
                message: Some(Message::new("assistant", self.0.content.as_str())),
                finish_reason: Some(self.0.finish_reason.as_str().into()),
                ..Choice::default()
            }]),
            usage: Some(usage),
            ..ChatCompletion::default()
        };
        plaincall_wire::write(&completion).into()
    }
}
