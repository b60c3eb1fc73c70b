//! Calls in other formats in the text of a reply: where they begin and where they end (`spec/common.md` 10.2).
//!
//! A candidate claims the text up to its own end, or the rest of the text. What is inside it is never searched again.

mod edges;
pub(crate) mod json_scan;
pub(crate) mod member;
pub(crate) mod named;
mod python_scan;
mod tag;

use memchr::{memchr, memchr3};
use plaincall_syntax::{CALL_NAME_KEYS, CALL_TAGS, ceil_char_boundary, is_blank};

use crate::candidates::edges::Edges;
use crate::candidates::json_scan::{JsonScan, Scanned};
use crate::candidates::member::Member;
use crate::candidates::named::Named;
use crate::candidates::python_scan::PythonScan;

/// The maximum length of a candidate, in bytes. A longer one is text.
const LONGEST: usize = 1 << 20;
/// The end of a candidate that is kept, in bytes: more than the text that ends it.
const KEPT: usize = 64;
/// The maximum number of blanks before a call. More of them begin a code block in Markdown.
const BLANKS: usize = 3;
/// The maximum length of a tag and the blanks after it, in bytes.
const LONGEST_BEGINNING: usize = 4096;
/// The length of the text after a tag in which the name of a tool is looked for, in bytes.
const LONGEST_HEAD: usize = 256;
/// The maximum number of names that are kept of a candidate.
const MOST_NAMES: usize = 16;
/// The maximum length of the line that opens a code block, in bytes.
const LONGEST_INFO: usize = 256;

/// The tag of a call behind stripped tokens, and the text that begins a reply without its tokens.
const STRIPPED_TAG: &str = "assistantcommentary to=functions.";
const STRIPPED: &str = "analysis";

/// The longest fences.
const BACKTICKS: &str = "````````````````````````````````";
const TILDES: &str = "~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~~";

/// The info strings of code blocks that may contain a call.
pub(crate) const INFOS: &[&str] = &["", "json", "tool_call", "tool_use", "function_call"];

/// A part of a text.
pub(crate) enum Piece<'t> {
    /// Text outside candidates.
    Text(&'t str),
    /// JSON, and text of a candidate, which cannot become a call of an offered tool.
    Failed(&'t str),
    Candidate(Candidate),
}

/// The text of a call in another format, valid or not.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Candidate {
    /// Its text.
    pub(crate) source: String,
    /// The texts that may name its tool.
    pub(crate) named: Named,
    /// True if it has its own end.
    pub(crate) has_ended: bool,
    /// Whether nothing of it was passed on.
    pub(crate) is_known: bool,
    /// Whether only blanks or other candidates precede it in its line, and it is not in a code block.
    pub(crate) is_apart: bool,
}

/// Finds the candidates in a text that arrives in pieces.
#[derive(Clone, Debug)]
pub(crate) struct Candidates {
    state: State,
    /// The text that is not passed on yet.
    held: String,
    open: Open,
    /// Whether the current line has only blanks and candidates.
    is_apart: bool,
    /// The length of the marks that opened the current code span, and of the marks that are being read.
    span: usize,
    marks: usize,
    /// The fence that opened the current code block.
    block: Option<Fence>,
    edges: Edges,
    /// Whether the text is that of a template without its tokens.
    is_stripped: bool,
}

/// The candidate that is open.
#[allow(
    clippy::struct_excessive_bools,
    reason = "facts about its text, independent of each other"
)]
#[derive(Clone, Debug, Default)]
struct Open {
    end: &'static str,
    fence: Option<Fence>,
    json: JsonScan,
    /// The beginning of the current string of the JSON.
    string: String,
    /// Whether the value of the current member may be the name of a tool.
    is_name: bool,
    /// The name of its tool, if it is known.
    tool: Option<String>,
    /// True if it is known not to be a valid call.
    is_invalid: bool,
    /// Whether its text is passed on.
    is_text: bool,
    /// The end of its text.
    tail: String,
    named: Named,
    is_tagged: bool,
    /// Whether the name of its tool comes before its arguments.
    is_named: bool,
    /// True if it contains whole JSON.
    has_json: bool,
    is_apart: bool,
    /// The length of its text that has been passed on, and the last character of that.
    dropped: usize,
    last: Option<char>,
}

/// A fence: its character and its length.
type Fence = (char, usize);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    /// The beginning of a line, after this many blanks.
    Begin(usize),
    Line,
    /// A line that begins with this many marks of a fence.
    Fence(usize),
    /// The beginning of a code block that may contain a call.
    FenceBody,
    /// The beginning of a tag, or of a list in JSON.
    Tag,
    /// After this tag, perhaps with blanks and line ends between.
    Behind {
        tag: usize,
        is_glued: bool,
    },
    /// The name of the tool in a tag with an end, before anything else of the call.
    Name,
    /// The name of the tool, before its JSON.
    Head,
    /// A list of calls in Python.
    Python(PythonScan),
    Json,
    /// JSON with an error: the number of brackets that are open.
    Brackets(usize),
    /// Up to the end of the candidate.
    ToEnd,
    /// After the marks of the fence that ends the candidate.
    EndMarks(char),
}

impl Default for Candidates {
    fn default() -> Self {
        Self {
            state: State::Begin(0),
            held: String::new(),
            open: Open::default(),
            is_apart: true,
            span: 0,
            marks: 0,
            block: None,
            edges: Edges::default(),
            is_stripped: false,
        }
    }
}

impl Candidates {
    /// Reads the next text.
    pub(crate) fn feed(&mut self, text: &str, out: &mut dyn FnMut(Piece<'_>)) {
        for line in text.split_inclusive('\n') {
            self.feed_line(line, out);
        }
    }

    /// Reads the next text, which has no line end before its last character.
    pub(crate) fn feed_line(&mut self, mut line: &str, out: &mut dyn FnMut(Piece<'_>)) {
        while let Some(c) = line.chars().next() {
            if self.state == State::Line && self.marks == 0 {
                let bytes = line.as_bytes();
                let len = bytes.len() - usize::from(bytes.last() == Some(&b'\n'));
                let stop = if self.is_stripped {
                    let is_stop = |byte: &u8| matches!(byte, b'<' | b'[' | b'`' | b'a');
                    bytes.iter().position(is_stop)
                } else {
                    memchr3(b'<', b'[', b'`', bytes)
                };
                let (plain, rest) = line.split_at(stop.unwrap_or(len));
                if !plain.is_empty() {
                    self.edges.add(plain);
                    self.is_apart &= plain.chars().all(|c| is_blank(c) || c == '\r');
                    out(Piece::Text(plain));
                    line = rest;
                    continue;
                }
            }
            if self.take(c, out) {
                line = line.get(c.len_utf8()..).unwrap_or_default();
            }
        }
    }

    /// Returns whether a text passes in the current line without a change of state.
    pub(crate) fn passes(&self, text: &str) -> bool {
        let text = text.as_bytes();
        self.state == State::Line
            && self.marks == 0
            && !self.is_apart
            && !self.is_stripped
            && memchr(b'\n', text).is_none()
            && memchr3(b'<', b'[', b'`', text).is_none()
    }

    /// Ends the text before something else. Code blocks stay open.
    pub(crate) fn finish(&mut self, out: &mut dyn FnMut(Piece<'_>)) {
        let block = self.block();
        if self.is_open() {
            self.end(matches!(self.state, State::EndMarks(_)), out);
        } else if self.state == State::Json {
            self.fail(out);
        } else {
            self.pass_on(out);
        }
        *self = Self {
            block,
            is_stripped: self.is_stripped,
            ..Self::default()
        };
    }

    /// Returns the fence that is open, also if its block may be a candidate.
    fn block(&self) -> Option<Fence> {
        match self.state {
            State::FenceBody | State::Json | State::Brackets(_) | State::ToEnd => {
                self.open.fence.or(self.block)
            }
            _ => self.block,
        }
    }

    /// Returns whether a candidate has begun and not ended.
    pub(crate) fn is_open(&self) -> bool {
        match self.state {
            State::Json | State::Brackets(_) => {
                self.open.is_tagged || !self.open.named.values.is_empty()
            }
            State::Head | State::Python(_) | State::ToEnd | State::EndMarks(_) => true,
            _ => false,
        }
    }

    /// Returns whether text is held back.
    pub(crate) fn is_holding(&self) -> bool {
        !self.held.is_empty()
    }

    /// Passes on the text that is held back if it cannot become a call: `offers` returns whether a tool has a name.
    pub(crate) fn pass_on_text(
        &mut self,
        offers: impl Fn(&str) -> bool,
        out: &mut dyn FnMut(Piece<'_>),
    ) {
        let open = &self.open;
        let is_offered = open.tool.as_ref().is_none_or(|tool| offers(tool));
        let has_begun = self.is_open() || self.state == State::Json;
        if has_begun && !open.is_text && (open.is_invalid || !open.is_apart || !is_offered) {
            self.open.is_text = true;
            self.drop_text(out);
        }
    }

    /// Returns whether the current position is in code: a span or a block.
    pub(crate) fn is_in_code(&self) -> bool {
        self.span > 0 || self.block().is_some()
    }

    /// Returns whether the current line has only blanks and candidates, and is not in a code block.
    pub(crate) fn is_apart(&self) -> bool {
        self.is_apart && self.block.is_none() && self.held.is_empty()
    }

    /// Ends the text before a call in one of our own syntaxes, and continues after the call.
    pub(crate) fn skip_call(&mut self, out: &mut dyn FnMut(Piece<'_>)) {
        self.finish(out);
        self.state = State::Line;
    }

    /// Passes on the text of the candidate so far.
    fn drop_text(&mut self, out: &mut dyn FnMut(Piece<'_>)) {
        self.open.dropped += self.held.len();
        self.fail(out);
    }

    fn fail(&mut self, out: &mut dyn FnMut(Piece<'_>)) {
        if let Some(last) = self.held.chars().next_back() {
            self.open.last = Some(last);
            out(Piece::Failed(&self.held));
            self.held.clear();
        }
    }

    fn pass_on(&mut self, out: &mut dyn FnMut(Piece<'_>)) {
        if !self.held.is_empty() {
            out(Piece::Text(&self.held));
            self.held.clear();
        }
    }

    /// Passes on text that is not a candidate, in mid-line.
    fn continue_as_text(&mut self, out: &mut dyn FnMut(Piece<'_>)) {
        let last = self.held.chars().next_back().or(self.open.last);
        let is_begin = last == Some('\n');
        self.edges.add(&self.held);
        self.pass_on(out);
        self.is_apart = is_begin;
        self.state = if is_begin {
            State::Begin(0)
        } else {
            State::Line
        };
    }

    /// Ends the candidate.
    fn end(&mut self, has_ended: bool, out: &mut dyn FnMut(Piece<'_>)) {
        let Open {
            named,
            is_apart,
            dropped,
            ..
        } = std::mem::take(&mut self.open);
        out(Piece::Candidate(Candidate {
            source: std::mem::take(&mut self.held),
            named,
            has_ended,
            is_known: dropped == 0,
            is_apart,
        }));
        self.state = State::Line;
    }

    /// Begins a candidate, or a text that may become one.
    fn begin(&mut self, end: &'static str, fence: Option<Fence>, is_tagged: bool) {
        self.open = Open {
            end,
            fence,
            is_tagged,
            is_apart: self.is_apart && self.block.is_none(),
            ..Open::default()
        };
    }

    /// Takes a character. Returns `false` if it has to be taken again, in another state.
    fn take(&mut self, c: char, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        if self.held.len() > LONGEST_BEGINNING && !self.is_open() && self.state != State::Json {
            self.continue_as_text(out);
        }
        match self.state {
            State::Begin(blanks) => return self.take_begin(c, blanks, out),
            State::Line => return self.take_in_line(c, out),
            State::Fence(marks) => return self.take_fence(c, marks, out),
            State::FenceBody => {
                if c.is_whitespace() {
                    self.held.push(c);
                    return true;
                }
                let (is_json, is_tagged) = (matches!(c, '{' | '['), self.open.is_tagged);
                if !is_json && !is_tagged {
                    return self.begin_block(out);
                }
                self.state = if is_json { State::Json } else { State::ToEnd };
                return false;
            }
            State::Tag => return self.take_tag(c, out),
            State::Behind { tag, is_glued } => return self.take_behind(c, tag, is_glued, out),
            State::Name => return self.take_tool_name(c, out),
            State::Python(mut scan) => {
                self.push(c, out);
                let is_end = scan.ends_with(c);
                self.state = State::Python(scan);
                if is_end {
                    self.end(true, out);
                }
            }
            State::Head => {
                if c == '{' {
                    self.open.is_named = true;
                    self.state = State::Json;
                    return false;
                }
                if c == '\n' {
                    self.end(false, out);
                    return false;
                }
                self.push(c, out);
            }
            State::Json => return self.take_json(c, out),
            State::Brackets(depth) => {
                self.push(c, out);
                let depth = match c {
                    '{' | '[' => depth + 1,
                    '}' | ']' => depth.saturating_sub(1),
                    _ => depth,
                };
                self.state = State::Brackets(depth);
                if depth == 0 {
                    self.end_json(false, out);
                }
            }
            State::ToEnd => return self.take_to_end(c, out),
            State::EndMarks(mark) => {
                if c != mark {
                    self.end(true, out);
                    return false;
                }
                self.push(c, out);
            }
        }
        true
    }

    /// Takes a character before the text that ends the candidate.
    fn take_to_end(&mut self, c: char, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        let end = self.open.end;
        let has_json = self.open.has_json;
        if has_json && c == '{' && end.starts_with("</") && self.open.tail.trim().is_empty() {
            self.state = State::Json;
            return false;
        }
        self.push(c, out);
        let tail = &mut self.open.tail;
        tail.push(c);
        let cut = tail.len().saturating_sub(KEPT);
        tail.drain(..ceil_char_boundary(tail, cut));
        let begun = tail.trim_start();
        let begins = |text: &str| {
            text.get(..begun.len())
                .is_some_and(|text| text.eq_ignore_ascii_case(begun))
        };
        self.open.is_invalid |= has_json && !begins(end);
        let last = tail.len().checked_sub(end.len());
        let last = last.and_then(|last| tail.get(last..));
        if last.is_some_and(|last| last.eq_ignore_ascii_case(end)) {
            match self.open.fence {
                Some((mark, _)) => self.state = State::EndMarks(mark),
                None => self.end(true, out),
            }
        } else if !has_json && c == '>' && self.open.tool.is_none() && self.open.is_named {
            let head = self.open.named.head.split('>').next();
            self.open.tool = head.map(|name| name.trim_matches('"').to_owned());
        }
        true
    }

    fn take_begin(&mut self, c: char, blanks: usize, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        self.span = 0;
        self.is_apart = blanks <= BLANKS;
        self.edges = Edges::new(!self.is_apart);
        match c {
            ' ' | '\t' | '\r' | '\n' => {
                out(Piece::Text(c.encode_utf8(&mut [0; 4])));
                let blanks = match c {
                    ' ' => blanks.saturating_add(1),
                    '\t' => blanks.saturating_add(BLANKS + 1),
                    '\r' => blanks,
                    _ => 0,
                };
                self.is_apart = blanks <= BLANKS;
                self.state = State::Begin(blanks);
                return true;
            }
            '`' | '~' if blanks <= BLANKS => {
                self.held.push(c);
                self.state = State::Fence(1);
                return true;
            }
            '{' => {
                self.begin("", None, false);
                self.state = State::Json;
            }
            // The first letters of tags that are words.
            'a' | 'A' | 'c' | 'f' if self.is_apart && self.block.is_none() => {
                self.held.push(c);
                self.state = State::Tag;
                return true;
            }
            '[' => {
                self.held.push(c);
                self.begin("", None, false);
                self.state = State::Tag;
                return true;
            }
            _ => self.state = State::Line,
        }
        false
    }

    fn take_in_line(&mut self, c: char, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        let is_mark = c == '`' && self.block.is_none();
        if self.marks > 0 && !is_mark {
            self.span = match self.span {
                0 => self.marks,
                span if span == self.marks => 0,
                span => span,
            };
            self.marks = 0;
        }
        let is_tag = matches!(c, '<' | '[') || (c == 'a' && self.is_stripped);
        if is_tag && self.span == 0 {
            self.held.push(c);
            self.state = State::Tag;
            return true;
        }
        self.marks += usize::from(is_mark);
        self.is_apart &= is_blank(c);
        self.edges.add(c.encode_utf8(&mut [0; 4]));
        if c == '\n' {
            self.state = State::Begin(0);
            self.is_apart = true;
        }
        out(Piece::Text(c.encode_utf8(&mut [0; 4])));
        true
    }

    /// Takes a character of a line that begins with marks of a fence.
    fn take_fence(&mut self, c: char, marks: usize, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        let mark = self.held.chars().next().unwrap_or(c);
        if c != '\n' {
            let is_info = marks < self.held.len();
            if (c == mark && !is_info) || (marks >= 3 && self.held.len() < LONGEST_INFO) {
                let is_code_span = c == '`' && mark == '`' && is_info;
                if !is_code_span {
                    self.held.push(c);
                    let more = usize::from(c == mark && !is_info);
                    self.state = State::Fence(marks + more);
                    return true;
                }
            }
            if mark == '`' && !is_info && self.block.is_none() {
                self.marks = marks;
            }
            self.continue_as_text(out);
            return false;
        }
        let info = self.held.get(marks..).unwrap_or_default().trim();
        let is_tag = |tag: &str| tag.strip_prefix("```").is_some_and(|known| known == info);
        let is_tagged = CALL_TAGS.iter().any(|(tag, _)| is_tag(tag));
        match self.block {
            _ if marks < 3 => {}
            Some((opened_by, length)) => {
                if mark == opened_by && marks >= length && info.is_empty() {
                    self.block = None;
                }
            }
            None if is_tagged || INFOS.contains(&info) => {
                let marks_of = if mark == '`' { BACKTICKS } else { TILDES };
                let end = marks_of.get(..marks).unwrap_or(marks_of);
                self.begin(end, Some((mark, marks)), is_tagged);
                self.held.push(c);
                self.state = State::FenceBody;
                return true;
            }
            None => self.block = Some((mark, marks)),
        }
        self.continue_as_text(out);
        false
    }

    /// Passes on the beginning of a code block that contains no call.
    fn begin_block(&mut self, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        self.block = self.open.fence;
        self.continue_as_text(out);
        false
    }

    fn take_json(&mut self, c: char, out: &mut dyn FnMut(Piece<'_>)) -> bool {
        let depth = self.open.json.depth();
        let was_in_string = self.open.json.is_in_string();
        let scanned = self.open.json.take(c);
        if self.open.json.is_in_string() {
            if !was_in_string {
                self.open.string.clear();
            } else if self.open.string.len() < LONGEST_HEAD {
                self.open.string.push(c);
            }
        }
        let is_in_call = self.open.json.is_in_call();
        if scanned == Scanned::Invalid && !self.is_open() {
            self.fail(out);
            if self.open.fence.is_some() {
                return self.begin_block(out);
            }
            self.continue_as_text(out);
            return false;
        }
        let open = &mut self.open;
        match scanned {
            // A list in Python.
            Scanned::Invalid if c == '(' && depth == 1 && !open.end.is_empty() => {
                let name = self.held.rsplit('[').next().unwrap_or_default();
                open.named.head = name.to_owned();
                open.json = JsonScan::default();
                self.state = State::ToEnd;
                return false;
            }
            Scanned::Invalid => {
                open.is_invalid = true;
                self.state = State::Brackets(depth);
                return false;
            }
            Scanned::Key => {
                open.is_name = CALL_NAME_KEYS.contains(&&*open.string);
                open.is_invalid |=
                    is_in_call && !open.is_named && Member::of(&open.string).is_none();
            }
            Scanned::String if open.is_name => {
                if open.named.values.len() < MOST_NAMES {
                    open.named.values.push(open.string.clone());
                }
                if is_in_call && !open.is_named {
                    open.tool = Some(open.string.clone());
                }
                open.is_name = false;
            }
            Scanned::String | Scanned::Complete | Scanned::More => {}
        }
        self.push(c, out);
        if scanned == Scanned::Complete {
            self.open.json = JsonScan::default();
            self.open.has_json = true;
            self.open.tail.clear();
            self.end_json(true, out);
        }
        true
    }

    /// Continues after JSON: at the end of the candidate, or before the text that ends it.
    fn end_json(&mut self, has_ended: bool, out: &mut dyn FnMut(Piece<'_>)) {
        if !self.is_open() {
            self.fail(out);
            self.block = self.open.fence.or(self.block);
            self.continue_as_text(out);
        } else if self.open.end.is_empty() {
            self.end(has_ended, out);
        } else {
            self.state = State::ToEnd;
        }
    }

    /// Adds a character to the candidate.
    fn push(&mut self, c: char, out: &mut dyn FnMut(Piece<'_>)) {
        self.held.push(c);
        let is_head = matches!(self.state, State::Head | State::ToEnd);
        let named = &mut self.open.named;
        if is_head && named.values.is_empty() && named.head.len() < LONGEST_HEAD {
            named.head.push(c);
        }
        if self.open.is_text || self.held.len() > LONGEST {
            self.open.is_text = true;
            self.drop_text(out);
        }
    }
}
