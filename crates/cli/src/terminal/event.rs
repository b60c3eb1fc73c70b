//! The UI events of a run or an answer.

use plaincall_report::call_table::CallTable;
use std::sync::Arc;
use std::sync::mpsc::Receiver;

use plaincall::RunEvent;
use tokio::sync::oneshot;

/// An event for the displays.
#[derive(Debug)]
pub(crate) enum UiEvent {
    /// A question was asked.
    Start,
    /// The model was asked for the reply of this turn, counted from 0.
    TurnStart(u32),
    /// Text of the reply, outside calls.
    Text(String),
    Reasoning(String),
    /// The start of a call in the reply.
    Call {
        call: u32,
        id: Arc<str>,
        name: Arc<str>,
    },
    /// A piece of an argument. Without a pointer, it belongs to the line or body of an emoji call.
    Value {
        call: u32,
        pointer: Option<Arc<str>>,
        text: String,
    },
    /// An event of the run, as in a log.
    Run(Box<RunEvent>),
    /// The end of the reply and its calls.
    TurnEnd,
    /// A note that does not belong to the reply or a call.
    Note(String),
    /// The answer, for displays that did not show it while it arrived.
    Answer(String),
    /// The totals of a question that has ended.
    Totals {
        parts: Vec<String>,
        is_answered: bool,
    },
    Abandoned,
    Stopping,
    Tick,
    /// The end; the summary follows.
    End,
    /// Answered when all earlier events are written.
    Flush(oneshot::Sender<()>),
    /// Pauses the display, because something else uses the terminal, until the sender of `is_back` is dropped.
    Pause {
        /// Answered when the display is paused.
        notify: oneshot::Sender<()>,
        is_back: Receiver<()>,
    },
}

impl UiEvent {
    /// Applies the event to a table of calls.
    pub(crate) fn apply_to(&self, table: &mut CallTable) {
        match self {
            Self::Call { call, id, name } => {
                table.begin(*call, id, name);
            }
            Self::Value {
                call,
                pointer,
                text,
            } => table.add_value(*call, pointer.as_ref(), text),
            Self::Run(event) => table.apply_run_event(event),
            Self::TurnStart(_) => table.begin_reply(),
            _ => {}
        }
    }
}

/// Formats events as text for one output.
pub(crate) trait Display: Send {
    /// Handles an event and adds the output to `out`.
    fn handle(&mut self, event: UiEvent, out: &mut String);

    /// Removes what is drawn in place, because something else will use the terminal.
    fn pause(&mut self, _: &mut String) {}

    /// Continues after a pause.
    fn resume(&mut self, _: &mut String) {}

    /// Cleans up after the last event if there was no summary.
    fn abandon(&mut self, _: &mut String) {}
}
