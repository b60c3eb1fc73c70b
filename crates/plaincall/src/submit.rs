//! Calls that are data from the beginning: no reply holds them (`spec/running.md`, "Submitted calls").

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use plaincall_call::{Arguments, CallError, Limits, ToolSpec, bind_arguments, flatten_call};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};
use tokio::sync::mpsc::WeakUnboundedSender;
use tokio::sync::oneshot;

use crate::driver::Message;
use crate::event::ArgumentTexts;
use crate::result::{CallResult, Status};
use crate::turn::Turn;

/// How deep submitted JSON may be nested. JSON that is nested much deeper cannot be read from a log again.
const DEEPEST: usize = 64;

/// The arguments of a submitted call.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SubmittedArguments {
    /// A JSON object, nested at most 64 deep.
    Json(Value),
    /// Texts by JSON Pointer, as a model writes them.
    Texts(ArgumentTexts),
}

impl From<Value> for SubmittedArguments {
    fn from(value: Value) -> Self {
        Self::Json(value)
    }
}

impl From<Map<String, Value>> for SubmittedArguments {
    fn from(object: Map<String, Value>) -> Self {
        Self::Json(Value::Object(object))
    }
}

impl From<Vec<(String, String)>> for SubmittedArguments {
    fn from(texts: Vec<(String, String)>) -> Self {
        Self::Texts(ArgumentTexts(texts))
    }
}

impl SubmittedArguments {
    /// The arguments as the tool is to get them.
    ///
    /// # Errors
    /// What is wrong with them, in words for the model.
    pub(crate) fn bind(&self, tool: &ToolSpec, limits: &Limits) -> Result<Arguments, String> {
        let flat;
        let pairs = match self {
            Self::Json(Value::Object(object)) => {
                flat = flatten_call(object, tool).map_err(|what| wrong(&what))?;
                &flat
            }
            Self::Json(_) => {
                return Err(wrong(&format!(
                    "expected a JSON object, nested at most {DEEPEST} deep"
                )));
            }
            Self::Texts(texts) => &texts.0,
        };
        if pairs.len() > limits.arguments {
            let most = limits.arguments;
            return Err(wrong(&format!("a call has at most {most} arguments")));
        }
        for (pointer, text) in pairs {
            if let Some(most) = limits.value_bytes.filter(|most| text.len() > *most) {
                return Err(wrong(&format!("`{pointer}` has more than {most} bytes")));
            }
        }
        bind_pairs(tool, pairs)
    }
}

/// Texts by JSON Pointer as the arguments of a tool.
///
/// # Errors
/// What is wrong with them, in words for the model.
pub(crate) fn bind_pairs(tool: &ToolSpec, pairs: &[(String, String)]) -> Result<Arguments, String> {
    let pairs = pairs.iter().map(|(pointer, text)| (&**pointer, &**text));
    let arguments =
        Arguments::from_pairs_for(tool, pairs).map_err(|error| wrong(&error.to_string()))?;
    bind_arguments(tool, &arguments).map_err(|problems| CallError::Arguments(problems).to_string())
}

fn wrong(what: &str) -> String {
    format!("wrong arguments: {what}")
}

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
    ///     Some("wrong arguments: `a`: expected a whole number, found `x`")
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
        let arguments = match arguments {
            SubmittedArguments::Json(value) if nesting(&value, DEEPEST) > DEEPEST => {
                SubmittedArguments::Json(Value::Null)
            }
            arguments => arguments,
        };
        let name: Arc<str> = name.into();
        let (reply, result) = oneshot::channel();
        if self.is_over() {
            let error = "the turn is over; calls can be submitted in the next one";
            let id = id_of(u32::MAX).into();
            let _ = reply.send(CallResult {
                status: Status::Rejected,
                error: Some(error.into()),
                ..CallResult::lost(u32::MAX, id, Arc::clone(&name))
            });
            return Submitted::new(u32::MAX, name, result, self.inbox());
        }
        let call = self.next_call();
        self.send(Message::Submit {
            name: Arc::clone(&name),
            arguments: Arc::new(arguments),
            parent,
            reply,
        });
        Submitted::new(call, name, result, self.inbox())
    }

    /// The submitted calls of a turn that [goes on](crate::Run::go_on) after the run was taken up again from its log, in
    /// their order. They give their results also if they had ended before.
    pub fn submitted(&self) -> Vec<Submitted> {
        let calls = self.resubmitted().iter();
        let again = calls.map(|(call, name)| {
            let (reply, result) = oneshot::channel();
            self.send(Message::Submitted { call: *call, reply });
            Submitted::new(*call, Arc::clone(name), result, self.inbox())
        });
        again.collect()
    }
}

/// The id of a submitted call. No call can name it as a dependency.
pub(crate) fn id_of(call: u32) -> String {
    format!("submitted_{call}")
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
    fn new(
        call: u32,
        name: Arc<str>,
        result: oneshot::Receiver<CallResult>,
        inbox: WeakUnboundedSender<Message>,
    ) -> Self {
        Self {
            call,
            name,
            result,
            inbox,
            is_over: false,
        }
    }

    /// The number of the call in the run, as in its events.
    pub fn call(&self) -> u32 {
        self.call
    }

    /// Cancels this call alone: one that has not started ends at once, the tool of one that runs is stopped. The future
    /// says what became of it.
    pub fn cancel(&self) {
        if let Some(inbox) = self.inbox.upgrade() {
            let _ = inbox.send(Message::CancelCall(self.call));
        }
    }
}

impl Future for Submitted {
    type Output = CallResult;

    fn poll(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<CallResult> {
        let result = Pin::new(&mut self.result).poll(context);
        result.map(|result| {
            self.is_over = true;
            let id = || id_of(self.call).into();
            result.unwrap_or_else(|_| CallResult::lost(self.call, id(), Arc::clone(&self.name)))
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
            error: Some("the runtime went down, and nobody knows what became of the call".into()),
            because: None,
            times: crate::result::Times::default(),
        }
    }
}

/// How deep lists and objects are nested in a value; more than `most` says as much as it needs to.
pub(crate) fn nesting(value: &Value, most: usize) -> usize {
    let mut level: Vec<&Value> = vec![value];
    let mut depth = 0;
    while depth <= most && !level.is_empty() {
        let inner = level.into_iter().flat_map(|value| match value {
            Value::Array(items) => items.iter().collect(),
            Value::Object(members) => members.values().collect(),
            _ => Vec::new(),
        });
        level = inner.collect();
        depth += 1;
    }
    depth
}
