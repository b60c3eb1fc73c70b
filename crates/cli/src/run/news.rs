//! What the display hears while a run goes on.

use std::sync::mpsc::Receiver;
use std::time::Duration;

use plaincall::RunEvent;
use plaincall_agent::{AgentEvent, Progress};
use tokio::sync::oneshot;

use crate::picture::line::Line;

/// Something to show.
#[derive(Debug)]
pub(crate) enum News {
    /// The next parts of the reply.
    Reply(Vec<Fragment>),
    /// Something has happened to a call.
    Event(RunEvent),
    /// A question is worked on from here.
    Begin,
    /// Something has happened on the way to an answer.
    Agent(Box<AgentEvent>),
    /// The answer to a question.
    Answer(String),
    /// The question is over; what it took.
    Totals {
        progress: Progress,
        time: Duration,
        /// Whether there is an answer.
        is_answered: bool,
    },
    /// Somebody is asked about a call.
    Asking {
        call: u32,
        about: About,
        /// What they have to know.
        lines: Vec<Line>,
        /// What they can answer.
        prompt: Line,
    },
    /// The next page of what they have to know.
    Page {
        call: u32,
        lines: Vec<Line>,
        prompt: Line,
    },
    /// The last line of the question has changed.
    Prompt { call: u32, prompt: Line },
    /// They have answered, or are not asked any more.
    Answered {
        call: u32,
        /// What became of it; nothing if nobody answered.
        answer: Option<String>,
    },
    /// Somebody wants to know when all news before was written.
    Written(oneshot::Sender<()>),
    /// Something else uses the terminal: what is to be written waits until `is_back` hears something, or nobody is
    /// left to say it.
    Quiet {
        is_quiet: oneshot::Sender<()>,
        is_back: Receiver<()>,
    },
    /// Nobody waits for the answer any more.
    Left,
    /// The run is being called off.
    Stopping,
    /// Time has passed.
    Tick,
    /// All is over; what comes now is the summary.
    Over,
}

/// What is asked about a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum About {
    /// Whether it may run.
    Permission,
    /// What became of it.
    Fate,
}

/// A part of the reply, as a reader sees it.
#[derive(Debug)]
pub(crate) enum Fragment {
    Text(String),
    Reasoning(String),
    /// A call stands here.
    Call {
        name: String,
        /// The id, if one is written.
        id: Option<String>,
        /// The ids that it depends on.
        dependencies: Vec<String>,
        /// What is written on the line of an emoji call.
        line: String,
    },
    /// The call that stood there is over.
    CallOver,
}

/// Shows what it hears.
pub(crate) trait Display: Send {
    /// Takes the next news and adds to `out` what is to be written now.
    fn take(&mut self, news: News, out: &mut String);

    /// Takes away what is drawn in place, since something else will write on the terminal.
    fn be_quiet(&mut self, _: &mut String) {}

    /// The terminal may be written on again.
    fn come_back(&mut self, _: &mut String) {}

    /// No more news will come, and the summary never came: adds what leaves the terminal in order.
    fn abandon(&mut self, out: &mut String);
}
