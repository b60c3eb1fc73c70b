//! What is told of each request.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::OwnedSemaphorePermit;
use tokio::time::Instant;

use crate::counts::Counts;
use crate::refusal::Refusal;
use crate::server::Shared;

/// What is told of a request when it has ended. Nothing of what was said is in it.
#[derive(Clone, Debug, Default, PartialEq)]
#[non_exhaustive]
pub struct Report {
    /// The id of the request.
    pub request_id: String,
    /// The path that was asked for.
    pub path: &'static str,
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
    /// Whether the client went away before the end.
    pub is_abandoned: bool,
    /// From the request to the first piece of the answer.
    pub first_piece: Option<Duration>,
    /// From the request to the end of the answer.
    pub time: Duration,
    /// What happened in the reply.
    pub counts: Counts,
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
    _place: Option<OwnedSemaphorePermit>,
}

impl Ticket {
    pub(super) fn new(
        shared: Arc<Shared>,
        path: &'static str,
        request_id: String,
        place: Option<OwnedSemaphorePermit>,
    ) -> Self {
        Self {
            report: Report {
                request_id,
                path,
                // Unless something else is said, the client has gone.
                is_abandoned: true,
                status: 499,
                ..Report::default()
            },
            shared,
            begun: Instant::now(),
            _place: place,
        }
    }

    /// The first piece of the answer is there.
    pub(super) fn first_piece(&mut self) {
        self.report.first_piece.get_or_insert(self.begun.elapsed());
    }

    /// The request ends with this status.
    pub(super) fn end(&mut self, status: u16, error: Option<&Refusal>) {
        self.report.is_abandoned = false;
        self.report.status = status;
        self.report.error = error.map(Refusal::for_log);
    }
}

impl Drop for Ticket {
    fn drop(&mut self) {
        self.report.time = self.begun.elapsed();
        self.shared.metrics.add(&self.report);
        self.shared.config.observe.ended(&self.report);
    }
}
