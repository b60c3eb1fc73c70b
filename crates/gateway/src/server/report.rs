//! What is told of each request.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::counts::Counts;
use crate::refusal::Refusal;
use crate::server::Shared;
use crate::server::access::Caller;
use crate::server::body_filter::{CONCEALED, SHORTEST_KEY};

/// What is told of a request when it has ended. Nothing of what was said is in it but in [`contents`](Self::contents).
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The id of the request.
    pub request_id: String,
    /// The path that was asked for, with `NAME` for the name in it; `other` for all that the gateway does not have.
    pub path: &'static str,
    /// Which of several keys the client has shown, by its place in the list of them, counted from 1.
    pub key: Option<usize>,
    /// The model that was asked for.
    pub model: String,
    /// Whether the answer was to come as a stream.
    pub is_streamed: bool,
    /// Whether the request was put into words.
    pub is_translated: bool,
    /// The status of the answer.
    pub status: u16,
    /// Why it failed, also when that was after the status; nothing that quotes the request.
    pub error: Option<String>,
    /// The type of that error: one of the gateway's own, or `upstream_error`.
    pub error_type: Option<&'static str>,
    /// Whether the client went away before the end.
    pub is_abandoned: bool,
    /// From the request to the first piece of the answer.
    pub first_piece: Option<Duration>,
    /// From the request to the end of the answer.
    pub time: Duration,
    /// What happened in the reply.
    pub counts: Counts,
    /// What was said, if the gateway is set to tell it ([`GatewayConfig::reports_contents`]).
    ///
    /// [`GatewayConfig::reports_contents`]: crate::GatewayConfig::reports_contents
    pub contents: Option<Contents>,
}

/// What was said in a request. Each text is cut at 64 KiB; keys of at least eight characters are left
/// out.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Contents {
    /// What the model's server was asked: the bodies of the requests, one for each round.
    pub asked: Vec<String>,
    /// What it said: the bodies of its answers.
    pub said: String,
    /// What the client got. Nothing stands here if that is what the model's server said, byte for byte.
    pub given: String,
}

/// Hears of each request.
pub trait Observe: Send + Sync {
    /// A request has ended. This must not take long.
    fn ended(&self, report: &Report);
}

impl<F: Fn(&Report) + Send + Sync> Observe for F {
    fn ended(&self, report: &Report) {
        self(report);
    }
}

/// A request that is being answered. When it is dropped, the request has ended.
pub(super) struct Ticket {
    pub(super) report: Report,
    shared: Arc<Shared>,
    begun: Instant,
    /// What has been said so far, if it is told.
    heard: Option<Box<Heard>>,
    /// The key of the client; empty if it has none.
    pub(super) caller: String,
    /// Its place among those that are answered at one time, until its answer has been taken.
    pub(super) place: Option<Arc<OwnedSemaphorePermit>>,
    /// The room that its body takes, until the model's server has it and nothing of it is needed here again.
    pub(super) room: Option<OwnedSemaphorePermit>,
}

impl Ticket {
    pub(super) fn new(shared: Arc<Shared>, path: &'static str, request_id: String) -> Self {
        Self {
            report: Report {
                request_id,
                path,
                // Unless something else is said, the client has gone.
                is_abandoned: true,
                status: 499,
                ..Report::default()
            },
            heard: shared.config.reports_contents.then(Box::default),
            caller: String::new(),
            shared,
            begun: Instant::now(),
            place: None,
            room: None,
        }
    }

    /// The first piece of the answer is there.
    pub(super) fn first_piece(&mut self) {
        self.report.first_piece.get_or_insert(self.begun.elapsed());
    }

    pub(super) fn patience(&self) -> Duration {
        self.shared.config.timeouts.idle
    }

    /// Who asks. The key is nowhere told, but its place is.
    pub(super) fn caller(&mut self, caller: &Caller<'_>) {
        caller.key.clone_into(&mut self.caller);
        self.report.key = caller.place;
    }

    pub(super) fn asked(&mut self, body: &[u8]) {
        if let Some(heard) = &mut self.heard {
            let mut asked = Vec::new();
            hear(&mut asked, body);
            heard.asked.push(asked);
        }
    }

    pub(super) fn said(&mut self, piece: &[u8]) {
        if let Some(heard) = &mut self.heard {
            hear(&mut heard.said, piece);
        }
    }

    pub(super) fn given(&mut self, piece: &[u8]) {
        if let Some(heard) = &mut self.heard {
            hear(&mut heard.given, piece);
        }
    }

    pub(super) fn end(&mut self, status: u16, error: Option<&Refusal>) {
        self.report.is_abandoned = false;
        self.report.status = status;
        self.report.error = error.map(Refusal::for_log);
        self.report.error_type = error.map(Refusal::kind);
        if let Some(error) = error
            && self.heard.is_some()
        {
            self.given(error.message().as_bytes());
        }
    }

    /// What is told, without keys.
    fn tell(&mut self) {
        let Self {
            report,
            shared,
            heard,
            caller,
            ..
        } = self;
        let own = shared.config.upstream.key().unwrap_or_default();
        let keys = || [caller.as_str(), own].into_iter();
        let texts = [&mut report.model, &mut report.request_id].into_iter();
        for text in texts.chain(&mut report.error) {
            leave_out(text, keys());
        }
        let Some(heard) = heard.take() else { return };
        let known = || keys().chain(shared.config.keys.iter().map(String::as_str));
        let text = |bytes: Vec<u8>| {
            let mut text = String::from_utf8_lossy(&bytes).into_owned();
            leave_out(&mut text, known());
            if text.len() > LONGEST_TEXT {
                text.truncate(text.floor_char_boundary(LONGEST_TEXT));
                text.push('…');
            }
            text
        };
        report.contents = Some(Contents {
            asked: heard.asked.into_iter().map(text).collect(),
            said: text(heard.said),
            given: text(heard.given),
        });
    }
}

/// What has been said, as far as it is told.
#[derive(Default)]
struct Heard {
    asked: Vec<Vec<u8>>,
    said: Vec<u8>,
    given: Vec<u8>,
}

/// The longest text that is told, in bytes.
const LONGEST_TEXT: usize = 64 << 10;
/// How much more of it is heard, so that a key which stands where it is cut is known.
const LONGEST_KEY: usize = 4 << 10;

fn hear(heard: &mut Vec<u8>, piece: &[u8]) {
    let room = (LONGEST_TEXT + LONGEST_KEY).saturating_sub(heard.len());
    heard.extend_from_slice(piece.get(..room).unwrap_or(piece));
}

/// Leaves keys out of a text, if they are long enough to be known as such.
fn leave_out<'k>(text: &mut String, keys: impl Iterator<Item = &'k str>) {
    for key in keys.filter(|key| key.len() >= SHORTEST_KEY) {
        if text.contains(key) {
            *text = text.replace(key, CONCEALED);
        }
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.report.time = self.begun.elapsed();
        self.tell();
        self.shared.metrics.add(&self.report);
        self.shared.config.observe.ended(&self.report);
    }
}
