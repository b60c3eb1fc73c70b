//! One reply of the model: text in, results out.

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use plaincall_call::{Arguments, Collected, Completeness, Problem, Started, ToolCall, bind};
use plaincall_plan::Order;
use plaincall_syntax::{ByteParser, Event, Syntax};
use tokio::sync::oneshot;

use crate::driver::Message;
use crate::result::{CallResult, Status, Times, TurnResults};
use crate::run::Run;

/// How many problems of one call a message for the model tells.
const TOLD_IN_A_SENTENCE: usize = 8;

/// How a reply ended.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Stop {
    /// The text is known to be complete: a finish reason such as `stop`, or the clean end of a file.
    Natural,
    /// The model was cut off by a limit of length.
    Length,
    /// The stream broke off, or nothing is known about its end.
    Broken,
}

/// One reply of the model, fed with pieces of text as they arrive.
///
/// A call starts as soon as it is complete and its dependencies are done, while the rest is still being written. The
/// tools run on other tasks; on a runtime with one thread they get their turn whenever the feeding task waits.
///
/// Dropping a turn before [`finish`](Self::finish) has returned calls off its calls.
pub struct Turn<'run> {
    run: &'run mut Run,
    /// `None` when the reply is over.
    parser: Option<ByteParser>,
    /// Whether the order of the turn is settled: its first call has appeared.
    has_begun: bool,
    /// Whether nobody has to be told any more that the turn is dropped.
    is_over: bool,
    watch: Option<Watch<'run>>,
    /// The calls of the turn, in case that the runtime goes down and nobody is left to say how they ended.
    calls: Vec<(Arc<str>, Arc<str>)>,
    first: usize,
}

type Watch<'run> = Box<dyn FnMut(&Event<'_>) + Send + 'run>;

impl<'run> Turn<'run> {
    pub(crate) fn new(run: &'run mut Run) -> Self {
        run.collector.begin_turn();
        run.send(Message::Open);
        let parser = Some(run.parser.clone());
        let first = run.collector.calls();
        Self {
            run,
            parser,
            has_begun: false,
            is_over: false,
            watch: None,
            calls: Vec::new(),
            first,
        }
    }

    /// Lets a function see every event of the parser before it has consequences: text between the calls, reasoning,
    /// arguments while they are being written, diagnostics.
    pub fn watch(mut self, watch: impl FnMut(&Event<'_>) + Send + 'run) -> Self {
        self.watch = Some(Box::new(watch));
        self
    }

    /// Takes the next piece of the reply: text, or bytes that may cut a character.
    pub fn feed(&mut self, chunk: impl AsRef<[u8]>) {
        let Some(mut parser) = self.parser.take() else {
            return;
        };
        for event in parser.feed(chunk.as_ref()) {
            // What ends while the text still arrives does not end with the text.
            self.take(&event, Completeness::CutOff);
        }
        self.parser = Some(parser);
    }

    /// Ends the reply and waits until all its calls have ended.
    pub async fn finish(mut self, stop: Stop) -> TurnResults {
        let completeness = match stop {
            Stop::Natural => Completeness::Complete,
            Stop::Length | Stop::Broken => Completeness::CutOff,
        };
        if let Some(parser) = self.parser.take() {
            for event in parser.finish() {
                self.take(&event, completeness);
            }
        }
        self.begin(Order::Graph);
        let (reply, results) = oneshot::channel();
        self.run.send(Message::End(reply));
        // Should this future be dropped while it waits, so is the turn, and its calls are called off.
        let results = results.await;
        self.is_over = true;
        results.unwrap_or_else(|_| self.lost())
    }

    /// Calls off all calls of the run; see [`Canceller::cancel`](crate::Canceller::cancel). The turn goes on: its
    /// results say what became of each call.
    pub fn cancel(&self) {
        self.run.send(Message::Cancel);
    }

    /// The syntax of the reply, once its first call has been read.
    pub fn syntax(&self) -> Option<Syntax> {
        self.parser.as_ref().and_then(ByteParser::syntax)
    }

    fn take(&mut self, event: &Event<'_>, completeness: Completeness) {
        if let Some(watch) = &mut self.watch {
            watch(event);
        }
        match self.run.collector.push(event) {
            None => {}
            Some(Collected::Started(started)) => self.appear(started),
            Some(Collected::Finished(call)) => {
                let index = u32::try_from(call.index).unwrap_or(u32::MAX);
                let message = match self.judge(&call, completeness) {
                    Ok((tool, arguments)) => Message::Complete {
                        call: index,
                        tool,
                        arguments: Arc::new(arguments),
                    },
                    Err(reason) => Message::Reject {
                        call: index,
                        reason,
                    },
                };
                self.run.send(message);
            }
        }
    }

    fn begin(&mut self, order: Order) {
        if !self.has_begun {
            self.has_begun = true;
            self.run.send(Message::Begin(order));
        }
    }

    fn appear(&mut self, started: Started) {
        self.begin(match started.syntax {
            Syntax::Block => Order::Graph,
            Syntax::Emoji => self.run.emoji_order,
        });
        let id: Arc<str> = started.id.into();
        let name: Arc<str> = started.name.into();
        self.calls.push((Arc::clone(&id), Arc::clone(&name)));
        self.run.send(Message::Appear {
            id,
            name,
            dependencies: started.dependencies.into(),
        });
    }

    /// The tool and the arguments of a call that may be run; otherwise why not, in words for the model.
    fn judge(
        &self,
        call: &ToolCall,
        completeness: Completeness,
    ) -> Result<(usize, Arguments), String> {
        call.may_run(completeness, self.run.unclosed)
            .map_err(|reason| reason.sentence(&self.run.dialect.end_marker(call.syntax)))?;
        let toolbox = &self.run.toolbox;
        let (place, tool) = toolbox
            .place(&call.name)
            .and_then(|place| Some((place, toolbox.at(place)?)))
            .ok_or_else(|| toolbox.unknown(&call.name))?;
        let arguments = bind(&tool.spec, call).map_err(|problems| wrong_arguments(&problems))?;
        Ok((place, arguments))
    }

    /// Results for calls of which nothing more will be heard, because the runtime has gone down.
    fn lost(&self) -> TurnResults {
        let calls = self.calls.iter().zip(self.first..);
        let results = calls.map(|((id, name), call)| CallResult {
            call: u32::try_from(call).unwrap_or(u32::MAX),
            id: Arc::clone(id),
            name: Arc::clone(name),
            status: Status::Unknown,
            output: None,
            error: Some("the runtime went down, and nobody knows what became of the call".into()),
            because: None,
            times: Times::default(),
        });
        TurnResults {
            results: results.collect(),
        }
    }
}

impl Drop for Turn<'_> {
    fn drop(&mut self) {
        if self.has_begun && !self.is_over {
            self.run.send(Message::Abandon);
        }
    }
}

impl fmt::Debug for Turn<'_> {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Turn")
            .field("calls", &self.calls)
            .field("is_over", &self.is_over)
            .finish_non_exhaustive()
    }
}

/// What is wrong with a call for its tool. A call can have thousands of wrong arguments; the model reads the first.
fn wrong_arguments(problems: &[Problem]) -> String {
    let told: Vec<&str> = problems
        .iter()
        .take(TOLD_IN_A_SENTENCE)
        .map(|problem| problem.message.as_str())
        .collect();
    let mut sentence = format!("wrong arguments: {}", told.join("; "));
    if let more @ 1.. = problems.len().saturating_sub(TOLD_IN_A_SENTENCE) {
        let _ = write!(sentence, "; and {more} more");
    }
    sentence
}
