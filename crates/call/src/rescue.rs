//! Calls that a model with native tool calls wrote as text (`spec/gateway.md` 11.1).

mod calls;
mod formats;
pub(crate) mod json_scan;
mod matcher;

use std::mem;
use std::sync::Arc;

use plaincall_syntax::{Dialect, DialectError, MarkerUse, ceil_char_boundary};

use crate::arguments::Arguments;
use crate::limits::Limits;
use crate::may_run::{ReplyCheck, Unclosed};
use crate::reply_reader::ReplyReader;
use crate::rescue::formats::{AFTER_OWN, BARE, FORMATS};
use crate::rescue::matcher::{Fence, Matched, Matcher};
use crate::tool::lookup::ToolLookup;

/// The maximum length of a text that is held back, in bytes.
const MAX_HELD: usize = 1 << 20;
/// The maximum number of blanks before a call. More of them begin a code block in Markdown.
const MAX_BLANKS: usize = 3;
/// The length that is kept of a text that is not held back, in bytes. The texts that end a part are shorter.
const KEPT: usize = 64;

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
    /// A code block: its fence, and the beginning of the current line while it may be the end of the block.
    Block(Fence, Option<String>),
    Call(Box<Candidate<T>>),
}

/// A text that may become calls.
#[derive(Debug)]
struct Candidate<T> {
    matcher: Matcher<T>,
    text: String,
    /// Where its last line begins.
    line: usize,
    /// The length of the text before `text`, once it is known to be no call.
    offset: usize,
    is_text: bool,
    /// How much of the text has been passed on.
    passed: usize,
}

/// The kind of the beginning of a line.
enum Beginning<T> {
    /// It may become a call.
    Open,
    Text,
    Reasoning,
    /// A call, or what has the form of one.
    Call(Box<Matcher<T>>, Matched),
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
        self.pass_on();
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
                if is_complete && call.matcher.end.is_none() {
                    let tools = &self.tools;
                    call.matcher.finish(&call.text, call.offset, tools);
                    call.text.push('\n');
                    call.matcher.take('\n', &call.text, call.offset, tools);
                    call.text.pop();
                }
                let rest = self.end_call(*call);
                self.text(&rest);
                // What is held back was the beginning of a line.
                if !rest.is_empty() && !rest.ends_with('\n') {
                    match &mut self.state {
                        State::Block(_, line) => *line = None,
                        state => *state = State::Line,
                    }
                }
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
            let rest = text.get(c.len_utf8()..).unwrap_or_default();
            if matches!(self.state, State::Line) {
                let end = text.find('\n').map_or(text.len(), |end| end + 1);
                let (line, rest) = text.split_at_checked(end).unwrap_or((text, ""));
                self.text(line);
                if line.ends_with('\n') {
                    self.state = State::Begin(String::new());
                }
                text = rest;
                continue;
            }
            text = rest;
            let again = self.take(c);
            if !again.is_empty() {
                self.read(&again);
            }
        }
    }

    /// Takes a character. Returns text to read again: at most once for each character of a line.
    fn take(&mut self, c: char) -> String {
        match mem::replace(&mut self.state, State::Line) {
            State::Begin(held) => self.begin(held, c),
            State::Line => {
                self.text(c.encode_utf8(&mut [0; 4]));
            }
            State::Reasoning(tail) => self.reason(tail, c),
            State::Block(fence, line) => {
                self.text(c.encode_utf8(&mut [0; 4]));
                self.state = in_block(fence, line, c);
            }
            State::Call(mut call) => {
                if call.text.ends_with('\n') {
                    call.line = call.text.len();
                }
                call.text.push(c);
                let matched = call.matcher.take(c, &call.text, call.offset, &self.tools);
                return self.matched(call, matched);
            }
        }
        String::new()
    }

    /// Handles the result of the last character of a candidate.
    fn matched(&mut self, mut call: Box<Candidate<T>>, matched: Matched) -> String {
        if matched == Matched::Never || call.matcher.is_complete() {
            return self.end_call(*call);
        }
        if matched == Matched::NoCall || call.text.len() > MAX_HELD {
            if let Some(fence) = call.matcher.fence {
                return self.end_block(&call, fence);
            }
            call.is_text = true;
        }
        self.state = State::Call(call);
        String::new()
    }

    fn begin(&mut self, mut held: String, c: char) {
        held.push(c);
        match self.beginning(&held) {
            Beginning::Open => self.state = State::Begin(held),
            Beginning::Text => {
                self.text(&held);
                if c == '\n' {
                    self.state = State::Begin(String::new());
                }
            }
            Beginning::Reasoning => {
                self.text(&held);
                self.state = State::Reasoning(String::new());
            }
            Beginning::Call(matcher, result) => {
                self.state = State::Call(Box::new(Candidate {
                    matcher: *matcher,
                    text: held,
                    line: 0,
                    offset: 0,
                    is_text: result == Matched::NoCall,
                    passed: 0,
                }));
            }
        }
    }

    fn beginning(&self, held: &str) -> Beginning<T> {
        let begun = held.trim_start_matches([' ', '\t']);
        let may_become = |text: &str| text.len() > begun.len() && text.starts_with(begun);
        if let Some([open, _]) = self.reasoning.as_ref().filter(|_| self.is_blank) {
            if begun == open {
                return Beginning::Reasoning;
            }
            if may_become(open) && held.len() - begun.len() <= KEPT {
                return Beginning::Open;
            }
        }
        let blanks = held.get(..held.len() - begun.len()).unwrap_or_default();
        if blanks.len() > MAX_BLANKS || blanks.contains('\t') {
            return Beginning::Text;
        }
        if let Some(format) = FORMATS.iter().find(|format| begun == format.open) {
            let fence = begun.chars().next().filter(|c| matches!(c, '`' | '~'));
            let matcher = Box::new(Matcher::new(format.steps, fence));
            return Beginning::Call(matcher, Matched::More);
        }
        let mut opens = FORMATS.iter().map(|format| format.open);
        if opens.any(may_become) || self.starts.iter().any(|start| may_become(start)) {
            return Beginning::Open;
        }
        let (mut matcher, from) = if self.starts.iter().any(|start| begun == start) {
            let own = self.own.with_tools(self.tools.clone());
            (Matcher::own(own, AFTER_OWN), 0)
        } else if begun.starts_with(['{', '[']) {
            (Matcher::new(BARE, None), blanks.len())
        } else {
            return Beginning::Text;
        };
        let mut result = Matched::More;
        for (at, c) in held.char_indices().filter(|(at, _)| *at >= from) {
            let text = held.get(..at + c.len_utf8()).unwrap_or_default();
            match matcher.take(c, text, 0, &self.tools) {
                Matched::More => {}
                Matched::NoCall => result = Matched::NoCall,
                Matched::Never => return Beginning::Text,
            }
        }
        Beginning::Call(Box::new(matcher), result)
    }

    fn reason(&mut self, mut tail: String, c: char) {
        self.text(c.encode_utf8(&mut [0; 4]));
        tail.push(c);
        let close = self.reasoning.as_ref().map_or("", |[_, close]| close);
        self.state = if tail.ends_with(close) {
            State::Begin(String::new())
        } else {
            let kept = tail.len().saturating_sub(close.len());
            tail.drain(..ceil_char_boundary(&tail, kept));
            State::Reasoning(tail)
        };
    }

    /// Ends a candidate. Returns the text to read again.
    fn end_call(&mut self, mut call: Candidate<T>) -> String {
        let matcher = &mut call.matcher;
        let Some(end) = matcher.end else {
            return match matcher.fence {
                Some(fence) => self.end_block(&call, fence),
                None => self.release(&call),
            };
        };
        self.state = State::Begin(String::new());
        let end = end.saturating_sub(call.offset).min(call.text.len());
        let rest = call.text.split_off(end);
        let calls = match matcher.own_call.take() {
            _ if call.is_text => None,
            Some(call) => Some(vec![call]),
            None => calls::calls(&call.text, &matcher.parts, &self.tools),
        };
        match calls {
            Some(calls) => {
                self.is_blank = false;
                let source = call.text;
                self.found.push(Rescued::Calls { source, calls });
            }
            None => self.text(call.text.get(call.passed..).unwrap_or_default()),
        }
        rest
    }

    /// Passes on a candidate that is not a call. Its last line is read again, unless it is the first.
    fn release(&mut self, call: &Candidate<T>) -> String {
        let is_first = call.line == 0 || call.is_text;
        let from = if is_first { call.text.len() } else { call.line };
        self.text(call.text.get(call.passed..from).unwrap_or_default());
        let is_begun = !is_first || call.text.ends_with('\n');
        if is_begun {
            self.state = State::Begin(String::new());
        }
        call.text.get(from..).unwrap_or_default().to_owned()
    }

    /// Passes on a code block that has not become a call so far.
    fn end_block(&mut self, call: &Candidate<T>, fence: Fence) -> String {
        let is_first = call.line == 0;
        let rest = self.release(call);
        let is_begun = !is_first || call.text.ends_with('\n');
        self.state = State::Block(fence, is_begun.then(String::new));
        rest
    }

    /// Passes on the text taken by a candidate that is not a call.
    fn pass_on(&mut self) {
        let State::Call(call) = &mut self.state else {
            return;
        };
        if !call.is_text {
            return;
        }
        // The text behind the end is read again.
        let most = call
            .matcher
            .end
            .map_or(usize::MAX, |end| end.saturating_sub(call.offset));
        let until = call.text.len().min(most).max(call.passed);
        let fresh = call
            .text
            .get(call.passed..until)
            .unwrap_or_default()
            .to_owned();
        let kept = until.saturating_sub(KEPT);
        let kept = ceil_char_boundary(&call.text, kept);
        call.text.drain(..kept);
        call.offset += kept;
        call.passed = until - kept;
        self.text(&fresh);
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

/// Returns the state after a character of a code block.
fn in_block<T>(fence: Fence, line: Option<String>, c: char) -> State<T> {
    let mut line = match (line, c) {
        (line, '\n') => {
            let line = line.unwrap_or_default();
            let marks = line.trim_matches([' ', '\t', '\r']);
            let is_end = marks.len() >= fence.length && marks.chars().all(|c| c == fence.mark);
            return if is_end {
                State::Begin(String::new())
            } else {
                State::Block(fence, Some(String::new()))
            };
        }
        (Some(line), c) if c == fence.mark || matches!(c, ' ' | '\t' | '\r') => line,
        _ => return State::Block(fence, None),
    };
    // A line of this length ends no block.
    let is_long = line.len() > MAX_HELD;
    line.push(c);
    State::Block(fence, Some(line).filter(|_| !is_long))
}
