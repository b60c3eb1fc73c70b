//! What the display hears while a run goes on.

use std::time::Instant;

use plaincall::RunEvent;

use crate::run::line::Line;

/// Something to show.
#[derive(Debug)]
pub(crate) enum News {
    /// The next parts of the reply.
    Reply(Vec<Fragment>),
    /// The reply is over since this moment.
    ReplyOver(Instant),
    /// Something has happened to a call.
    Event(RunEvent),
    /// Somebody is asked whether a call may run.
    Asking {
        call: u32,
        /// What they have to know.
        lines: Vec<Line>,
        /// What they can answer.
        prompt: Line,
    },
    /// They have answered, or are not asked any more.
    Answered {
        call: u32,
        /// What became of it; nothing if nobody answered.
        answer: Option<&'static str>,
    },
    /// The run is being called off.
    Stopping,
    /// Time has passed.
    Tick,
    /// All is over; what comes now is the summary.
    Over,
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

    /// No more news will come, and the summary never came: adds what leaves the terminal in order.
    fn abandon(&mut self, out: &mut String);
}
