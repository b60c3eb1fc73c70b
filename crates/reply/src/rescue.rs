//! Calls that a model with native tool calls wrote as text (`spec/gateway.md` 11.1).

pub(crate) mod calls;
mod formats;
mod literal;
mod tags;

pub use plaincall_names::Format;

use std::mem;
use std::sync::Arc;

use plaincall_syntax::{CALL_TAGS, Dialect, DialectError, Event, EventKind, Termination};

use crate::Bound;
use crate::ReplyCheck;
use crate::Stop;
use crate::candidates::{Candidate, Candidates, Piece};
use crate::may_run::last_value::SPECIAL_TOKENS;
use crate::rescue::calls::calls_in;
use crate::rescue::tags::OpenTags;
use crate::{ReplyItem, ReplyReader};
use plaincall_names::Unclosed;
use plaincall_tool::{Arguments, Limits, ToolLookup, ToolSpec, bind::ReplySteps};

/// The maximum length of a text that is held back, in bytes.
const MAX_HELD: usize = 1 << 20;
/// The maximum length of the white space and the special tokens after a call, in bytes.
const LONGEST_TAIL: usize = 4096;
/// The maximum length of a special token, in bytes.
const LONGEST_TOKEN: usize = 64;

/// Finds calls in the text of a model that was not taught our syntax: in the formats that it was trained on, and in our own. All
/// other text stays as it is.
///
/// A call is found if it is complete and on lines of its own, an offered tool has its name, its arguments are valid, and the
/// text ends with it or with other such calls. From the first such call on, text is held back until the end, and at most 1 MiB
/// of it. The result does not depend on how the text is split.
///
/// ```
/// use plaincall_reply::rescue::{RescueReader, Rescued};
/// use plaincall_tool::{Parameter, ParameterKind, ToolSet, ToolSpec};
///
/// let wait = ToolSpec::new("wait").parameter(Parameter::new("seconds", ParameterKind::Integer));
/// let mut reader = RescueReader::new(None)?.with_tools(ToolSet::new([wait])?);
/// let mut found = reader.feed("I wait.\n<tool_call>\n{\"name\": \"wait\", \"argum");
/// found.extend(reader.feed("ents\": {\"seconds\": 5}}\n</tool_call>"));
/// found.extend(reader.flush(true));
/// let [Rescued::Text(text), Rescued::Calls { calls, .. }] = &found[..] else { panic!("{found:?}") };
/// assert_eq!(text, "I wait.\n");
/// assert_eq!(calls[0].name, "wait");
/// assert_eq!(calls[0].arguments.to_value(), serde_json::json!({"seconds": 5}));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct RescueReader<T> {
    /// Reads the calls in our own syntaxes, and decides about them.
    own: ReplyReader<T>,
    state: State,
    /// Whether text that has been flushed looks like a call but is not a call.
    has_near_miss: bool,
}

#[derive(Clone, Debug, Default)]
struct State {
    /// The formats that are accepted.
    formats: Arc<[Format]>,
    others: Candidates,
    /// The tags that are open in the text.
    tags: OpenTags,
    call: Option<OwnCall>,
    /// The number of bytes that the parser holds back.
    unread: usize,
    /// The calls, and the text after them.
    held: Vec<Rescued>,
    held_len: usize,
    /// The length of the white space and the whole tokens at the beginning of the last held text.
    tail_read: usize,
    /// Whether a call before is not accepted, so that later ones may be part of its values.
    is_doubtful: bool,
    found: Vec<Rescued>,
    /// The steps to check calls in other formats.
    steps: ReplySteps,
}

/// A call in one of our own syntaxes that has begun.
#[derive(Clone, Debug)]
struct OwnCall {
    source: String,
    /// True if it may be accepted.
    is_apart: bool,
}

/// A part of a text.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Rescued {
    /// Text.
    Text(String),
    /// Reasoning, and the markers around it.
    Reasoning(String),
    /// One or more calls.
    Calls {
        /// Their text, with the end of its last line.
        source: String,
        /// The calls, in order.
        calls: Vec<RescuedCall>,
    },
}

impl Rescued {
    /// Returns the text of this part, as the model wrote it.
    pub fn source(&self) -> &str {
        match self {
            Self::Text(text) | Self::Reasoning(text) => text,
            Self::Calls { source, .. } => source,
        }
    }
}

/// A call whose arguments are valid.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct RescuedCall {
    /// The name of the tool.
    pub name: String,
    /// The arguments for it.
    pub arguments: Arc<Arguments>,
}

impl RescueReader<&'static [&'static ToolSpec]> {
    /// Creates a reader without tools. Text between the markers of reasoning at the beginning of a reply stays text.
    ///
    /// # Errors
    /// Returns an error if the markers are invalid.
    pub fn new(reasoning: Option<[String; 2]>) -> Result<Self, DialectError> {
        Self::of(reasoning, false)
    }

    /// Creates a reader as [`new`](Self::new) does. Replies begin inside reasoning.
    ///
    /// # Errors
    /// Returns an error if the markers are invalid.
    pub fn in_reasoning(reasoning: [String; 2]) -> Result<Self, DialectError> {
        Self::of(Some(reasoning), true)
    }

    fn of(reasoning: Option<[String; 2]>, is_inside: bool) -> Result<Self, DialectError> {
        let mut dialect = Dialect::auto();
        if let Some([open, close]) = reasoning {
            dialect = dialect.leading_reasoning(open, close);
        }
        if is_inside {
            dialect = dialect.in_reasoning();
        }
        let check = ReplyCheck::new(&dialect, Unclosed::Reject)?;
        let check = check.without_gate().without_dependencies();
        let own = ReplyReader::new(&dialect, &[][..], check, Limits::for_running())?;
        Ok(Self {
            own: own.with_events(),
            state: State {
                formats: Format::of_model("").into(),
                ..State::default()
            },
            has_near_miss: false,
        })
    }

    /// Returns a copy with these tools, for a reply.
    pub fn with_tools<T: ToolLookup>(&self, tools: T) -> RescueReader<T> {
        RescueReader {
            own: self.own.with_tools(tools),
            state: self.state.next(),
            has_near_miss: false,
        }
    }
}

impl<T: ToolLookup + Clone> RescueReader<T> {
    /// Sets the formats in which calls are found, before a reply. Calls in other formats are near misses. Default: those of a model
    /// with an unknown name ([`Format::of_model`]).
    pub fn with_formats(mut self, formats: &[Format]) -> Self {
        self.state.formats = formats.into();
        self
    }

    /// Reads the next text.
    pub fn feed(&mut self, text: &str) -> Vec<Rescued> {
        let tools = self.own.tools().clone();
        self.state.unread += text.len();
        let mut items = self.own.feed(text);
        while let Some(item) = items.next() {
            self.state.is_doubtful |= items.is_after_broken_start();
            self.state.take(item, &tools);
        }
        mem::take(&mut self.state.found)
    }

    /// Ends the text: what is held back is decided now. At the end of a truncated text, a call counts only if its line has ended.
    pub fn flush(&mut self, is_complete: bool) -> Vec<Rescued> {
        let tools = self.own.tools().clone();
        let stop = if is_complete {
            Stop::Natural
        } else {
            Stop::Length
        };
        let end = self.own.finish(stop);
        self.state.is_doubtful |= self.own.is_after_broken_start();
        for item in end.items {
            self.state.take(item, &tools);
        }
        self.own.begin_reply();
        self.state.finish(is_complete, &tools);
        self.has_near_miss |= self.state.is_doubtful;
        let next = self.state.next();
        mem::replace(&mut self.state, next).found
    }

    /// Returns whether a part of the text that has been flushed looks like a call of an offered tool, or like the beginning of a
    /// call, but is not a call.
    pub const fn has_near_miss(&self) -> bool {
        self.has_near_miss
    }

    /// Returns whether text is held back.
    pub fn is_holding(&self) -> bool {
        let state = &self.state;
        let is_call = state.call.as_ref().is_some_and(|call| call.is_apart);
        is_call || state.unread > 0 || !state.held.is_empty() || state.others.is_holding()
    }
}

impl State {
    /// Returns the state at the beginning of the next reply.
    fn next(&self) -> Self {
        Self {
            formats: Arc::clone(&self.formats),
            ..Self::default()
        }
    }

    fn take(&mut self, item: ReplyItem<'_>, tools: &impl ToolLookup) {
        match item {
            ReplyItem::CallStart(header) => {
                let is_offered = tools.find(&header.name).is_some();
                let is_apart = is_offered && self.others.is_apart() && self.tags.are_closed();
                self.others(Candidates::skip_call, tools);
                self.call = Some(OwnCall {
                    source: String::new(),
                    is_apart,
                });
            }
            ReplyItem::Event(event) => self.event(&event, tools),
            ReplyItem::Call(read) => {
                let Some(written) = self.call.take() else {
                    return;
                };
                let is_whole = written.is_apart && read.call.termination == Termination::Explicit;
                match read.bound() {
                    Ok(Bound { arguments, .. }) if is_whole && !self.is_doubtful => {
                        let name = read.call.name.clone();
                        self.accept(written.source, vec![RescuedCall { name, arguments }]);
                    }
                    _ => {
                        self.is_doubtful = true;
                        self.text(&written.source);
                    }
                }
            }
            // The calls before it may be part of reasoning.
            ReplyItem::MaybeReasoning { .. } => self.release(),
            _ => {}
        }
    }

    fn event(&mut self, event: &Event<'_>, tools: &impl ToolLookup) {
        let source = event.source();
        self.unread = self.unread.saturating_sub(source.len());
        if let Some(call) = &mut self.call {
            call.source.push_str(source);
            call.is_apart &= call.source.len() <= MAX_HELD;
            if !call.is_apart {
                let source = mem::take(&mut call.source);
                self.text(&source);
            }
            return;
        }
        match &event.kind {
            EventKind::Text(_) => {
                let read = |others: &mut Candidates, out: &mut dyn FnMut(Piece<'_>)| {
                    others.feed(source, out);
                    others.pass_on_text(|name| tools.find(name).is_some(), out);
                };
                self.others(read, tools);
            }
            // The markers of reasoning, and reasoning.
            _ if !source.is_empty() => {
                self.others(Candidates::finish, tools);
                self.release();
                match self.found.last_mut() {
                    Some(Rescued::Reasoning(before)) => before.push_str(source),
                    _ => self.found.push(Rescued::Reasoning(source.to_owned())),
                }
            }
            _ => {}
        }
    }

    /// Passes text to the reader of other formats, and takes what it finds.
    fn others(
        &mut self,
        read: impl FnOnce(&mut Candidates, &mut dyn FnMut(Piece<'_>)),
        tools: &impl ToolLookup,
    ) {
        let mut others = mem::take(&mut self.others);
        read(&mut others, &mut |piece| match piece {
            Piece::Text(text) => {
                self.tags.feed(text);
                self.text(text);
            }
            // Its tags are data.
            Piece::Failed(text) => self.text(text),
            Piece::Candidate(candidate) => self.candidate(candidate, tools),
        });
        self.others = others;
    }

    fn candidate(&mut self, candidate: Candidate, tools: &impl ToolLookup) {
        let is_whole = candidate.has_ended && candidate.is_known;
        let may_be = is_whole && candidate.is_apart && self.tags.are_closed();
        let calls = (may_be && !self.is_doubtful)
            .then(|| calls_in(&candidate.source, &self.formats, tools, &mut self.steps));
        if let Some(calls) = calls.flatten() {
            return self.accept(candidate.source, calls);
        }
        let is_named = |tool: &ToolSpec| candidate.named.names(&tool.name);
        self.is_doubtful |= !candidate.has_ended || tools.specs().any(is_named);
        self.text(&candidate.source);
    }

    fn accept(&mut self, source: String, calls: Vec<RescuedCall>) {
        self.held_len += source.len();
        self.held.push(Rescued::Calls { source, calls });
        self.limit();
    }

    /// Takes text that is not a call. After a call, only white space and special tokens may follow.
    fn text(&mut self, text: &str) {
        if self.held.is_empty() {
            self.pass_on(text);
            return;
        }
        self.held_len += text.len();
        if let Some(Rescued::Text(before)) = self.held.last_mut() {
            before.push_str(text);
        } else {
            self.held.push(Rescued::Text(text.to_owned()));
            self.tail_read = 0;
        }
        let last = self.held.last().map_or("", Rescued::source);
        // Each token is read once, however the text is split.
        let rest = last.get(self.tail_read..).and_then(rest_of_tokens);
        self.tail_read = last.len() - rest.map_or(0, str::len);
        let is_too_long = last.len() > LONGEST_TAIL;
        if is_too_long || rest.is_none_or(|rest| rest.len() > LONGEST_TOKEN) {
            self.release();
        }
        self.limit();
    }

    fn limit(&mut self) {
        if self.held_len > MAX_HELD {
            self.release();
        }
    }

    /// Passes on the held calls as text: the reply does not end with them.
    fn release(&mut self) {
        self.held_len = 0;
        for one in mem::take(&mut self.held) {
            self.is_doubtful |= matches!(one, Rescued::Calls { .. });
            self.pass_on(one.source());
        }
    }

    fn pass_on(&mut self, text: &str) {
        match self.found.last_mut() {
            _ if text.is_empty() => {}
            Some(Rescued::Text(before)) => before.push_str(text),
            _ => self.found.push(Rescued::Text(text.to_owned())),
        }
    }

    fn finish(&mut self, is_complete: bool, tools: &impl ToolLookup) {
        if let Some(call) = self.call.take() {
            self.is_doubtful = true;
            self.text(&call.source);
        }
        self.others(Candidates::finish, tools);
        let is_over = self.held.iter().all(|one| match one {
            Rescued::Text(text) => rest_of_tokens(text) == Some(""),
            _ => true,
        });
        let ends_line = || {
            let last = self.held.last();
            last.is_some_and(|last| matches!(last, Rescued::Text(text) if text.contains('\n')))
        };
        if !is_over || (!is_complete && !ends_line()) {
            self.release();
        }
        self.held_len = 0;
        let mut held = mem::take(&mut self.held).into_iter().peekable();
        while let Some(one) = held.next() {
            match (self.found.last_mut(), one) {
                // The end of their line, and special tokens, belong to the calls before them.
                (Some(Rescued::Calls { source, .. }), Rescued::Text(text)) => {
                    let tokens = text.trim_end().len();
                    let blank = text.get(tokens..).unwrap_or_default();
                    let line = blank.find('\n').map(|end| end + 1);
                    let line = line.or(held.peek().map(|_| blank.len())).unwrap_or(0);
                    source.push_str(text.get(..tokens + line).unwrap_or_default());
                    self.pass_on(blank.get(line..).unwrap_or_default());
                }
                (_, one) => self.found.push(one),
            }
        }
    }
}

/// Returns what follows the white space and the special tokens at the beginning of a text, if it may be the beginning of one.
fn rest_of_tokens(text: &str) -> Option<&str> {
    let mut rest = text.trim_start();
    while let Some(begin) = rest.strip_prefix(['<', '[']) {
        let Some(end) = begin.find(['>', ']']) else {
            return (!rest.contains(char::is_whitespace)).then_some(rest);
        };
        let token = rest.get(..end + 2)?;
        let is_end = |tag: &str| !tag.is_empty() && token.eq_ignore_ascii_case(tag);
        let is_template = (token.starts_with("<|") && token.ends_with("|>"))
            || (token.starts_with("<\u{FF5C}") && token.ends_with("\u{FF5C}>"));
        let mut tags = CALL_TAGS.iter().map(|(_, end)| *end);
        let is_token =
            tags.any(is_end) || is_template || SPECIAL_TOKENS.iter().any(|one| is_end(one));
        if !is_token || token.contains(char::is_whitespace) {
            return None;
        }
        rest = rest.get(end + 2..)?.trim_start();
    }
    rest.is_empty().then_some(rest)
}
