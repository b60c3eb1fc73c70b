//! From the text of a reply to what the calls in it are.

use std::fmt;
use std::fmt::Write as _;
use std::sync::Arc;

use plaincall_call::{
    Arguments, Collected, Collector, Completeness, MayRun, NotRun, Problem, ReplyCheck,
    SuspectMarker, ToolCall, bind,
};
use plaincall_plan::Order;
use plaincall_syntax::{ByteParser, Code, Dialect, Event, EventKind, Syntax};

use crate::policy::Policy;
use crate::toolbox::Toolbox;
use crate::turn::Stop;

/// How many problems of one call a message for the model tells.
const TOLD_IN_A_SENTENCE: usize = 8;

/// Reads the replies of one conversation. The same text with the same settings always reads the same; that is how a
/// run is taken up again from its log.
pub(crate) struct Reader {
    toolbox: Arc<Toolbox>,
    dialect: Dialect,
    check: ReplyCheck,
    block_order: Order,
    emoji_order: Order,
    /// A parser that has read nothing.
    blank: ByteParser,
    /// The parser of the present reply; `None` when it is over.
    parser: Option<ByteParser>,
    collector: Collector,
    /// Whether the first call of the reply has appeared, and so its order is settled.
    has_begun: bool,
    /// The first call that a stray close marker makes doubtful (`spec/common.md` 5.2).
    doubtful_from: usize,
}

/// Something that the text says. Calls are numbered by the order of their `Appear`.
#[derive(Clone, Debug)]
pub(crate) enum Read {
    /// What orders the calls of this reply.
    Begin(Order),
    Appear {
        id: Arc<str>,
        name: Arc<str>,
        dependencies: Arc<[String]>,
    },
    Complete {
        call: u32,
        tool: usize,
        arguments: Arc<Arguments>,
        /// The call as it was written.
        written: Box<ToolCall>,
        /// What was probably meant to end it, so that it is held.
        suspect: Option<SuspectMarker>,
    },
    Wrong {
        call: u32,
        reason: String,
    },
    /// A stray close marker: the calls from this one on may be part of reasoning.
    MaybeReasoning {
        from: u32,
        reason: Arc<str>,
    },
}

/// A call that may run.
struct Right {
    tool: usize,
    arguments: Arguments,
    suspect: Option<SuspectMarker>,
}

/// Sees every event of the parser before it has consequences.
pub(crate) type Watch<'w> = &'w mut (dyn FnMut(&Event<'_>) + Send + 'w);

impl Reader {
    pub(crate) fn new(
        toolbox: Arc<Toolbox>,
        dialect: Dialect,
        blank: ByteParser,
        collector: Collector,
        check: ReplyCheck,
        policy: &Policy,
    ) -> Self {
        Self {
            toolbox,
            dialect,
            check,
            block_order: policy.block_order,
            emoji_order: policy.emoji_order,
            blank,
            parser: None,
            collector,
            has_begun: false,
            doubtful_from: 0,
        }
    }

    /// The next reply begins.
    pub(crate) fn open(&mut self) {
        self.collector.begin_turn();
        self.check.begin_reply();
        self.parser = Some(self.blank.clone());
        self.has_begun = false;
        self.doubtful_from = self.collector.calls();
    }

    /// Takes the next piece of the reply. What it says goes to `read`.
    pub(crate) fn feed(
        &mut self,
        chunk: &[u8],
        mut watch: Option<Watch<'_>>,
        read: &mut Vec<Read>,
    ) {
        let Some(mut parser) = self.parser.take() else {
            return;
        };
        for event in parser.feed(chunk) {
            // What ends while the text still arrives does not end with the text.
            self.take(&event, Completeness::Truncated, &mut watch, read);
        }
        self.parser = Some(parser);
    }

    /// The reply is over.
    pub(crate) fn finish(
        &mut self,
        stop: Stop,
        mut watch: Option<Watch<'_>>,
        read: &mut Vec<Read>,
    ) {
        let completeness = match stop {
            Stop::Natural => Completeness::Complete,
            Stop::EndOfFile => Completeness::EndOfFile,
            Stop::Length | Stop::Broken => Completeness::Truncated,
        };
        if let Some(parser) = self.parser.take() {
            for event in parser.finish() {
                self.take(&event, completeness, &mut watch, read);
            }
        }
    }

    /// The syntax of the reply, once its first call has been read.
    pub(crate) fn syntax(&self) -> Option<Syntax> {
        self.parser.as_ref().and_then(ByteParser::syntax)
    }

    /// What decides which calls of a reply may run, for a reply that begins.
    pub(crate) fn reply_check(&self) -> ReplyCheck {
        let mut check = self.check.clone();
        check.begin_reply();
        check
    }

    fn take(
        &mut self,
        event: &Event<'_>,
        completeness: Completeness,
        watch: &mut Option<Watch<'_>>,
        read: &mut Vec<Read>,
    ) {
        if let Some(watch) = watch {
            watch(event);
        }
        if let EventKind::Diagnostic(diagnostic) = &event.kind {
            self.note_stray_marker(diagnostic.code, read);
        }
        match self.collector.push(event) {
            None => {}
            Some(Collected::Started(started)) => {
                if !self.has_begun {
                    self.has_begun = true;
                    read.push(Read::Begin(match started.syntax {
                        Syntax::Block => self.block_order,
                        Syntax::Emoji => self.emoji_order,
                    }));
                }
                read.push(Read::Appear {
                    id: started.id.into(),
                    name: started.name.into(),
                    dependencies: started.dependencies.into(),
                });
            }
            Some(Collected::Finished(call)) => {
                let index = u32::try_from(call.index).unwrap_or(u32::MAX);
                read.push(match self.judge(&call, completeness) {
                    Ok(right) => Read::Complete {
                        call: index,
                        tool: right.tool,
                        arguments: Arc::new(right.arguments),
                        written: call,
                        suspect: right.suspect,
                    },
                    Err(reason) => Read::Wrong {
                        call: index,
                        reason,
                    },
                });
            }
        }
    }

    /// Notes a reasoning marker that does not count.
    fn note_stray_marker(&mut self, code: Code, read: &mut Vec<Read>) {
        if code == Code::StrayReasoningClose
            && let Some([_, close]) = self.dialect.reasoning_markers()
            && self.doubtful_from < self.collector.calls()
        {
            let from = u32::try_from(self.doubtful_from).unwrap_or(u32::MAX);
            let reason = NotRun::MaybeReasoning(close.to_owned());
            let reason = reason.sentence("").into();
            read.push(Read::MaybeReasoning { from, reason });
        }
        if matches!(code, Code::StrayReasoningOpen | Code::StrayReasoningClose) {
            self.doubtful_from = self.collector.calls();
        }
    }

    /// What runs if the call may run; otherwise why not, in words for the model.
    fn judge(&mut self, call: &ToolCall, completeness: Completeness) -> Result<Right, String> {
        let found = self
            .toolbox
            .place(&call.name)
            .and_then(|place| Some((place, self.toolbox.at(place)?)));
        let spec = found.map(|(_, tool)| &tool.spec);
        let may_run = self.check.may_run(call, spec, completeness);
        let may_run =
            may_run.map_err(|reason| reason.sentence(&self.dialect.end_marker(call.syntax)))?;
        let (place, tool) = found.ok_or_else(|| self.toolbox.unknown(&call.name))?;
        let arguments = bind(&tool.spec, call).map_err(|problems| wrong_arguments(&problems))?;
        Ok(Right {
            tool: place,
            arguments,
            suspect: match may_run {
                MayRun::Held(suspect) => Some(suspect),
                MayRun::Yes => None,
            },
        })
    }
}

impl fmt::Debug for Reader {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter
            .debug_struct("Reader")
            .field("dialect", &self.dialect)
            .finish_non_exhaustive()
    }
}

/// What is wrong with a call for its tool. A call can have thousands of wrong arguments; the model reads the first.
pub(crate) fn wrong_arguments(problems: &[Problem]) -> String {
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
