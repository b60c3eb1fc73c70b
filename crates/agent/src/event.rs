//! What happens while a question is worked on.

use std::sync::Arc;

use plaincall::RunEvent;

use crate::model::{Finish, RetryEvent, Usage};

/// Something that happens while a question is worked on.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum AgentEvent {
    /// The model is asked for a reply. Turns are counted from 0, over the whole conversation. If nothing of a reply comes,
    /// there is no turn: the question ends, and the number comes again with the next.
    TurnBegin {
        /// Its number.
        turn: u32,
    },
    /// The model's server could not be asked, and will be asked again after a while. Nothing of a reply had come.
    Retry(RetryEvent),
    /// Text of the reply outside of calls.
    Text(String),
    /// Reasoning of the model.
    Reasoning(String),
    /// A call begins: its header was read.
    Call {
        /// Its place in order of appearance, from 0, over the whole conversation.
        call: u32,
        /// Its id, written or given.
        id: Arc<str>,
        /// The name of its tool, as written.
        name: Arc<str>,
    },
    /// A piece of a value of a call that is being written.
    Value {
        /// The call's place in order of appearance.
        call: u32,
        /// The pointer of the argument; none in the emoji syntax's body.
        pointer: Option<Arc<str>>,
        /// The text.
        text: String,
    },
    /// An event of the run, as the record has it: the start of a tool, its result.
    Run(Box<RunEvent>),
    /// The reply and all its calls have ended.
    TurnEnd {
        /// Its number.
        turn: u32,
        /// How the reply ended.
        finish: Finish,
        /// What it cost, as far as the model's server says.
        usage: Option<Usage>,
    },
    /// The program tells the model something by itself: what is wrong with its calls, or that a call is missing.
    Message {
        /// What.
        text: Arc<str>,
    },
    /// Results were shortened so that the conversation fits what the model can read.
    Shortened {
        /// How many results.
        results: usize,
        /// How many bytes were left out.
        bytes: u64,
    },
}
