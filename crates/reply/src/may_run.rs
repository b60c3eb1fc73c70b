//! The rule for which calls may run (`spec/common.md` 10).

use std::iter;
use std::sync::Arc;

pub(crate) mod last_value;

use plaincall_names::{Effect, Unclosed};
use plaincall_syntax::{
    Dialect, DialectError, EventKind, MarkerUse, NearMiss, NearMisses, Parser, Syntax, Termination,
    is_blank,
};

use serde_json::{Map, Value};

use crate::Stop;
use crate::SuspectMarker;
use crate::ToolCall;
use crate::bind::bind_within;
use crate::call::problems_of_text;
use crate::candidates::named::Named;
use crate::may_run::last_value::LastValue;
use crate::outside::Before;
use crate::{Binding, DecidedCall};
use crate::{CallError, MissingEnd};
use plaincall_tool::{
    Arguments, ReplyDiagnostic, ToolLookup, ToolSet, ToolSpec, bind::ReplySteps, bind_arguments,
    flatten::flatten,
};

/// Decides which calls of a reply may run (`spec/common.md` 10). Pass it every call of the reply, in order.
///
/// ```
/// use plaincall_reply::{Document, ReplyCheck, Stop, Unclosed};
/// use plaincall_syntax::Dialect;
///
/// let dialect = Dialect::block();
/// let mut check = ReplyCheck::new(&dialect, Unclosed::Reject)?;
/// let reply = "!!!GADGET_START:save\n!!!ARG:text\nhello\n!!!GADGT_END\nDone.\n!!!GADGET_END";
/// let document = Document::parse(reply, &dialect)?;
/// let call = document.calls().next().expect("a call");
/// let suspect = check.may_run(call, None, Stop::Natural)?.expect("a near miss of the end marker");
/// assert_eq!(
///     suspect.to_string(),
///     "line 4 of the call, in `text`: `!!!GADGT_END` looks like the end marker `!!!GADGET_END`"
/// );
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Clone, Debug)]
pub struct ReplyCheck {
    markers: Arc<OwnMarkers>,
    unclosed: Unclosed,
    has_gate: bool,
    has_ids: bool,
    /// Whether an earlier call of the reply has no end marker, so that later ones may be part of its last value.
    is_doubtful: bool,
    /// The beginning of a call before a call of the reply that is not one, so that later ones may be part of its values.
    broken: Option<String>,
    steps: ReplySteps,
}

/// A call that was read with other tools, or with none.
#[derive(Clone, Copy, Debug)]
pub struct ReadCall<'c> {
    /// The name of the tool.
    pub name: &'c str,
    /// The arguments, if they were read.
    pub arguments: Option<&'c Map<String, Value>>,
    /// The syntax.
    pub syntax: Syntax,
    /// How it ended.
    pub termination: Termination,
    /// The text that looks like a call before it ([`DecidedCall::before`]).
    pub before: Option<&'c str>,
}

impl<'c> ReadCall<'c> {
    /// Describes a call by the names of its syntax and its termination. An unknown termination counts as a missing end marker.
    pub fn named(
        name: &'c str,
        arguments: Option<&'c Map<String, Value>>,
        syntax: &str,
        termination: &str,
        before: Option<&'c str>,
    ) -> Self {
        let syntax = if syntax == Syntax::Emoji.name() {
            Syntax::Emoji
        } else {
            Syntax::Block
        };
        let termination = [Termination::Explicit, Termination::NextCall]
            .into_iter()
            .find(|one| one.name() == termination)
            .unwrap_or(Termination::EndOfStream);
        Self {
            name,
            arguments,
            syntax,
            termination,
            before,
        }
    }
}

#[derive(Debug)]
struct OwnMarkers {
    starts: [String; 2],
    ends: [String; 2],
    block: Option<SyntaxMarkers>,
    emoji: Option<SyntaxMarkers>,
    is_self_closing: bool,
}

#[derive(Debug)]
struct SyntaxMarkers {
    near: NearMisses,
    /// A parser, for cloning, that finds the calls that a value quotes.
    blank: Parser,
}

impl ReplyCheck {
    /// Creates a check for replies in `dialect`.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn new(dialect: &Dialect, unclosed: Unclosed) -> Result<Self, DialectError> {
        let own = |syntax| {
            let is_read = dialect.syntax().is_none_or(|only| only == syntax);
            is_read.then(|| dialect.for_syntax(syntax).without_reasoning())
        };
        let markers = |syntax| {
            let markers = own(syntax).map(|own| {
                Ok::<_, DialectError>(SyntaxMarkers {
                    near: NearMisses::new(&own)?,
                    blank: Parser::new(&own)?,
                })
            });
            markers.transpose()
        };
        let syntaxes = [Syntax::Block, Syntax::Emoji];
        Ok(Self {
            markers: Arc::new(OwnMarkers {
                starts: syntaxes.map(|syntax| start_marker(dialect, syntax)),
                ends: syntaxes.map(|syntax| dialect.end_marker(syntax)),
                block: markers(Syntax::Block)?,
                emoji: markers(Syntax::Emoji)?,
                is_self_closing: dialect.is_self_closing(),
            }),
            unclosed,
            has_gate: true,
            has_ids: true,
            is_doubtful: false,
            broken: None,
            steps: ReplySteps::default(),
        })
    }

    /// Sets how calls without an end marker are handled.
    #[must_use]
    pub fn unclosed(mut self, unclosed: Unclosed) -> Self {
        self.unclosed = unclosed;
        self
    }

    /// Rejects held calls, because there is no gate that could approve them.
    #[must_use]
    pub fn without_gate(mut self) -> Self {
        self.has_gate = false;
        self
    }

    /// Rejects calls with dependencies, because calls have no ids here.
    #[must_use]
    pub fn without_dependencies(mut self) -> Self {
        self.has_ids = false;
        self
    }

    /// Begins the next reply.
    pub fn begin_reply(&mut self) {
        self.is_doubtful = false;
        self.broken = None;
        self.steps = ReplySteps::default();
    }

    /// Decides about the next call of the reply, and binds its arguments: once, also those of a rejected call. `stop` is how the
    /// reply ended; use [`Stop::Broken`] while the reply still arrives.
    pub fn decide(
        &mut self,
        call: Arc<ToolCall>,
        tools: &(impl ToolLookup + ?Sized),
        stop: Stop,
    ) -> DecidedCall {
        if !tools.are_known() {
            let decision = self.may_run(&call, None, stop);
            return DecidedCall {
                call,
                decision,
                binding: None,
                may_be_reasoning: false,
            };
        }
        let found = tools.find(&call.name);
        let (arguments, unknown) = if let Some((_, tool)) = found {
            (
                bind_within(&mut self.steps, tool, &call).map(Arc::new),
                None,
            )
        } else {
            let message = tools.unknown(&call.name);
            (Err(unknown_tool(message.clone(), &call)), Some(message))
        };
        let decision = match self.may_run_with(&call, tools, stop) {
            // Binding finds all errors.
            Err(CallError::Malformed(_)) => Ok(None),
            decided => decided,
        };
        let decision = decision.and_then(|held| match (unknown, &arguments) {
            (Some(message), _) => Err(CallError::UnknownTool(message)),
            _ if !self.has_ids && !call.dependencies.is_empty() => Err(CallError::NoDependencies),
            (None, Err(problems)) => Err(CallError::Arguments(problems.clone())),
            (None, Ok(_)) => Ok(held),
        });
        let tool = found.map(|(place, _)| place);
        DecidedCall {
            call,
            decision,
            binding: Some(Binding { tool, arguments }),
            may_be_reasoning: false,
        }
    }

    /// Decides whether the next call of the reply may run, independent of its arguments, if the tools are not known. `tool`
    /// is the tool that it names, if it exists; no other tool counts as offered. A call that may quote another call is held: it runs only if the gate
    /// approves this very call.
    ///
    /// # Errors
    /// Returns the reason why the call is rejected, regardless of the gate.
    pub fn may_run(
        &mut self,
        call: &ToolCall,
        tool: Option<&ToolSpec>,
        stop: Stop,
    ) -> Result<Option<SuspectMarker>, CallError> {
        let names_tool = |named: &Named| tool.is_some_and(|tool| named.names(&tool.name));
        self.by_its_text(call, tool, names_tool, stop)
    }

    /// Decides as [`may_run`](Self::may_run), with the tools that are offered.
    fn may_run_with(
        &mut self,
        call: &ToolCall,
        tools: &(impl ToolLookup + ?Sized),
        stop: Stop,
    ) -> Result<Option<SuspectMarker>, CallError> {
        let tool = tools.find(&call.name).map(|(_, tool)| tool);
        let names_tool = |named: &Named| tools.specs().any(|tool| named.names(&tool.name));
        self.by_its_text(call, tool, names_tool, stop)
    }

    fn by_its_text(
        &mut self,
        call: &ToolCall,
        tool: Option<&ToolSpec>,
        names_tool: impl Fn(&Named) -> bool,
        stop: Stop,
    ) -> Result<Option<SuspectMarker>, CallError> {
        let is_read = tool.is_some_and(|tool| tool.effect == Effect::Read);
        let has_doubtful_start = self.is_doubtful && !is_read;
        self.look_before(&call.before, names_tool);
        let ended = self.by_its_end(call, is_read, stop);
        self.is_doubtful |= ended.is_err() && call.termination == Termination::NextCall;
        let held = ended.map_err(|why| self.not_closed(why, call.syntax))?;
        if has_doubtful_start {
            return Err(self.not_closed(MissingEnd::AfterUnclosed, call.syntax));
        }
        if let Some(error) = self.after_broken_start(call.syntax).filter(|_| !is_read) {
            return Err(error);
        }
        if let Some(open) = call.before.opening {
            return Err(CallError::InReasoning(open));
        }
        if held.is_some() && call.syntax == Syntax::Block && call.text.ends_in_mid_line {
            // The rest of the value may quote further calls.
            self.is_doubtful = true;
            return Err(CallError::EndsInQuotation(self.end_marker(call.syntax)));
        }
        if self.ends_with_slash(call) {
            return Err(CallError::SlashInHeader(self.end_marker(call.syntax)));
        }
        let is_fixed = || tool.is_some_and(|tool| call.fixed(tool).is_some());
        if let Some(error) = call.parse_error.as_ref().filter(|_| !is_fixed()) {
            return Err(CallError::Malformed(error.clone()));
        }
        if call.is_duplicate {
            return Err(CallError::DuplicateId(call.id.clone()));
        }
        match held {
            Some(marker) if !self.has_gate => Err(CallError::SuspectEnd {
                marker,
                end_marker: self.end_marker(call.syntax),
            }),
            held => Ok(held),
        }
    }

    /// Validates a call that was read with other tools, or with none, before it runs with these tools. Pass it all such calls
    /// of the reply, in order. Without an end marker, a call runs only if the next one ended it and its tool here only reads:
    /// how the reply ended is not known.
    ///
    /// Returns why the call must not run, as a sentence for the model, or `None`.
    #[doc(hidden)]
    pub fn mismatch(&mut self, tools: &ToolSet, call: &ReadCall<'_>) -> Option<String> {
        let is_read = tools
            .get(call.name)
            .is_some_and(|tool| tool.effect == Effect::Read);
        if let Some(json) = call.before {
            // What cannot be read was changed, or is of another version: it may have been the beginning of a call.
            let before = Before::of_json(json).unwrap_or_else(|| Before {
                broken: Some("text that cannot be read".to_owned()),
                ..Before::default()
            });
            let names_tool = |named: &Named| tools.specs().any(|tool| named.names(&tool.name));
            self.look_before(&before, names_tool);
        }
        let is_lifted = self.unclosed == Unclosed::Run;
        let missing = match call.termination {
            Termination::EndOfStream if !is_lifted => Some(MissingEnd::MaybeTruncated),
            _ if is_read || is_lifted => None,
            Termination::NextCall => Some(MissingEnd::EndedByNextCall),
            _ => self.is_doubtful.then_some(MissingEnd::AfterUnclosed),
        };
        self.is_doubtful |= missing == Some(MissingEnd::EndedByNextCall);
        if let Some(why) = missing {
            return Some(self.not_closed(why, call.syntax).to_string());
        }
        if let Some(error) = self.after_broken_start(call.syntax).filter(|_| !is_read) {
            return Some(error.to_string());
        }
        let Some(arguments) = call.arguments else {
            return Some(
                "its arguments were not read, or are not a JSON object; use the calls of a toolbox"
                    .to_owned(),
            );
        };
        mismatch(tools, call.name, arguments)
    }

    /// Looks for the beginning of a call in the text before a call.
    fn look_before(&mut self, before: &Before, names_tool: impl Fn(&Named) -> bool) {
        if self.broken.is_none() {
            let mut others = before.others.iter();
            let named = others.find(|(_, named)| names_tool(named));
            let found = before.broken.as_ref();
            self.broken = found.or(named.map(|(shown, _)| shown)).cloned();
        }
    }

    fn after_broken_start(&self, syntax: Syntax) -> Option<CallError> {
        let found = self.broken.clone()?;
        let start_marker = marker_of(&self.markers.starts, syntax);
        Some(CallError::AfterBrokenStart {
            found,
            start_marker,
        })
    }

    /// Returns whether the header of an emoji call ends with ` /`, and the call does not end directly after it.
    fn ends_with_slash(&self, call: &ToolCall) -> bool {
        let has_slash = |line: &str| {
            let before = line.strip_suffix('/');
            before.is_some_and(|before| before.is_empty() || before.ends_with([' ', '\t']))
        };
        let is_blank_line = |line: &str| line.trim_matches(is_blank).is_empty();
        let has_blank_body = || {
            call.body()
                .is_some_and(|body| body.lines().all(is_blank_line))
        };
        !self.markers.is_self_closing
            && call.raw_args.as_deref().is_some_and(has_slash)
            && !(call.termination == Termination::Explicit && has_blank_body())
    }

    fn end_marker(&self, syntax: Syntax) -> String {
        marker_of(&self.markers.ends, syntax)
    }

    fn not_closed(&self, why: MissingEnd, syntax: Syntax) -> CallError {
        CallError::NotClosed {
            why,
            end_marker: self.end_marker(syntax),
        }
    }

    /// Implements the table of `spec/common.md` 10.
    fn by_its_end(
        &self,
        call: &ToolCall,
        is_read: bool,
        stop: Stop,
    ) -> Result<Option<SuspectMarker>, MissingEnd> {
        if call.termination == Termination::Explicit {
            return Ok(self.suspect(call));
        }
        if call.marker_in_value || self.near_misses(call).next().is_some() {
            return Err(MissingEnd::MarkerInside);
        }
        let last = LastValue::of(call);
        let is_known = call.termination == Termination::NextCall && is_read;
        if !is_known && last.has_other_end() {
            return Err(MissingEnd::OtherEnd);
        }
        let is_lifted = self.unclosed == Unclosed::Run;
        let truncated = match stop {
            Stop::Length => MissingEnd::Truncated,
            Stop::EndOfFile => MissingEnd::EndOfFile,
            _ => MissingEnd::MaybeTruncated,
        };
        let (is_enough, reason) = match (call.termination, call.syntax) {
            (Termination::NextCall, _) => (is_read || is_lifted, MissingEnd::EndedByNextCall),
            (_, Syntax::Emoji) => (
                is_lifted && !stop.is_truncated(),
                if is_lifted || stop == Stop::Length {
                    truncated
                } else {
                    MissingEnd::NoEndMarker
                },
            ),
            (_, Syntax::Block) if stop == Stop::Natural => (
                is_read || is_lifted || last.is_one_line(),
                MissingEnd::LongLastValue,
            ),
            (_, Syntax::Block) => (stop == Stop::EndOfFile && (is_read || is_lifted), truncated),
        };
        if is_enough { Ok(None) } else { Err(reason) }
    }

    fn suspect(&self, call: &ToolCall) -> Option<SuspectMarker> {
        let end = MarkerUse::End(call.syntax);
        let near = self
            .near_misses(call)
            .find(|near_miss| near_miss.usage == end);
        if let Some(NearMiss {
            span, suggestion, ..
        }) = near
        {
            return Some(SuspectMarker::new(call, span.range(), Some(suggestion)));
        }
        if !call.marker_in_value {
            return None;
        }
        // In the block syntax, the end marker ends a header that is the last text of a value.
        let end_marker = match call.syntax {
            Syntax::Block => self.end_marker(call.syntax),
            Syntax::Emoji => String::new(),
        };
        let mut parser = self.markers_of(call.syntax)?.blank.clone();
        let quoted = [call.raw(), &end_marker].into_iter().find_map(|text| {
            let mut events = parser.feed(text);
            events
                .find(|event| matches!(event.kind, EventKind::CallStart(_)))
                .map(|event| event.span)
        });
        Some(SuspectMarker::new(call, quoted?.range(), None))
    }

    fn markers_of(&self, syntax: Syntax) -> Option<&SyntaxMarkers> {
        match syntax {
            Syntax::Block => self.markers.block.as_ref(),
            Syntax::Emoji => self.markers.emoji.as_ref(),
        }
    }

    fn near_misses<'c>(&'c self, call: &'c ToolCall) -> impl Iterator<Item = NearMiss> + 'c {
        self.markers_of(call.syntax)
            .into_iter()
            .flat_map(|markers| markers.near.find_in_first_column(call.raw()))
    }
}

/// Returns the errors of a call to an unknown tool.
fn unknown_tool(message: String, call: &ToolCall) -> Vec<ReplyDiagnostic> {
    let code = ReplyDiagnostic::UNKNOWN_TOOL;
    let unknown = ReplyDiagnostic::of_definition(code, "", call.header.span, message);
    iter::once(unknown).chain(problems_of_text(call)).collect()
}

fn marker_of([block, emoji]: &[String; 2], syntax: Syntax) -> String {
    match syntax {
        Syntax::Block => block.clone(),
        Syntax::Emoji => emoji.clone(),
    }
}

fn start_marker(dialect: &Dialect, syntax: Syntax) -> String {
    let markers = dialect.for_syntax(syntax).markers().unwrap_or_default();
    let is_start = |usage: &MarkerUse| *usage == MarkerUse::Start(syntax);
    let start = markers.into_iter().find(|marker| is_start(&marker.usage));
    start.map(|marker| marker.text).unwrap_or_default()
}

/// Returns why a call with these arguments cannot run with these tools, as a sentence for the model. Returns `None` if it
/// can.
fn mismatch(tools: &ToolSet, name: &str, arguments: &Map<String, Value>) -> Option<String> {
    let Some(tool) = tools.get(name) else {
        return Some(format!("the toolbox has no tool `{name}`"));
    };
    let is_valid = || {
        let written = flatten(arguments, Some(tool)).map_err(|error| error.to_string())?;
        let written = written.iter().map(|(pointer, text)| (&**pointer, &**text));
        let arguments = Arguments::from_pairs_for(tool, written);
        let arguments = arguments.map_err(|error| error.to_string())?;
        let problems = bind_arguments(tool, &arguments).err().unwrap_or_default();
        match problems.into_iter().next() {
            Some(problem) => Err(problem.message),
            None => Ok(()),
        }
    };
    let invalid: String = is_valid().err()?;
    Some(format!(
        "the arguments do not match this toolbox: {invalid}"
    ))
}
