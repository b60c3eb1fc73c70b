//! A call that is being written.

use std::sync::Arc;

use plaincall_call::{JsonStream, Limits, ToolCall, bind};
use plaincall_syntax::Event;

use crate::known_shape::KnownShape;
use crate::outlet::Outlet;
use crate::reply::spoil::Spoiler;

/// What becomes of a call that is being written.
#[derive(Debug)]
pub(super) enum Opened {
    /// The client sees it grow.
    Streamed(Box<Streamed>),
    /// It leaves when all is known.
    Checked,
    /// It does not leave.
    Unwanted,
}

/// A call that the client sees grow.
#[derive(Debug)]
pub(super) struct Streamed {
    index: u64,
    /// The tool and the JSON text of the arguments; `None` if the call is known to be wrong.
    right: Option<(Arc<KnownShape>, JsonStream<Arc<KnownShape>>)>,
    spoiler: Spoiler,
    /// What has not left yet.
    delta: String,
}

impl Streamed {
    /// A call of this tool; of none, if it is wrong.
    pub(super) fn new(index: u64, tool: Option<Arc<KnownShape>>) -> Self {
        let stream = |tool: Arc<KnownShape>| {
            let stream = JsonStream::new(Arc::clone(&tool), Limits::for_running());
            (tool, stream)
        };
        Self {
            index,
            right: tool.map(stream),
            spoiler: Spoiler::default(),
            delta: String::new(),
        }
    }

    /// Takes the parser's next event.
    pub(super) fn push(&mut self, event: &Event<'_>) {
        if let Some((_, stream)) = &mut self.right {
            stream.push(event, &mut self.delta);
        }
    }

    /// Ends the text of the arguments: as it should end if the call may run and is right, which is returned, else so that
    /// nobody can read it.
    pub(super) fn close(&mut self, call: &ToolCall, may_run: bool) -> bool {
        let is_closed = match &mut self.right {
            Some((shape, stream)) => {
                let tool = shape.tool();
                may_run
                    && bind(tool, call).is_ok_and(|arguments| {
                        stream.close(call, &arguments, &mut self.delta).is_ok()
                    })
            }
            None => false,
        };
        if !is_closed {
            self.spoiler.follow(&self.delta);
            self.delta.push_str(self.spoiler.end());
        }
        is_closed
    }

    /// Gives out what has been gathered.
    pub(super) fn flush(&mut self, out: &mut dyn Outlet) {
        if !self.delta.is_empty() {
            self.spoiler.follow(&self.delta);
            out.arguments(self.index, &self.delta);
            self.delta.clear();
        }
    }
}
