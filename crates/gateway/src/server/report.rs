//! The report about each request.

use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::api::ClientApi;
use crate::counts::Counts;
use crate::error::GatewayError;
use crate::server::Shared;
use crate::server::auth::Caller;
use crate::server::body_filter::{BodyFilter, BodyKind, MIN_KEY, REDACTED, redacted_keys};
use crate::server::key_limits::RequestPermit;
use crate::server::upstream::Connection;

/// The report about a request, available when it has ended. Only [`contents`](Self::contents) quotes the conversation.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The id of the request.
    pub request_id: String,
    /// The requested path, with `NAME` instead of a model's name; `other` for unknown paths.
    pub path: &'static str,
    /// The position of the client's key in the list of keys, counted from 1; `None` unless there are several.
    pub key: Option<usize>,
    /// The requested model.
    pub model: String,
    /// The base URL of the model server; `None` unless there are several.
    pub upstream: Option<Arc<str>>,
    /// Whether a stream was requested.
    pub is_streamed: bool,
    /// Whether the request was translated to plain text.
    pub is_translated: bool,
    /// The status of the response.
    pub status: u16,
    /// The error, which may occur after the status was sent. It quotes nothing of the request.
    pub error: Option<String>,
    /// The type of the error: one of the gateway's own, or `upstream_error`.
    pub error_type: Option<&'static str>,
    /// Whether the client disconnected before the end.
    pub is_abandoned: bool,
    /// The time from the request to the first byte of the response body.
    pub time_to_first_byte: Option<Duration>,
    /// The time from the request to the end of the response.
    pub duration: Duration,
    /// Counters for what happened in the reply.
    pub counts: Counts,
    /// The contents, if [`GatewayConfig::report_contents`] is set.
    ///
    /// [`GatewayConfig::report_contents`]: crate::GatewayConfig::report_contents
    pub contents: Option<Contents>,
}

/// The contents of a request. Each text is truncated at 64 KiB, and keys of at least eight characters are removed.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contents {
    /// The bodies of the requests to the model server, one for each round.
    pub model_requests: Vec<String>,
    /// The bodies of the model server's answers.
    pub model_reply: String,
    /// The body sent to the client. Empty if it is the model server's, byte for byte.
    pub client_reply: String,
}

/// Observes requests. Closures that take a [`Report`] implement it.
pub trait Observer: Send + Sync {
    /// Called when a request has ended. It must not block.
    fn request_ended(&self, report: &Report);
}

impl<F: Fn(&Report) + Send + Sync> Observer for F {
    fn request_ended(&self, report: &Report) {
        self(report);
    }
}

/// Reports a request when it is dropped, which is when the request has ended.
pub(super) struct RequestGuard {
    pub(super) report: Report,
    /// The API in whose format errors are sent.
    pub(super) api: ClientApi,
    shared: Arc<Shared>,
    started: Instant,
    /// The contents so far, if they are reported.
    recorded: Option<Box<Recorded>>,
    /// The client's key; empty if it has none.
    pub(super) caller: String,
    /// Counts towards the limit of concurrent requests until the response has been read.
    pub(super) permit: Option<Arc<RequestPermit>>,
    /// Counts the body towards the limit of all bodies until it is no longer needed.
    pub(super) body_permit: Option<OwnedSemaphorePermit>,
}

impl RequestGuard {
    pub(super) fn new(
        shared: Arc<Shared>,
        path: &'static str,
        api: ClientApi,
        request_id: String,
    ) -> Self {
        Self {
            api,
            report: Report {
                request_id,
                path,
                // The client has disconnected unless `end` is called.
                is_abandoned: true,
                status: 499,
                ..Report::default()
            },
            recorded: shared.config.report_contents.then(Box::default),
            caller: String::new(),
            shared,
            started: Instant::now(),
            permit: None,
            body_permit: None,
        }
    }

    /// Sets the requested model, whose name is shortened.
    pub(super) fn model(&mut self, mut name: String) {
        name.truncate(name.floor_char_boundary(MAX_MODEL));
        self.report.model = name;
    }

    /// Returns the time since the request was received.
    pub(super) fn elapsed(&self) -> Duration {
        self.started.elapsed()
    }

    /// The first piece of the response is available.
    pub(super) fn first_piece(&mut self) {
        self.report
            .time_to_first_byte
            .get_or_insert(self.started.elapsed());
    }

    pub(super) fn idle_timeout(&self) -> Duration {
        self.shared.config.timeouts.idle
    }

    /// Sets the caller. Its key is never reported, only the position of the key.
    pub(super) fn caller(&mut self, caller: &Caller<'_>) {
        caller.key.clone_into(&mut self.caller);
        self.report.key = caller.position;
    }

    /// Sets the model server.
    pub(super) fn upstream(&mut self, upstream: &Connection) {
        if self.shared.routes.only().is_none() {
            self.report.upstream = Some(Arc::clone(upstream.name()));
        }
    }

    pub(super) fn model_request(&mut self, body: &[u8]) {
        if let Some(recorded) = &mut self.recorded {
            let mut request = Vec::new();
            record(&mut request, body);
            recorded.model_requests.push(request);
        }
    }

    pub(super) fn model_reply(&mut self, piece: &[u8]) {
        if let Some(recorded) = &mut self.recorded {
            record(&mut recorded.model_reply, piece);
        }
    }

    pub(super) fn client_reply(&mut self, piece: &[u8]) {
        if let Some(recorded) = &mut self.recorded {
            record(&mut recorded.client_reply, piece);
        }
    }

    pub(super) fn end(&mut self, status: u16, error: Option<&GatewayError>) {
        self.report.is_abandoned = false;
        self.report.status = status;
        self.report.error = error.map(GatewayError::log_message);
        self.report.error_type = error.map(GatewayError::kind);
        if let Some(error) = error
            && self.recorded.is_some()
        {
            self.client_reply(error.message().as_bytes());
        }
    }

    /// Completes the report and removes keys.
    fn complete(&mut self) {
        let Self {
            report,
            shared,
            recorded,
            caller,
            ..
        } = self;
        let own = || shared.own_keys.iter().map(String::as_str);
        let keys = || own().chain([caller.as_str()]);
        let texts = [&mut report.model, &mut report.request_id].into_iter();
        for text in texts.chain(&mut report.error) {
            redact(text, keys());
        }
        let Some(recorded) = recorded.take() else {
            return;
        };
        let known = redacted_keys(keys().chain(shared.config.keys.iter().map(String::as_str)));
        let text = |bytes: Vec<u8>| {
            let mut bytes = Bytes::from(bytes);
            if let Some(mut filter) = BodyFilter::new(&known, BodyKind::Other) {
                bytes = [filter.feed(bytes), filter.finish()].concat().into();
            }
            let mut text = String::from_utf8_lossy(&bytes).into_owned();
            if text.len() > MAX_TEXT {
                text.truncate(text.floor_char_boundary(MAX_TEXT));
                text.push('…');
            }
            text
        };
        report.contents = Some(Contents {
            model_requests: recorded.model_requests.into_iter().map(text).collect(),
            model_reply: text(recorded.model_reply),
            client_reply: text(recorded.client_reply),
        });
    }
}

/// The contents of a request, up to the limits.
#[derive(Default)]
struct Recorded {
    model_requests: Vec<Vec<u8>>,
    model_reply: Vec<u8>,
    client_reply: Vec<u8>,
}

/// The longest name of a model in a report, in bytes.
const MAX_MODEL: usize = 128;
/// The longest text in a report, in bytes.
const MAX_TEXT: usize = 64 << 10;
/// How much more is recorded, so that a key at the point of truncation is recognized.
const MAX_KEY: usize = 8 << 10;

fn record(recorded: &mut Vec<u8>, piece: &[u8]) {
    let room = (MAX_TEXT + MAX_KEY).saturating_sub(recorded.len());
    recorded.extend_from_slice(piece.get(..room).unwrap_or(piece));
}

/// Replaces keys in a text if they are long enough to be recognized.
fn redact<'k>(text: &mut String, keys: impl Iterator<Item = &'k str>) {
    for key in keys.filter(|key| key.len() >= MIN_KEY) {
        if text.contains(key) {
            *text = text.replace(key, REDACTED);
        }
    }
}

impl Drop for RequestGuard {
    fn drop(&mut self) {
        self.report.duration = self.started.elapsed();
        self.complete();
        self.shared.process.metrics.add(&self.report);
        self.shared.config.observer.request_ended(&self.report);
    }
}
