//! One reply of the model: text in, results out.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use plaincall_call::{Foreign, ReplyItem, Stop, Syntax};
use tokio::sync::mpsc::WeakUnboundedSender;
use tokio::sync::oneshot;

use crate::conductor::is_for_run;
use crate::driver::Message;
use crate::result::{CallResult, TurnResults};
use crate::run::Run;
use crate::trace::Parent;

/// One reply of the model, fed with pieces of text as they arrive.
///
/// A call starts as soon as it is complete and its dependencies are done, while the rest is still being written. The
/// tools run on other tasks; on a runtime with one thread they get their turn whenever the feeding task waits.
///
/// Dropping a turn before [`finish`](Self::finish) has returned calls off its calls.
pub struct Turn<'run> {
    run: &'run mut Run,
    /// How the reply ended, if it was over before the run was taken up again.
    stop: Option<Stop>,
    /// Whether nobody has to be told any more that the turn is dropped.
    is_over: bool,
    watch: Option<WatchBox<'run>>,
    /// The calls of the turn, in case that the runtime goes down and nobody is left to say how they ended.
    calls: Vec<(u32, Arc<str>, Arc<str>)>,
    /// The submitted calls of a turn that goes on, with their names.
    resubmitted: Vec<(u32, Arc<str>)>,
}

type WatchBox<'run> = Box<dyn FnMut(&ReplyItem<'_>) + Send + 'run>;

impl Run {
    /// Begins the next reply of the model. If the run was taken up again from a log that ends within a turn, and nobody
    /// has [gone on](Self::go_on) with that, its calls are called off.
    pub fn turn(&mut self) -> Turn<'_> {
        self.begin(None)
    }

    /// As [`turn`](Self::turn), for a reply that may hold at most so many calls, beside what the policy says. Those
    /// written after them are rejected.
    pub fn turn_of(&mut self, calls: u32) -> Turn<'_> {
        self.begin(Some(calls))
    }

    /// Goes on with the last turn of a run that was taken up again from its log. Feed it what is left of the reply, if
    /// it was not over ([`unfinished`](Self::unfinished)), and finish it. Of a turn that had ended it gives the results
    /// once more: a crash may have lost them on their way. Where there is no such turn it begins one.
    pub fn go_on(&mut self) -> Turn<'_> {
        match self.resumed.take() {
            Some(last) => Turn::new(self, last.stop, last.submitted),
            None => self.begin(None),
        }
    }

    fn begin(&mut self, calls: Option<u32>) -> Turn<'_> {
        if self.resumed.take().is_some_and(|last| !last.has_ended) {
            self.send(Message::Abandon);
        }
        self.reader.begin_reply();
        self.send(Message::Open {
            parent: Parent::turn(),
            calls,
        });
        Turn::new(self, None, Vec::new())
    }
}

impl<'run> Turn<'run> {
    fn new(run: &'run mut Run, stop: Option<Stop>, resubmitted: Vec<(u32, Arc<str>)>) -> Self {
        Self {
            run,
            stop,
            is_over: false,
            watch: None,
            calls: Vec::new(),
            resubmitted,
        }
    }

    /// Lets a function see all that is read, before it has consequences: text between the calls, reasoning, arguments while
    /// they are being written.
    pub fn watch(mut self, watch: impl FnMut(&ReplyItem<'_>) + Send + 'run) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Takes the next piece of the reply: text, or bytes that may cut a character.
    ///
    /// It never waits. Whoever feeds faster than the log can be written waits for [`caught_up`](Self::caught_up) now
    /// and then.
    pub fn feed(&mut self, chunk: impl AsRef<[u8]>) {
        let chunk = chunk.as_ref();
        if self.stop.is_some() {
            return;
        }
        let mut read = Vec::new();
        for item in self.run.reader.feed(chunk) {
            if let Some(watch) = &mut self.watch {
                watch(&item);
            }
            if is_for_run(&item) {
                read.push(item.into_owned());
            }
        }
        let is_wanted = self.run.text_is_wanted.load(Ordering::Relaxed) && !chunk.is_empty();
        if is_wanted || !read.is_empty() {
            self.remember(&read);
            let source = is_wanted.then(|| chunk.into());
            self.run.send(Message::Fed { source, read });
        }
    }

    /// Says that the model is given a text from outside while it writes this reply; see [`Run::hear`]. What was read
    /// before was written without it.
    pub fn hear(&mut self, name: &str, text: &Foreign<'_>) {
        self.run.hear(name, text);
    }

    /// Waits until the run has taken all that was fed, and not much of it waits to be written to the log.
    pub fn caught_up(&self) -> impl Future<Output = ()> + Send + use<> {
        let inbox = self.run.inbox.downgrade();
        async move {
            let (reply, caught_up) = oneshot::channel();
            if let Some(inbox) = inbox.upgrade() {
                let _ = inbox.send(Message::CatchUp(reply));
            }
            // If nobody answers, the runtime is gone, and there is nothing to wait for.
            let _ = caught_up.await;
        }
    }

    /// Ends the reply and waits until all its calls have ended. Of a reply that was over before the run was taken up
    /// again it only waits for the calls.
    pub async fn finish(mut self, stop: Stop) -> TurnResults {
        let (reply, results) = oneshot::channel();
        if self.stop.is_some() {
            self.run.send(Message::Collect(reply));
        } else {
            let read = self.run.reader.finish(stop).items;
            for item in &read {
                if let Some(watch) = &mut self.watch {
                    watch(item);
                }
            }
            self.remember(&read);
            self.run.send(Message::Over { stop, read, reply });
        }
        // Should this future be dropped while it waits, so is the turn, and its calls are called off.
        let results = results.await;
        self.is_over = true;
        results.unwrap_or_else(|_| self.lost())
    }

    fn remember(&mut self, read: &[ReplyItem<'_>]) {
        for item in read {
            if let ReplyItem::CallStart(started) = item {
                let call = self.next_call();
                let (id, name) = (started.id.as_str(), started.name.as_str());
                self.calls.push((call, id.into(), name.into()));
            }
        }
    }

    /// The number of the call that appears or is submitted now.
    pub(crate) fn next_call(&mut self) -> u32 {
        let call = self.run.appeared;
        self.run.appeared = call.saturating_add(1);
        call
    }

    /// Whether the reply was over before the run was taken up again.
    pub(crate) fn is_over(&self) -> bool {
        self.stop.is_some()
    }

    pub(crate) fn send(&self, message: Message) {
        self.run.send(message);
    }

    pub(crate) fn inbox(&self) -> WeakUnboundedSender<Message> {
        self.run.inbox.downgrade()
    }

    pub(crate) fn resubmitted(&self) -> &[(u32, Arc<str>)] {
        &self.resubmitted
    }

    /// Calls off all calls of the run; see [`Canceller::cancel`](crate::Canceller::cancel). The turn goes on: its
    /// results say what became of each call.
    pub fn cancel(&self) {
        self.run.send(Message::Cancel);
    }

    /// The syntax of the reply, once its first call has been read.
    pub fn syntax(&self) -> Option<Syntax> {
        self.run.reader.syntax()
    }

    /// Results for calls of which nothing more will be heard, because the runtime has gone down.
    fn lost(&self) -> TurnResults {
        let calls = self.calls.iter();
        let results =
            calls.map(|(call, id, name)| CallResult::lost(*call, Arc::clone(id), Arc::clone(name)));
        TurnResults {
            results: results.collect(),
            is_last: false,
            log_failure: None,
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if !self.is_over {
            self.run.send(Message::Abandon);
        }
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Turn")
            .field("calls", &self.calls)
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}
