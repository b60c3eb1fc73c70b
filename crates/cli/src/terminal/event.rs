//! The UI events of a run or an answer.

use std::sync::Arc;
use std::sync::mpsc::Receiver;

use plaincall::RunEvent;
use tokio::sync::oneshot;

#[derive(Debug)]
pub(crate) enum UiEvent {
    /// Work begins on a question.
    Begin,
    /// The model is asked for its reply of this turn, from 0.
    TurnBegin(u32),
    /// Text of the reply, outside calls.
    Text(String),
    Reasoning(String),
    /// A call begins in the reply.
    Call {
        call: u32,
        id: Arc<str>,
        name: Arc<str>,
    },
    /// The next piece of an argument of a call; without a pointer it belongs to the line or the body of an emoji call.
    Value {
        call: u32,
        pointer: Option<Arc<str>>,
        text: String,
    },
    /// Something has happened to a call or the run, as the record has it.
    Run(Box<RunEvent>),
    /// The reply and its calls have ended.
    TurnEnd,
    /// Something that is neither in the reply nor about a call.
    Remark(String),
    /// The answer, for displays that have not shown it while it arrived.
    Answer(String),
    /// The question is over; what it took, in parts.
    Totals {
        parts: Vec<String>,
        is_answered: bool,
    },
    Abandoned,
    Stopping,
    Tick,
    /// All is over; what comes now is the summary.
    Over,
    /// Answered when all events before it have been written.
    Flush(oneshot::Sender<()>),
    /// Something else uses the terminal: nothing is written until the sender of `is_back` has gone.
    Pause {
        /// Answered when the display is paused.
        notify: oneshot::Sender<()>,
        is_back: Receiver<()>,
    },
}

pub(crate) trait Display: Send {
    /// Handles an event and adds the output to `out`.
    fn take(&mut self, event: UiEvent, out: &mut String);

    /// Removes what is drawn in place, since something else will write on the terminal.
    fn pause(&mut self, _: &mut String) {}

    /// The terminal may be written on again.
    fn resume(&mut self, _: &mut String) {}

    /// No more events come, and the summary never came: adds what leaves the terminal in order.
    fn abandon(&mut self, _: &mut String) {}
}
