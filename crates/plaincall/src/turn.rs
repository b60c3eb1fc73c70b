//! One reply of the model: text in, results out.

use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::sync::atomic::Ordering;
use std::task::{Context, Poll, ready};
use std::time::Duration;

use futures_core::Stream;
use plaincall_reply::{ReplyItem, Stop, Untrusted};
use tokio::sync::oneshot;

use crate::driver::Message;
use crate::event::{Delta, RunEvent, TurnBegin};
use crate::result::{CallResult, TurnResults};
use crate::run::Run;
use crate::run_state::is_for_run;
use crate::source::Source;
use crate::trace::Parent;
use crate::usage::Usage;

/// One reply of the model, fed with pieces of text as they arrive.
///
/// A call starts as soon as it is complete and its dependencies have ended, while the rest of the reply still arrives. Tools
/// run on other tasks; on a single-threaded runtime they run whenever the feeding task awaits.
///
/// After [`Run::listen`], a turn is a stream of the parts of the reply and the events of the run (`docs/observing.md`). The
/// stream ends when the reply ([`end`](Self::end)) and all its calls have ended.
///
/// Dropping a turn before [`finish`](Self::finish) has returned, or the stream has ended, cancels its calls.
#[derive(Debug)]
pub struct Turn<'run> {
    pub(crate) run: &'run mut Run,
    pub(crate) stop: Option<Stop>,
    /// The channel for the results, while the turn waits for them.
    awaited: Option<oneshot::Receiver<TurnResults>>,
    results: Option<TurnResults>,
    usage: Option<Usage>,
    /// Whether the turn has its results, so that dropping it does not cancel it.
    is_over: bool,
    /// The items that the stream has not returned yet.
    items: VecDeque<ReplyItem<'static>>,
    /// The calls of the turn, to report them as unknown if the runtime shuts down.
    calls: Vec<(u32, Arc<str>, Arc<str>)>,
    /// The submitted calls of a resumed turn, with their names.
    pub(crate) resubmitted: Vec<(u32, Arc<str>)>,
}

/// An item of the stream of a turn.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum TurnEvent {
    /// A part of the reply. It comes before the events that it causes.
    Reply(ReplyItem<'static>),
    /// An event of the run.
    Run(RunEvent),
}

impl Run {
    /// Starts the next reply of the model. This cancels the calls of an unfinished turn of a resumed run, unless
    /// [`resume_turn`](Self::resume_turn) was called.
    pub fn turn(&mut self) -> Turn<'_> {
        self.begin(None)
    }

    /// Like [`turn`](Self::turn), with a limit of calls for this reply, in addition to the policy. Further calls are rejected.
    #[doc(hidden)]
    pub fn turn_of(&mut self, calls: u32) -> Turn<'_> {
        self.begin(Some(calls))
    }

    /// Continues the last turn of a resumed run. Feed it the rest of the reply, if the reply had not ended
    /// ([`unfinished`](Self::unfinished)), and finish it. A turn that had ended returns its results again, because a crash may
    /// have lost them. If there is no such turn, this starts one.
    pub fn resume_turn(&mut self) -> Turn<'_> {
        match self.resumed.take() {
            Some(last) => Turn::new(self, last.stop, last.submitted),
            None => self.begin(None),
        }
    }

    /// Cancels a turn, and ends its reply if it is open, as a replay does.
    fn abandon(&mut self, is_open: bool) {
        let mut items = Vec::new();
        if is_open {
            items = self.reader.finish(Stop::Broken).items;
        }
        for item in &items {
            if let ReplyItem::CallStart(_) = item {
                self.written.push(self.appeared);
                self.appeared = self.appeared.saturating_add(1);
            }
        }
        self.send(Message::Abandon(items));
    }

    fn begin(&mut self, calls: Option<u32>) -> Turn<'_> {
        if let Some(last) = self.resumed.take().filter(|last| !last.has_ended) {
            self.abandon(last.stop.is_none());
        }
        self.reader.begin_reply();
        let (turn, at) = (0, Duration::ZERO);
        let begin = RunEvent::Turn(TurnBegin { turn, calls, at });
        self.send(Message::BeginTurn(begin, Parent::turn()));
        Turn::new(self, None, Vec::new())
    }
}

impl<'run> Turn<'run> {
    fn new(run: &'run mut Run, stop: Option<Stop>, resubmitted: Vec<(u32, Arc<str>)>) -> Self {
        Self {
            run,
            stop,
            awaited: None,
            results: None,
            usage: None,
            is_over: false,
            items: VecDeque::new(),
            calls: Vec::new(),
            resubmitted,
        }
    }

    /// Feeds the next part of the reply: text, or bytes that may split a character.
    ///
    /// This never waits. If you feed faster than the log can be written, await [`caught_up`](Self::caught_up) from time to
    /// time.
    pub fn feed(&mut self, chunk: impl AsRef<[u8]>) {
        let chunk = chunk.as_ref();
        if self.stop.is_some() {
            return;
        }
        let mut items = Vec::new();
        let Run {
            reader, listener, ..
        } = &mut *self.run;
        for item in reader.feed(chunk) {
            let is_for_run = is_for_run(&item);
            if is_for_run || listener.is_some() {
                let item = item.into_owned();
                if listener.is_some() {
                    self.items.push_back(item.clone());
                }
                if is_for_run {
                    items.push(item);
                }
            }
        }
        let is_needed = self.run.text_is_needed.load(Ordering::Relaxed) && !chunk.is_empty();
        if is_needed || !items.is_empty() {
            self.remember(&items);
            let source = Source::from(if is_needed { chunk } else { b"" });
            let at = Duration::ZERO;
            let delta = RunEvent::Text(Delta { source, at });
            self.run.send(Message::Event(delta, items));
        }
    }

    /// Records that the model receives an untrusted text while it writes this reply; see [`Run::observe_untrusted`]. Calls that
    /// are complete before this are not compared with the text.
    pub fn observe_untrusted(&mut self, name: &str, text: &Untrusted<'_>) {
        self.run.observe_untrusted(name, text);
    }

    /// Waits until the run has processed the reply so far and most of it is logged.
    pub fn caught_up(&self) -> impl Future<Output = ()> + Send + use<> {
        let inbox = self.run.inbox.downgrade();
        async move {
            let (reply, caught_up) = oneshot::channel();
            if let Some(inbox) = inbox.upgrade() {
                let _ = inbox.send(Message::CatchUp(reply));
            }
            // An error means that the runtime has shut down, and there is nothing to wait for.
            let _ = caught_up.await;
        }
    }

    /// Sets the tokens of the reply, if they are known. They are logged at its [`end`](Self::end).
    pub fn set_usage(&mut self, usage: Option<Usage>) {
        self.usage = usage;
    }

    /// Ends the reply. Its calls continue. No effect on a reply that ended before the run was resumed.
    pub fn end(&mut self, stop: Stop) {
        if self.awaited.is_some() || self.results.is_some() {
            return;
        }
        let (reply, results) = oneshot::channel();
        self.awaited = Some(results);
        if self.stop.is_some() {
            self.run.send(Message::Collect(reply));
            return;
        }
        self.stop = Some(stop);
        let items = self.run.reader.finish(stop).items;
        self.remember(&items);
        if self.run.listener.is_some() {
            self.items.extend(items.iter().cloned());
        }
        let end = RunEvent::reply_end(stop, self.usage);
        self.run.send(Message::EndReply(end, items, reply));
    }

    /// Ends the reply, unless [`end`](Self::end) was called, and waits until all its calls have ended.
    pub async fn finish(mut self, stop: Stop) -> TurnResults {
        self.end(stop);
        // Dropping this future drops the turn, which cancels its calls.
        poll_fn(|context| self.poll_results(context)).await;
        self.results.take().unwrap_or_default()
    }

    fn poll_results(&mut self, context: &mut Context<'_>) -> Poll<()> {
        if let Some(results) = &mut self.awaited {
            let results = ready!(Pin::new(results).poll(context));
            self.awaited = None;
            self.is_over = true;
            self.results = Some(results.unwrap_or_else(|_| self.lost()));
        }
        Poll::Ready(())
    }

    /// Returns the next item of the stream, or `None` at its end. Cancel safe.
    pub async fn next(&mut self) -> Option<TurnEvent> {
        poll_fn(|context| Pin::new(&mut *self).poll_next(context)).await
    }

    /// Returns the next item of the stream without waiting.
    pub fn try_next(&mut self) -> Option<TurnEvent> {
        let items = self.items.pop_front().map(TurnEvent::Reply);
        items.or_else(|| self.run.try_event().map(TurnEvent::Run))
    }

    /// Returns the index of the call that an item of a reply means. They differ if calls were submitted before it.
    pub fn call_of(&self, item_index: usize) -> Option<u32> {
        self.run.written.get(item_index).copied()
    }

    fn remember(&mut self, items: &[ReplyItem<'_>]) {
        for item in items {
            if let ReplyItem::CallStart(started) = item {
                let call = self.next_call();
                self.run.written.push(call);
                let (id, name) = (started.id.as_str(), started.name.as_str());
                self.calls.push((call, id.into(), name.into()));
            }
        }
    }

    pub(crate) fn next_call(&mut self) -> u32 {
        let call = self.run.appeared;
        self.run.appeared = call.saturating_add(1);
        call
    }

    /// Cancels all calls of the run; see [`Canceller::cancel`](crate::Canceller::cancel). The turn continues, and its results
    /// report how each call ended.
    pub fn cancel(&self) {
        self.run.send(Message::Cancel);
    }

    /// Returns results with the status `unknown` for all calls, because the runtime has shut down.
    fn lost(&self) -> TurnResults {
        let calls = self.calls.iter();
        let results = calls.map(|(call, id, name)| CallResult::lost(*call, Arc::clone(id), name));
        TurnResults {
            results: results.collect(),
            is_last: false,
            log_failure: None,
        }
    }
}

impl Stream for Turn<'_> {
    type Item = TurnEvent;

    fn poll_next(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<Option<TurnEvent>> {
        let turn = &mut *self;
        if let Some(item) = turn.items.pop_front() {
            return Poll::Ready(Some(TurnEvent::Reply(item)));
        }
        let mut is_observed = false;
        if let Some(events) = &mut turn.run.listener {
            match Pin::new(events).poll_next(context) {
                Poll::Ready(Some(event)) => return Poll::Ready(Some(TurnEvent::Run(event))),
                // The runtime has shut down, so nothing would wake this task.
                Poll::Ready(None) => {}
                Poll::Pending => is_observed = true,
            }
        }
        if turn.awaited.is_none() && turn.results.is_none() {
            return if is_observed {
                Poll::Pending
            } else {
                Poll::Ready(None)
            };
        }
        ready!(turn.poll_results(context));
        // All events of the turn have been sent before its results.
        Poll::Ready(turn.try_next())
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.run.abandon(self.stop.is_none());
        }
    }
}
