//! Calls that are submitted as data instead of written in a reply (`spec/running.md`, "Submitted calls").

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::Duration;

use plaincall_reply::Stop;
use tokio::sync::mpsc::WeakUnboundedSender;
use tokio::sync::oneshot;

use crate::call_arguments::SubmittedArguments;
use crate::driver::Message;
use crate::event::{Appeared, RunEvent, SubagentText};
use crate::result::{CallResult, Status};
use crate::run_state::submitted_id;
use crate::turn::Turn;
use crate::usage::Usage;

impl Turn<'_> {
    /// Submits a call as data, for example one that a client sends as JSON.
    ///
    /// The same validation, rules, gate, limits and log apply as to a call of the reply. But it has no dependencies, no call can
    /// depend on it, and only the returned future has its result, not the turn. [`finish`](Self::finish) waits for it too.
    ///
    /// ```
    /// use plaincall::{Effect, Run, Tool, Toolbox};
    /// use serde_json::json;
    ///
    /// #[derive(serde::Deserialize, schemars::JsonSchema)]
    /// struct Add { a: i64, b: i64 }
    ///
    /// # #[tokio::main(flavor = "current_thread")]
    /// # async fn main() -> Result<(), plaincall::BoxError> {
    /// let add = Tool::new("add", |add: Add, _| async move { Ok((add.a + add.b).to_string()) });
    /// let mut run = Run::new(Toolbox::new([add.effect(Effect::Read)])?)?;
    /// let mut turn = run.turn();
    /// let (first, second) = (
    ///     turn.submit("add", json!({"a": 19, "b": 23})),
    ///     turn.submit("add", json!({"a": "x", "b": 1})),
    /// );
    /// assert_eq!(first.await.output.as_deref(), Some("42"));
    /// assert_eq!(
    ///     second.await.error.as_deref(),
    ///     Some("invalid arguments: `a`: expected an integer, found `\"x\"`")
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit(&mut self, name: &str, arguments: impl Into<SubmittedArguments>) -> Submitted {
        self.submit_call(None, name, arguments.into())
    }

    /// Like [`submit`](Self::submit), for a call that the tool of another call makes. `parent` is the index of that call, which
    /// must be running; the reply may have ended. When the parent ends, the submitted call is cancelled.
    ///
    /// Each call takes its own slot, unless its tool [delegates](crate::Tool::delegates). So if the parent's tool is exclusive,
    /// or the run allows one call at a time, and the tool does not delegate, the submitted call cannot start before the parent
    /// ends.
    #[doc(hidden)]
    pub fn submit_from(
        &mut self,
        parent: u32,
        name: &str,
        arguments: impl Into<SubmittedArguments>,
    ) -> Submitted {
        self.submit_call(Some(parent), name, arguments.into())
    }

    fn submit_call(
        &mut self,
        parent: Option<u32>,
        name: &str,
        arguments: SubmittedArguments,
    ) -> Submitted {
        let name: Arc<str> = name.into();
        let (reply, result) = oneshot::channel();
        let mut submitted = Submitted {
            call: u32::MAX,
            name: Arc::clone(&name),
            result,
            inbox: self.run.inbox.downgrade(),
            is_over: false,
        };
        if self.stop.is_some() && parent.is_none() {
            let error = "the turn has ended; submit the call in the next turn";
            let _ = reply.send(CallResult {
                status: Status::Rejected,
                error: Some(error.into()),
                ..submitted.lost()
            });
            return submitted;
        }
        submitted.call = self.next_call();
        let event = RunEvent::Call(Appeared {
            call: submitted.call,
            id: Arc::default(),
            name,
            dependencies: Arc::default(),
            submitted: Some(Arc::new(arguments.not_too_deep())),
            parent,
            at: Duration::ZERO,
        });
        self.run.send(Message::Submit(event, reply));
        submitted
    }

    /// Records a part of a reply in the conversation that the call runs, so that a resumed run can continue it
    /// (`spec/log.md`, `subagent_text`). At the end of the reply, `stop` is how it ended, and `usage` its tokens if they are
    /// known. No effect if the call is not running.
    #[doc(hidden)]
    pub fn record_subagent_text(
        &mut self,
        call: u32,
        text: &str,
        stop: Option<Stop>,
        usage: Option<Usage>,
    ) {
        let part = SubagentText {
            call,
            id: Arc::default(),
            name: Arc::default(),
            text: text.into(),
            stop,
            usage,
            at: Duration::ZERO,
        };
        self.run.record(RunEvent::SubagentText(part));
    }

    /// Returns the submitted calls of a [resumed](crate::Run::resume_turn) turn, in order. This includes calls that have ended.
    #[doc(hidden)]
    pub fn submitted(&self) -> Vec<Submitted> {
        let calls = self.resubmitted.iter();
        let again = calls.map(|(call, name)| {
            let (reply, result) = oneshot::channel();
            let call = *call;
            self.run.send(Message::Submitted { call, reply });
            Submitted {
                call,
                name: Arc::clone(name),
                result,
                inbox: self.run.inbox.downgrade(),
                is_over: false,
            }
        });
        again.collect()
    }
}

/// A [submitted](Turn::submit) call: a future of its result. A long output is truncated, unless the call has a parent.
///
/// Dropping it cancels the call.
#[derive(Debug)]
#[must_use = "dropping it cancels the call"]
pub struct Submitted {
    call: u32,
    name: Arc<str>,
    result: oneshot::Receiver<CallResult>,
    inbox: WeakUnboundedSender<Message>,
    is_over: bool,
}

impl Submitted {
    /// Returns the index of the call, as in the events of the run.
    pub fn call(&self) -> u32 {
        self.call
    }

    /// Cancels only this call: if it has not started, it ends at once; otherwise its tool is stopped. The future still returns
    /// its result.
    pub fn cancel(&self) {
        if let Some(inbox) = self.inbox.upgrade() {
            let cancel = RunEvent::cancel(Some(self.call), "the caller cancelled it");
            let _ = inbox.send(Message::Event(cancel, Vec::new()));
        }
    }

    fn lost(&self) -> CallResult {
        CallResult::lost(self.call, submitted_id(self.call).into(), &self.name)
    }
}

impl Future for Submitted {
    type Output = CallResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallResult> {
        let result = Pin::new(&mut self.result).poll(context);
        result.map(|result| {
            self.is_over = true;
            result.unwrap_or_else(|_| self.lost())
        })
    }
}

impl Drop for Submitted {
    fn drop(&mut self) {
        if !self.is_over {
            self.cancel();
        }
    }
}

impl CallResult {
    /// Returns the result of a call that was lost because the runtime has shut down.
    pub(crate) fn lost(call: u32, id: Arc<str>, name: &Arc<str>) -> Self {
        let error = "the runtime shut down, so the outcome of the call is unknown";
        Self {
            error: Some(error.into()),
            ..Self::new(call, id, Arc::clone(name), Status::Unknown)
        }
    }
}
