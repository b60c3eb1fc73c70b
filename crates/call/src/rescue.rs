//! Calls that a model with native tool calls wrote as text (`spec/gateway.md` 11.1).

pub(crate) mod calls;
mod candidate;
mod fence;
mod formats;
mod json_scan;

use std::mem;
use std::sync::Arc;

use plaincall_syntax::{Dialect, DialectError, MarkerUse, ceil_char_boundary};

use crate::arguments::Arguments;
use crate::limits::Limits;
use crate::may_run::{ReplyCheck, Unclosed};
use crate::reply_reader::ReplyReader;
use crate::rescue::candidate::Candidate;
use crate::rescue::fence::Fence;
use crate::rescue::formats::{BARE, FORMATS, OWN, Step};
use crate::tool::lookup::ToolLookup;

/// The maximum length of a text that is held back, in bytes.
const MAX_HELD: usize = 1 << 20;
/// The maximum number of blanks before a call. More of them begin a code block in Markdown.
const MAX_BLANKS: usize = 3;
/// The maximum number of blanks before reasoning.
const MAX_REASONING_BLANKS: usize = 64;

/// Finds calls in the text of a model that was not taught our syntax: in the formats that models were trained on, and in our
/// own. All other text stays as it is.
///
/// A call is found if it is on lines of its own and complete, an offered tool has its name, and its arguments are valid. Text is
/// held back only while it may become a call, and at most 1 MiB of it. The result does not depend on how the text is split.
///
/// ```
/// use plaincall_call::rescue::{RescueReader, Rescued};
/// use plaincall_call::{Parameter, ParameterKind, ToolSet, ToolSpec};
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
    own: ReplyReader<&'static [&'static crate::tool::ToolSpec]>,
    /// Our own start markers.
    starts: Arc<[String]>,
    /// The markers around reasoning at the beginning of a reply.
    reasoning: Option<[String; 2]>,
    tools: T,
    state: State<T>,
    /// Whether there was only white space so far.
    is_blank: bool,
    found: Vec<Rescued>,
}

/// A part of a text.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub enum Rescued {
    /// Text.
    Text(String),
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
            Self::Text(text) => text,
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

#[derive(Debug)]
enum State<T> {
    /// The beginning of a line, which may become a call.
    Begin(String),
    /// The rest of a line without a call.
    Line,
    /// Reasoning. The text is the end of it.
    Reasoning(String),
    /// A code block that is text.
    Block(Fence),
    Call(Box<Candidate<T>>),
}

impl RescueReader<&'static [&'static crate::tool::ToolSpec]> {
    /// Creates a reader without tools. Text between the markers of reasoning at the beginning of a reply stays text.
    ///
    /// # Errors
    /// Returns an error if our default markers are invalid, which they are not.
    pub fn new(reasoning: Option<[String; 2]>) -> Result<Self, DialectError> {
        let dialect = Dialect::auto();
        let check = ReplyCheck::new(&dialect, Unclosed::Reject)?;
        let check = check.without_gate().without_dependencies();
        let markers = dialect.markers()?.into_iter();
        let starts = markers.filter(|marker| matches!(marker.usage, MarkerUse::Start(_)));
        Ok(Self {
            own: ReplyReader::new(&dialect, &[][..], check, Limits::for_running())?,
            starts: starts.map(|marker| marker.text).collect(),
            reasoning,
            tools: &[],
            state: State::Begin(String::new()),
            is_blank: true,
            found: Vec::new(),
        })
    }

    /// Begins inside reasoning.
    #[must_use]
    pub fn in_reasoning(mut self) -> Self {
        if self.reasoning.is_some() {
            self.state = State::Reasoning(String::new());
        }
        self
    }

    /// Returns a copy with these tools, for a reply.
    pub fn with_tools<T: ToolLookup + Clone>(&self, tools: T) -> RescueReader<T> {
        RescueReader {
            own: self.own.clone(),
            starts: Arc::clone(&self.starts),
            reasoning: self.reasoning.clone(),
            tools,
            state: match &self.state {
                State::Reasoning(_) => State::Reasoning(String::new()),
                _ => State::Begin(String::new()),
            },
            is_blank: true,
            found: Vec::new(),
        }
    }
}

impl<T: ToolLookup + Clone> RescueReader<T> {
    /// Reads the next text.
    pub fn feed(&mut self, text: &str) -> Vec<Rescued> {
        self.read(text);
        mem::take(&mut self.found)
    }

    /// Ends the text, or its current line: what is held back is decided now. A call that ends here counts only if the text is
    /// complete.
    pub fn flush(&mut self, is_complete: bool) -> Vec<Rescued> {
        match mem::replace(&mut self.state, State::Line) {
            State::Begin(held) => {
                self.text(&held);
                // A line that has not begun may still begin with a call.
                if held.is_empty() {
                    self.state = State::Begin(held);
                }
            }
            State::Call(mut call) => {
                if is_complete && call.end.is_none() {
                    let was_text = call.is_text;
                    call.take('\n', &self.tools);
                    call.text.pop();
                    call.is_text = was_text;
                }
                let rest = self.end_call(*call);
                // The rest is the beginning of a line without a call.
                if !rest.is_empty() && !matches!(self.state, State::Block(_)) {
                    self.state = State::Line;
                }
                self.read(&rest);
            }
            other => self.state = other,
        }
        mem::take(&mut self.found)
    }

    /// Returns whether text is held back.
    pub fn is_holding(&self) -> bool {
        match &self.state {
            State::Begin(held) => !held.is_empty(),
            State::Call(call) => !call.is_text,
            _ => false,
        }
    }

    fn read(&mut self, mut text: &str) {
        while let Some(c) = text.chars().next() {
            let length = match self.state {
                State::Line => text.find('\n').map_or(text.len(), |end| end + 1),
                _ => c.len_utf8(),
            };
            let (piece, rest) = text.split_at_checked(length).unwrap_or((text, ""));
            text = rest;
            let again = self.take(piece, c);
            self.read(&again);
        }
    }

    /// Takes a character, or the rest of a line without a call. Returns text to read again: at most twice for each character of
    /// a line.
    fn take(&mut self, piece: &str, c: char) -> String {
        match mem::replace(&mut self.state, State::Line) {
            State::Begin(held) => return self.begin(held + piece),
            State::Line => {
                self.text(piece);
                if piece.ends_with('\n') {
                    self.state = State::Begin(String::new());
                }
            }
            State::Reasoning(mut end) => {
                self.text(piece);
                end.push(c);
                let close = self.reasoning.as_ref().map_or("", |[_, close]| close);
                if end.ends_with(close) {
                    self.state = State::Begin(String::new());
                } else {
                    let cut = end.len().saturating_sub(close.len());
                    end.drain(..ceil_char_boundary(&end, cut));
                    self.state = State::Reasoning(end);
                }
            }
            State::Block(mut fence) => {
                self.text(piece);
                self.state = match fence.take(c) {
                    Some(true) => State::Begin(String::new()),
                    _ => State::Block(fence),
                };
            }
            State::Call(mut call) => {
                let was_text = call.is_text;
                let matches = call.take(c, &self.tools);
                if call.is_text && call.fence.is_some() {
                    return self.fail(*call);
                }
                if call.is_text {
                    self.text(if was_text { piece } else { &call.text });
                }
                if !matches || call.is_over() {
                    return self.end_call(*call);
                }
                self.state = State::Call(call);
            }
        }
        String::new()
    }

    /// Decides what this beginning of a line is. Returns it if it is read again, as the rest of a line or by a candidate.
    fn begin(&mut self, held: String) -> String {
        let begun = held.trim_start_matches([' ', '\t']);
        let blanks = held.get(..held.len() - begun.len()).unwrap_or_default();
        let begins = |text: &str| text.len() > begun.len() && text.starts_with(begun);
        let starts = self.starts.iter().map(|start| (&**start, OWN));
        let mut formats = FORMATS.iter().copied().chain(starts);
        let reasoning = self.reasoning.as_ref().filter(|_| self.is_blank);
        if reasoning.is_some_and(|[open, _]| begun == open) {
            self.text(&held);
            self.state = State::Reasoning(String::new());
            return String::new();
        }
        let may_reason = reasoning.is_some_and(|[open, _]| begins(open));
        let is_indented = blanks.len() > MAX_BLANKS || blanks.contains('\t');
        if (may_reason && blanks.len() <= MAX_REASONING_BLANKS)
            || (!is_indented && formats.clone().any(|(open, _)| begins(open)))
        {
            self.state = State::Begin(held);
            return String::new();
        }
        let is_json = begun.starts_with(['{', '[']);
        let (text, steps, again) = match formats.find(|(open, _)| begun == *open) {
            _ if is_indented => return held,
            Some((_, steps)) => (held, steps, String::new()),
            None if is_json => (String::new(), BARE, held),
            None => return held,
        };
        let own = matches!(steps, [Step::Own, ..]);
        let own = own.then(|| self.own.with_tools(self.tools.clone()));
        self.state = State::Call(Box::new(Candidate::new(text, steps, own)));
        again
    }

    /// Ends a candidate. Returns the text to read again.
    fn end_call(&mut self, mut call: Candidate<T>) -> String {
        if call.is_text {
            if call.end.is_some() || call.text.ends_with('\n') {
                self.state = State::Begin(String::new());
            }
            return String::new();
        }
        let Some(end) = call.end else {
            return self.fail(call);
        };
        self.state = State::Begin(String::new());
        let rest = call.text.split_off(end.min(call.text.len()));
        match call.calls(&self.tools) {
            Some(calls) => {
                self.is_blank = false;
                let source = call.text;
                self.found.push(Rescued::Calls { source, calls });
            }
            None => self.text(&call.text),
        }
        rest
    }

    /// Passes on a candidate that does not have its format. Its last line is read again, unless it is the first.
    fn fail(&mut self, mut call: Candidate<T>) -> String {
        let lines = call.text.strip_suffix('\n').unwrap_or(&call.text);
        let last = lines.rfind('\n').map(|end| end + 1);
        let rest = call.text.split_off(last.unwrap_or(call.text.len()));
        self.text(&call.text);
        let is_begin = call.text.ends_with('\n');
        self.state = match call.fence {
            Some(fence) => State::Block(fence.at_line(is_begin)),
            None if is_begin => State::Begin(String::new()),
            None => State::Line,
        };
        rest
    }

    fn text(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        self.is_blank &= text.trim().is_empty();
        match self.found.last_mut() {
            Some(Rescued::Text(before)) => before.push_str(text),
            _ => self.found.push(Rescued::Text(text.to_owned())),
        }
    }
}
