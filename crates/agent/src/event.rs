//! The events of an agent run.

use std::sync::Arc;

use plaincall::RunEvent;

use crate::model::{Finish, RetryEvent, Usage};

/// An event of an agent run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AgentEvent {
    /// The model is asked for a reply. If no part of it arrives, the agent run ends and the next one uses the same number.
    TurnBegin {
        /// The number of the turn in the conversation, from 0.
        turn: u32,
    },
    /// A request failed before the reply began, and will be retried.
    Retry(RetryEvent),
    /// Text of the reply outside calls.
    Text(String),
    /// Reasoning of the model.
    Reasoning(String),
    /// The header of a call was parsed.
    Call {
        /// The index of the call in the conversation, from 0.
        call: u32,
        /// Its id, written by the model or assigned.
        id: Arc<str>,
        /// The name of its tool, as written.
        name: Arc<str>,
    },
    /// A part of an argument value.
    Value {
        /// The index of the call.
        call: u32,
        /// The pointer of the argument; none for the body in the emoji syntax.
        pointer: Option<Arc<str>>,
        /// The text.
        text: String,
    },
    /// An event of the run, such as the start or the result of a call.
    Run(Box<RunEvent>),
    /// The reply and all its calls have ended.
    TurnEnd {
        /// The number of the turn in the conversation, from 0.
        turn: u32,
        /// How the reply ended.
        finish: Finish,
        /// The tokens of the reply, if the server reports them.
        usage: Option<Usage>,
    },
    /// A message of the program to the model, such as a repair message or a reminder.
    Message {
        /// The text.
        text: Arc<str>,
    },
    /// Results were shortened to fit the context window.
    Shortened {
        /// The number of results.
        results: usize,
        /// The number of removed bytes.
        bytes: u64,
    },
}
