//! The arguments of the calls of a text as deltas of JSON.

use std::num::NonZeroUsize;
use std::path::Path;

use plaincall_call::{
    Arguments, CallError, Collected, Collector, JsonStream, Limits, ReplyCheck, Shape, Stop,
    ToolCall, ToolSet, UnknownShape,
};
use plaincall_syntax::{Dialect, Event};
use serde_json::json;

use crate::commands::render::RenderOptions;
use crate::commands::render::sink::Sink;
use crate::status::{Failure, Outcome, Status};
use crate::text::input::Input;
use crate::text::reading::{parser, reply_check};
use crate::text::translate::sentences;

/// Streams the arguments of calls.
pub(super) struct Stream {
    dialect: Dialect,
    tools: Option<ToolSet>,
    chunk: Option<NonZeroUsize>,
    is_complete: bool,
}

impl Stream {
    pub(super) fn new(options: &RenderOptions) -> Result<Self, Failure> {
        Ok(Self {
            dialect: options.dialect.dialect()?,
            tools: options.schema.load(&options.files)?,
            chunk: options.chunk,
            is_complete: options.complete,
        })
    }

    pub(super) fn file(&self, file: &Path, sink: &mut Sink<'_>) -> Outcome {
        let input = Input::open(file)?;
        let mut parser = parser(&self.dialect)?;
        let mut run = Run {
            tools: self.tools.as_ref(),
            stop: input.stop(self.is_complete),
            check: reply_check(&self.dialect)?.without_gate(),
            collector: Collector::new(Limits::for_reading()),
            open: None,
            count: 0,
            delta: String::new(),
            status: Status::Good,
        };
        input.for_each_chunk(self.chunk, |bytes| {
            for event in parser.feed(bytes) {
                run.event(&event, sink)?;
            }
            run.deliver(sink)?;
            sink.flush()
        })?;
        for event in parser.finish() {
            run.event(&event, sink)?;
        }
        Ok(run.status)
    }
}

/// One text.
struct Run<'t> {
    tools: Option<&'t ToolSet>,
    stop: Stop,
    check: ReplyCheck,
    collector: Collector,
    open: Option<JsonStream<&'t dyn Shape>>,
    /// How many calls have begun.
    count: usize,
    /// What has not been delivered yet.
    delta: String,
    status: Status,
}

impl Run<'_> {
    fn event(&mut self, event: &Event<'_>, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let collected = self.collector.push(event);
        if let Some(Collected::Started(started)) = &collected {
            let tool = self.tools.and_then(|tools| tools.get(&started.name));
            let shape: &dyn Shape = match tool {
                Some(tool) => tool,
                None => &UnknownShape,
            };
            self.open = Some(JsonStream::new(shape, Limits::for_reading()));
            let line = json!({"call": self.count, "id": &*started.id, "name": &*started.name});
            self.count += 1;
            sink.json_piece(&format!("call {}", self.count), &line, "")?;
        }
        if let Some(stream) = &mut self.open {
            stream.push(event, &mut self.delta);
        }
        if let Some(Collected::Finished(call)) = collected {
            self.close(&call, sink)?;
        }
        Ok(())
    }

    /// Hands on what the last chunk gave.
    fn deliver(&mut self, sink: &mut Sink<'_>) -> Result<(), Failure> {
        if self.delta.is_empty() {
            return Ok(());
        }
        let line = json!({"call": self.count.saturating_sub(1), "delta": self.delta});
        sink.json_line(&line, &self.delta)?;
        self.delta.clear();
        Ok(())
    }

    fn close(&mut self, call: &ToolCall, sink: &mut Sink<'_>) -> Result<(), Failure> {
        let Some(mut stream) = self.open.take() else {
            return Ok(());
        };
        let closed = self.bound(call).and_then(|arguments| {
            let closed = stream.close(call, &arguments, &mut self.delta);
            closed.map_err(|error| error.to_string())
        });
        self.deliver(sink)?;
        let at = self.count.saturating_sub(1);
        let line = match closed {
            Ok(()) => json!({"call": at, "closed": true}),
            Err(error) => {
                self.status = Status::Wrong;
                json!({"call": at, "closed": false, "error": error})
            }
        };
        sink.json_line(&line, "")
    }

    /// The arguments, as their tool is to get them.
    ///
    /// # Errors
    /// Says why the call would not be run.
    fn bound(&mut self, call: &ToolCall) -> Result<Arguments, String> {
        let bound = match self.tools {
            Some(tools) => {
                let bound = self.check.bind(call, tools, self.stop);
                bound.map(|bound| Arguments::clone(&bound.arguments))
            }
            None => {
                let may_run = self.check.may_run(call, None, self.stop);
                may_run.map(|_| call.arguments.clone())
            }
        };
        bound.map_err(|error| match error {
            CallError::Arguments(problems) => sentences(&problems),
            other => other.to_string(),
        })
    }
}
