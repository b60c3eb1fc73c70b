//! Calls that are data from the beginning: no reply holds them (`spec/running.md`, "Submitted calls").

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use plaincall_plan::CallIndex;
use tokio::sync::mpsc::WeakUnboundedSender;
use tokio::sync::oneshot;

use crate::call_arguments::SubmittedArguments;
use crate::driver::Message;
use crate::result::{CallResult, Status, Times};
use crate::run_state::{Input, submitted_id};
use crate::turn::Turn;

impl Turn<'_> {
    /// Submits a call that is data already, for instance one that a client sends as JSON.
    ///
    /// It goes through the same checks, rules, gate, limits and log as a call of the reply. It stands outside of the
    /// reply: it depends on no call and waits for none, no call can depend on it, and its result is that of the returned
    /// future alone, not one of the turn. [`finish`](Self::finish) waits for it too.
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
    ///     Some("wrong arguments: `a`: expected an integer, found `x`")
    /// );
    /// # Ok(())
    /// # }
    /// ```
    pub fn submit(&mut self, name: &str, arguments: impl Into<SubmittedArguments>) -> Submitted {
        self.submit_call(None, name, arguments.into())
    }

    /// As [`submit`](Self::submit) for a call that the tool of another call makes: the one with the number `parent`, which
    /// must be running. When that ends, the call is cancelled if it has not ended.
    ///
    /// Each of the two takes a slot of its own: a tool that runs alone, or in a run of one call at a time, waits in vain.
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
        if self.stop.is_some() {
            let error = "the turn has ended; submit the call in the next turn";
            let _ = reply.send(CallResult {
                status: Status::Rejected,
                error: Some(error.into()),
                ..submitted.lost()
            });
            return submitted;
        }
        submitted.call = self.next_call();
        let input = Input::Submit {
            name,
            arguments: Arc::new(arguments.not_too_deep()),
            parent,
        };
        self.run.send(Message::Submit(input, reply));
        submitted
    }

    /// The submitted calls of a turn that [goes on](crate::Run::resume_turn) after the run was taken up again from its log, in
    /// their order. They give their results also if they had ended before.
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

/// A call that was [submitted](Turn::submit), and the future of its result. As in the results of a turn, a long output is
/// cut; that of a call with a parent, whose result no model reads, is whole.
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
    /// The number of the call in the run, as in its events.
    pub fn call(&self) -> u32 {
        self.call
    }

    /// Cancels this call alone: one that has not started ends at once, the tool of one that runs is stopped. The future
    /// says what became of it.
    pub fn cancel(&self) {
        if let Some(inbox) = self.inbox.upgrade() {
            let _ = inbox.send(Message::Input(Input::CancelCall {
                call: CallIndex::new(self.call),
                reason: "the caller cancelled it".into(),
            }));
        }
    }

    fn lost(&self) -> CallResult {
        let id = submitted_id(self.call).into();
        CallResult::lost(self.call, id, Arc::clone(&self.name))
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
    /// The result of a call of which nothing more will be known, because the runtime has gone down.
    pub(crate) fn lost(call: u32, id: Arc<str>, name: Arc<str>) -> Self {
        Self {
            call,
            id,
            name,
            status: Status::Unknown,
            output: None,
            whole_bytes: None,
            note: None,
            untrusted: None,
            call_error: None,
            error: Some("the runtime shut down, so the outcome of the call is unknown".into()),
            because: None,
            times: Times::default(),
        }
    }
}
