//! The response of a model server: JSON, or an event stream.

use std::collections::VecDeque;
use std::net::IpAddr;

use plaincall_http::{HttpError, HttpErrorKind, HttpResponse};
use plaincall_wire::page_title;
use plaincall_wire::sse::{Decoder, Event, StreamError};
use url::Url;

use super::server_error::{self, Asked};
use super::{ModelError, ModelErrorKind};

/// The longest response that is not streamed, in bytes.
const WHOLE_BYTES: usize = 64 << 20;

pub(super) fn failed(error: &HttpError, asked: &Asked<'_>) -> ModelError {
    let message = error.message_for(&asked.server());
    let (kind, advice) = match error.kind() {
        HttpErrorKind::Settings => (ModelErrorKind::Refused, ""),
        HttpErrorKind::ConnectionRefused if is_this_machine(asked.base.as_str()) => {
            (ModelErrorKind::NotRunning, "; is it running?")
        }
        HttpErrorKind::Connect | HttpErrorKind::ConnectionRefused | HttpErrorKind::NotAllowed => (
            ModelErrorKind::Connect,
            "; is it running, and is the URL right?",
        ),
        HttpErrorKind::Timeout => (ModelErrorKind::Timeout, ""),
        _ => (ModelErrorKind::Broken, ""),
    };
    ModelError::new(kind, format!("{message}{advice}"))
}

fn is_this_machine(address: &str) -> bool {
    let address = address.parse::<Url>().ok();
    let host = address.as_ref().and_then(Url::host_str).unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    let is_loopback = |address: IpAddr| address.is_loopback();
    host == "localhost" || host.ends_with(".localhost") || host.parse().is_ok_and(is_loopback)
}

pub(super) enum Answered {
    Stream(Box<EventStream>),
    Whole(Vec<u8>),
}

impl Answered {
    /// Detects which it is. Some servers ignore `stream`, and some send no content type. An error status is an error.
    pub(super) async fn open(answer: HttpResponse, asked: &Asked<'_>) -> Result<Self, ModelError> {
        let mut answer = server_error::checked(answer, asked).await?;
        let content_type = answer.content_type();
        let mut begun = Vec::new();
        if !content_type.starts_with("text/event-stream") {
            // A byte order mark and whitespace may come first.
            while begun.trim_ascii().len() < 5 && begun.len() < 4096 {
                let piece = answer.piece().await;
                let piece = piece.map_err(|error| failed(&error, asked))?;
                let Some(piece) = piece else { break };
                begun.extend_from_slice(&piece);
            }
            let text = begun.trim_ascii_start();
            if text.starts_with(b"{") || text.starts_with(b"[") || text.is_empty() {
                let whole = answer.body(begun, WHOLE_BYTES).await;
                let whole = whole.map_err(|error| failed(&error, asked));
                return whole.map(Self::Whole);
            }
            if let Some(title) = page_title(&content_type, text) {
                begun = answer.error_body(begun).await;
                let title = page_title(&content_type, &begun).unwrap_or(title);
                return Err(server_error::page(&title, asked));
            }
            let is_stream = ["data:", "event", "id:", ":", "retry", "\u{FEFF}"];
            let mut is_stream = is_stream.iter();
            if !is_stream.any(|begin| text.starts_with(begin.as_bytes())) {
                begun = answer.error_body(begun).await;
                return Err(server_error::unreadable(&begun, asked));
            }
        }
        let mut events = EventStream {
            answer,
            decoder: Some(Decoder::new()),
            events: VecDeque::new(),
        };
        let fed = events.feed(&begun);
        fed.map_err(|error| asked.cannot_be_read(&error))?;
        Ok(Self::Stream(Box::new(events)))
    }
}

pub(super) struct EventStream {
    answer: HttpResponse,
    decoder: Option<Decoder>,
    events: VecDeque<Event<'static>>,
}

impl EventStream {
    /// Returns the next event. Cancel safe.
    pub(super) async fn next(
        &mut self,
        asked: &Asked<'_>,
    ) -> Result<Option<Event<'static>>, ModelError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            let piece = self.answer.piece().await;
            if let Some(piece) = piece.map_err(|error| failed(&error, asked))? {
                let fed = self.feed(&piece);
                fed.map_err(|error| asked.cannot_be_read(&error))?;
                continue;
            }
            let Some(decoder) = self.decoder.take() else {
                return Ok(None);
            };
            let last = decoder.finish();
            return last.map_err(|error| asked.cannot_be_read(&error));
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), StreamError> {
        for event in self
            .decoder
            .iter_mut()
            .flat_map(|decoder| decoder.feed(bytes))
        {
            self.events.push_back(event?.into_owned());
        }
        Ok(())
    }
}
