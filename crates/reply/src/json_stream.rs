//! The arguments of a call as JSON text, while the model writes them (`spec/json-stream.md`).
//!
//! Results of `write!` are ignored: writing to a `String` cannot fail.

mod shape;
mod undecided;
mod write;

use std::borrow::Borrow;
use std::fmt::{self, Write};
use std::mem;

use plaincall_syntax::{Event, EventKind, Header, Severity, Slot};

use crate::ToolCall;
use crate::json_stream::shape::{EmojiBody, EmojiShape, Place, placed};
use crate::json_stream::undecided::Undecided;
use crate::json_stream::write::{TextDigest, write_escaped};
use plaincall_tool::Arguments;
use plaincall_tool::Limits;
use plaincall_tool::ToolSpec;
use plaincall_tool::argument_error::quoted;
use plaincall_tool::pointer::{PointerError, is_index, shown};
use plaincall_tool::schema::{ExpectedParts, ExpectedValue};
use plaincall_tool::tree::Tree;

/// Converts the parser's events of one call to deltas of the JSON text of its arguments (`spec/json-stream.md`).
///
/// It needs each event of the call from its start. Strings are written as they arrive, other values when they are
/// complete. If the model continues elsewhere before a list or object is known to be complete, nothing more is written
/// until the call has ended; then [`close`](Self::close) writes the rest.
///
/// The deltas together are exactly the text that `serde_json` writes for the bound arguments. If the call is invalid,
/// the text is never closed, so it is not valid JSON.
///
/// It keeps the keys of the call, and the text of only the value that is undecided or incomplete. Its time is linear in
/// the call, however the input is split.
#[derive(Clone, Debug)]
pub struct JsonStream<T> {
    tool: T,
    limits: Limits,
    state: State,
    written: TextDigest,
    tree: Tree,
    begun: usize,
    members: usize,
    /// The lists and objects below the root that are open in the text, outermost first.
    open: Vec<Open>,
    value: OpenValue,
    body: Option<EmojiBody>,
    pointer: String,
    value_len: usize,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum State {
    Before,
    /// The text can continue.
    Writing,
    /// The text continues when the call has ended.
    Held,
    /// Nothing more is written: the call is invalid.
    Invalid(String),
    Ended,
}

#[derive(Clone, Debug)]
struct Open {
    key: Box<str>,
    is_list: bool,
    members: usize,
    most: Option<usize>,
}

/// The state of the value that the model is writing.
#[derive(Clone, Debug)]
enum OpenValue {
    /// Nothing is written yet.
    Unwritten,
    /// A string that is open in the text.
    String,
    /// An optional body, which becomes a string when it has content.
    Body(String),
    /// The text is held until it is known to be a string or, otherwise, until it is complete.
    Waiting {
        undecided: Option<Undecided>,
        text: String,
        place: Vec<Box<str>>,
        /// Whether the key is not written yet, because the text may mean that the parameter is absent.
        may_be_absent: bool,
    },
}

/// The reason why a JSON text was not closed.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum NotClosed {
    /// The call is invalid; the first error.
    Invalid(String),
    /// The arguments are not those whose beginning was written: they were changed, or bound to another tool.
    Different,
}

impl fmt::Display for NotClosed {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Invalid(error) => write!(formatter, "invalid call: {error}"),
            Self::Different => formatter.write_str(
                "the arguments differ from the text already written: pass those of this call, bound to the tool of this stream",
            ),
        }
    }
}

impl std::error::Error for NotClosed {}

impl<T: Borrow<ToolSpec>> JsonStream<T> {
    /// Creates a stream for one call of the tool. Use the limits of the collector.
    pub fn new(tool: T, limits: Limits) -> Self {
        Self {
            tool,
            limits,
            state: State::Before,
            written: TextDigest::default(),
            tree: Tree::default(),
            begun: 0,
            members: 0,
            open: Vec::new(),
            value: OpenValue::Unwritten,
            body: None,
            pointer: String::new(),
            value_len: 0,
        }
    }

    /// Processes the next event, and appends to `out` what can be written now.
    ///
    /// It does not read `out`, so you may take each delta out. Events before the call's start and after its end change
    /// nothing.
    pub fn push(&mut self, event: &Event<'_>, out: &mut String) {
        let from = out.len();
        if let Err(error) = self.take(event, out) {
            self.state = State::Invalid(error);
            self.value = OpenValue::Unwritten;
        }
        self.count(out, from);
    }

    /// Returns the first error of the call that is known so far. After an error, nothing more is written.
    ///
    /// A call without an error so far may still be invalid: binding decides.
    pub fn error(&self) -> Option<&str> {
        match &self.state {
            State::Invalid(error) => Some(error),
            _ => None,
        }
    }

    /// Appends the rest of the text to `out`, once the call has ended and its arguments are bound.
    ///
    /// Do not close the text of a call that [may not run](crate::ReplyCheck::may_run). A second close writes nothing.
    ///
    /// # Errors
    /// Returns an error and writes nothing if the call is invalid, or if the text of the arguments does not begin with
    /// the written text.
    pub fn close(
        &mut self,
        call: &ToolCall,
        arguments: &Arguments,
        out: &mut String,
    ) -> Result<(), NotClosed> {
        // An error that the schema resolves is not an error of these arguments.
        let error = call.parse_error.as_deref();
        let error = error.filter(|_| call.has_lasting_error() || !arguments.unplaced.is_empty());
        if let Some(error) = error.or(self.error()) {
            return Err(NotClosed::Invalid(error.to_owned()));
        }
        let text = serde_json::to_string(arguments).map_err(|_| NotClosed::Different)?;
        let rest = self.written.rest_of(&text).ok_or(NotClosed::Different)?;
        let from = out.len();
        out.push_str(rest);
        self.state = State::Ended;
        self.count(out, from);
        Ok(())
    }

    fn take(&mut self, event: &Event<'_>, out: &mut String) -> Result<(), String> {
        match (&self.state, &event.kind) {
            (State::Before, EventKind::CallStart(header)) => self.begin(header, out),
            (State::Writing | State::Held, kind) => match kind {
                EventKind::ValueStart(Slot::Argument(pointer)) => {
                    self.begin_argument(pointer.as_str(), out)
                }
                EventKind::ValueStart(Slot::Body) => {
                    self.begin_body(out);
                    Ok(())
                }
                EventKind::ValueDelta(piece) => self.add(piece, out),
                EventKind::ValueEnd => self.end_value(out),
                EventKind::Diagnostic(diagnostic) if diagnostic.severity() == Severity::Error => {
                    Err(diagnostic.message())
                }
                EventKind::CallEnd(_) => {
                    self.state = State::Ended;
                    Ok(())
                }
                _ => Ok(()),
            },
            _ => Ok(()),
        }
    }

    fn count(&mut self, out: &str, from: usize) {
        self.written.add(out.get(from..).unwrap_or_default());
    }

    fn begin(&mut self, header: &Header<'_>, out: &mut String) -> Result<(), String> {
        self.state = State::Writing;
        let Some(raw_args) = header.raw_args() else {
            return Ok(());
        };
        match shape::emoji(self.tool.borrow(), raw_args) {
            EmojiShape::Whole => self.state = State::Held,
            EmojiShape::Wrong => {
                return Err(format!(
                    "the line does not match the usage of the tool: found {}",
                    quoted(raw_args)
                ));
            }
            EmojiShape::Named { line, body } => {
                for (key, node) in line.tree.root() {
                    self.begin_member(key, out);
                    let _ = write!(out, "{}", line.value_of(node));
                }
                self.body = body;
            }
        }
        Ok(())
    }

    fn begin_argument(&mut self, written: &str, out: &mut String) -> Result<(), String> {
        let message = |error: PointerError| error.message;
        self.begun += 1;
        if self.begun > self.limits.arguments {
            return Err("Too many arguments".to_owned());
        }
        let (text, _) = shown(written);
        self.value_len = 0;
        self.pointer.clear();
        self.pointer.push_str(text);
        let Place {
            pointer,
            way,
            value: expected,
            may_be_absent,
        } = placed(text, self.limits.depth(), self.tool.borrow()).map_err(message)?;
        let (_, known) = self.tree.locate(&pointer).map_err(message)?;
        self.tree.insert(&pointer, self.begun).map_err(message)?;
        self.value = OpenValue::Unwritten;
        let place: Vec<&str> = pointer.segments.iter().map(|segment| &**segment).collect();
        if expected == ExpectedValue::Nothing && !may_be_absent {
            return Err(nothing_at(text));
        }
        if expected == ExpectedValue::Later {
            self.state = State::Held;
        }
        if self.state == State::Held {
            return Ok(());
        }

        let on_way = self.open.iter().zip(&place);
        let shared = on_way.take_while(|(open, key)| *open.key == ***key).count();
        if known > shared {
            // It was closed, because nothing more could follow.
            return Err(nothing_at(text));
        }
        if self
            .open
            .iter()
            .skip(shared)
            .any(|open| !open.is_complete())
        {
            self.state = State::Held;
            return Ok(());
        }
        for open in self.open.drain(shared.min(self.open.len())..).rev() {
            out.push(if open.is_list { ']' } else { '}' });
        }
        if may_be_absent {
            self.wait(&place, None, true);
            return Ok(());
        }
        self.enter(&place, &way, shared, out)?;
        match expected {
            _ if self.state == State::Held => {}
            ExpectedValue::Nothing | ExpectedValue::Later => {}
            ExpectedValue::Text => {
                out.push('"');
                self.value = OpenValue::String;
            }
            ExpectedValue::TextOrNull => self.wait(&place, Some(Undecided::null()), false),
            ExpectedValue::TextOrScalar => self.wait(&place, Some(Undecided::scalar()), false),
            ExpectedValue::TextOrObject => self.wait(&place, Some(Undecided::object()), false),
            ExpectedValue::Guessed => self.wait(&place, Some(Undecided::guessed()), false),
            ExpectedValue::Whole => self.wait(&place, None, false),
        }
        Ok(())
    }

    /// Opens the containers on the way to a value after the first `known` segments, and begins the member.
    fn enter(
        &mut self,
        place: &[&str],
        way: &[ExpectedParts],
        known: usize,
        out: &mut String,
    ) -> Result<(), String> {
        for (depth, key) in place.iter().enumerate().skip(known) {
            let (Some(next), Some(parts)) = (place.get(depth + 1), way.get(depth)) else {
                self.begin_member(key, out);
                continue;
            };
            let (is_list, most) = match *parts {
                ExpectedParts::Nothing => return Err(nothing_at(&self.pointer)),
                ExpectedParts::Later => {
                    self.state = State::Held;
                    return Ok(());
                }
                ExpectedParts::ByPointers => (is_index(next), None),
                ExpectedParts::Object { most } => (false, most),
                ExpectedParts::List { most } if is_index(next) => (true, most),
                ExpectedParts::List { .. } => {
                    return Err(PointerError::invalid_index(next).message);
                }
            };
            self.begin_member(key, out);
            out.push(if is_list { '[' } else { '{' });
            self.open.push(Open {
                key: (*key).into(),
                is_list,
                members: 0,
                most,
            });
        }
        Ok(())
    }

    fn begin_member(&mut self, key: &str, out: &mut String) {
        let (members, is_list) = if let Some(open) = self.open.last_mut() {
            (&mut open.members, open.is_list)
        } else {
            if self.members == 0 {
                out.push('{');
            }
            (&mut self.members, false)
        };
        if *members > 0 {
            out.push(',');
        }
        *members += 1;
        if !is_list {
            out.push('"');
            write_escaped(key, out);
            out.push_str("\":");
        }
    }

    fn wait(&mut self, place: &[&str], undecided: Option<Undecided>, may_be_absent: bool) {
        self.value = OpenValue::Waiting {
            undecided,
            text: String::new(),
            place: place.iter().map(|segment| (*segment).into()).collect(),
            may_be_absent,
        };
    }

    fn begin_body(&mut self, out: &mut String) {
        self.value_len = 0;
        "body".clone_into(&mut self.pointer);
        self.value = match self.body.take() {
            None => OpenValue::Unwritten,
            Some(body) if body.is_optional => OpenValue::Body(body.name),
            Some(body) => {
                self.begin_member(&body.name, out);
                out.push('"');
                OpenValue::String
            }
        };
    }

    fn add(&mut self, piece: &str, out: &mut String) -> Result<(), String> {
        self.value_len = self.value_len.saturating_add(piece.len());
        if self
            .limits
            .value_bytes
            .is_some_and(|most| self.value_len > most)
        {
            return Err(PointerError::value_too_long(&self.pointer).message);
        }
        match &mut self.value {
            OpenValue::Unwritten => {}
            OpenValue::String => {
                write_escaped(piece, out);
            }
            OpenValue::Body(name) => {
                let name = mem::take(name);
                self.begin_member(&name, out);
                self.value = OpenValue::String;
                out.push('"');
                write_escaped(piece, out);
            }
            OpenValue::Waiting {
                undecided, text, ..
            } => {
                text.push_str(piece);
                if undecided
                    .as_mut()
                    .is_some_and(|undecided| undecided.read(piece))
                {
                    out.push('"');
                    write_escaped(text, out);
                    self.value = OpenValue::String;
                }
            }
        }
        Ok(())
    }

    fn end_value(&mut self, out: &mut String) -> Result<(), String> {
        match mem::replace(&mut self.value, OpenValue::Unwritten) {
            OpenValue::Unwritten | OpenValue::Body(_) => {}
            OpenValue::String => out.push('"'),
            OpenValue::Waiting {
                text,
                place,
                may_be_absent,
                ..
            } => {
                if may_be_absent && shape::is_absent(self.tool.borrow(), &place, &text) {
                    return Ok(());
                }
                let Some(value) = shape::read(self.tool.borrow(), &place, &text) else {
                    let found = quoted(&text);
                    let pointer = &self.pointer;
                    return Err(format!("`{pointer}`: unexpected {found}"));
                };
                if let ([key], true) = (&*place, may_be_absent) {
                    self.begin_member(key, out);
                }
                let _ = write!(out, "{value}");
            }
        }
        Ok(())
    }
}

impl Open {
    fn is_complete(&self) -> bool {
        self.most.is_some_and(|most| self.members >= most)
    }
}

fn nothing_at(pointer: &str) -> String {
    format!("`{pointer}`: no value is allowed here")
}
