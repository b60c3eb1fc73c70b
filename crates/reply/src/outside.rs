//! The text outside calls, and its consequences for the calls after it (`spec/common.md` 10.1).

use std::mem;
use std::sync::Arc;

use memchr::memchr;
use plaincall_syntax::{
    Code, Dialect, DialectError, Event, EventKind, MARKER_LIMIT, MarkerUse, NearMisses, Syntax,
    is_invisible,
};
use serde_json::Value;

use crate::candidates::named::Named;
use crate::candidates::{Candidates, Piece};
use plaincall_names::shortened;

/// The part of a line in which a near miss of a start marker is looked for, in bytes.
const LONGEST_LINE: usize = 512;
/// The maximum length of the text that is shown, in bytes.
const LONGEST_SHOWN: usize = 80;
/// The maximum length of what is remembered of the calls in other formats between two calls, in bytes.
const LONGEST_OTHERS: usize = 128 << 10;

/// Texts that open reasoning, and the texts that close it, in lower case. The first is the default.
const OPENINGS: [[&str; 2]; 4] = [
    ["<think>", "</think>"],
    ["<thinking>", "</thinking>"],
    ["<reasoning>", "</reasoning>"],
    ["[think]", "[/think]"],
];

/// The text before a call in its reply.
#[derive(Clone, Debug, Default)]
pub(crate) struct Before {
    /// A beginning of a call that is not one, for any tools.
    pub(crate) broken: Option<String>,
    /// The calls in other formats since the previous call, which are broken beginnings if they name an offered tool: what is
    /// shown of each, and the texts that may name its tool.
    pub(crate) others: Vec<(String, Named)>,
    /// The text that opened reasoning which the dialect does not know, if nothing has closed it.
    pub(crate) opening: Option<&'static str>,
}

impl Before {
    /// Returns the beginnings of calls as JSON, if there are any. An unknown opening rejects the call for any tools.
    pub(crate) fn to_json(&self) -> Option<String> {
        let is_some = self.broken.is_some() || !self.others.is_empty();
        is_some.then(|| serde_json::to_string(&(&self.broken, &self.others)).ok())?
    }

    pub(crate) fn of_json(json: &str) -> Option<Self> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let json: Value = serde_json::from_str(json).ok()?;
        let other = |other: &Value| {
            let (shown, named) = (text(other.get(0)?)?, other.get(1)?);
            let values = named.get("values")?.as_array()?.iter();
            let values = values.filter_map(text).collect();
            let head = text(named.get("head")?)?;
            Some((shown, Named { values, head }))
        };
        Some(Self {
            broken: text(json.get(0)?),
            others: json
                .get(1)?
                .as_array()?
                .iter()
                .map(other)
                .collect::<Option<_>>()?,
            opening: None,
        })
    }
}

/// Reads the text outside calls.
#[derive(Clone, Debug)]
pub(crate) struct Outside {
    markers: Arc<Starts>,
    /// The beginning of the current line, until it is known whether it looks like a start marker.
    line: Option<String>,
    /// The number of bytes in the current line that are not blanks; not all of them if it is longer than a marker.
    filled: usize,
    candidates: Candidates,
    /// The text before the next call; shared with calls that have the same before them.
    before: Arc<Before>,
    /// The length of its calls in other formats, in bytes.
    others_len: usize,
    opening: Opening,
    /// Whether a close marker of reasoning is the last text of the current line so far.
    may_close: bool,
}

#[derive(Clone, Debug)]
enum Opening {
    /// The first text of the reply.
    Undecided(String),
    /// Inside reasoning, with the end of its text.
    Inside {
        close: &'static str,
        end: String,
    },
    Over,
}

/// The beginning of a call, or of text that looks like one.
#[derive(Debug)]
struct Starts {
    near: NearMisses,
    own: Vec<String>,
    /// The start markers of the syntax that the dialect does not have.
    other: Vec<String>,
    /// Whether the dialect has markers of reasoning.
    has_reasoning: bool,
}

impl Outside {
    pub(crate) fn new(dialect: &Dialect) -> Result<Self, DialectError> {
        let starts = |dialect: &Dialect| -> Result<Vec<String>, DialectError> {
            let markers = dialect.markers()?.into_iter();
            let starts = markers.filter(|marker| matches!(marker.usage, MarkerUse::Start(_)));
            Ok(starts.map(|marker| marker.text).collect())
        };
        let other = match dialect.syntax() {
            None => Vec::new(),
            Some(Syntax::Block) => starts(&Dialect::emoji())?,
            Some(Syntax::Emoji) => starts(&Dialect::block())?,
        };
        let markers = Starts {
            near: NearMisses::new(&dialect.without_reasoning())?,
            own: starts(dialect)?,
            other,
            has_reasoning: dialect.reasoning_markers().is_some(),
        };
        Ok(Self {
            markers: Arc::new(markers),
            line: Some(String::new()),
            filled: 0,
            candidates: Candidates::default(),
            before: Arc::default(),
            others_len: 0,
            opening: Opening::Undecided(String::new()),
            may_close: false,
        })
    }

    /// Begins the next reply.
    pub(crate) fn begin_reply(&mut self) {
        self.line = Some(String::new());
        self.filled = 0;
        self.candidates = Candidates::default();
        self.before = Arc::default();
        self.others_len = 0;
        self.opening = Opening::Undecided(String::new());
        self.may_close = false;
    }

    /// Reads an event outside calls. Returns whether it shows that the text before it may be reasoning: a close marker without
    /// an open marker, outside code, at the beginning or the end of a line.
    pub(crate) fn push(&mut self, event: &Event<'_>) -> bool {
        match &event.kind {
            EventKind::Text(_) => self.text(event.source()),
            // The backslash of an escape.
            EventKind::Ignored(piece) if piece.contains('\\') => self.text(event.source()),
            EventKind::Ignored(_) | EventKind::Reasoning(_) => {
                self.end_line();
                self.line = None;
                if matches!(self.opening, Opening::Undecided(_)) {
                    self.opening = Opening::Over;
                }
                false
            }
            EventKind::Diagnostic(found) if found.code == Code::StrayReasoningClose => {
                if self.candidates.is_in_code() {
                    return false;
                }
                let is_first = self.filled <= found.span.len();
                self.may_close = !is_first;
                is_first
            }
            _ => false,
        }
    }

    /// Begins a call. Returns what comes before it.
    pub(crate) fn call(&mut self) -> Arc<Before> {
        self.end_line();
        self.line = None;
        self.filled += 1;
        self.may_close = false;
        if let Opening::Undecided(_) = self.opening {
            self.opening = Opening::Over;
        }
        if self.candidates.is_open() {
            self.add_broken("a call in another format");
        }
        self.candidates.skip_call(&mut |_| {});
        self.others_len = 0;
        let before = Arc::clone(&self.before);
        if !before.others.is_empty() {
            self.before = Arc::new(Before {
                broken: before.broken.clone(),
                others: Vec::new(),
                opening: before.opening,
            });
        }
        before
    }

    /// Returns whether the text has a broken beginning of a call, for any tools.
    pub(crate) fn is_broken(&self) -> bool {
        self.before.broken.is_some()
    }

    /// Ends the reply. Returns the same as [`push`](Self::push).
    pub(crate) fn finish(&mut self) -> bool {
        mem::take(&mut self.may_close)
    }

    fn text(&mut self, text: &str) -> bool {
        if self.is_in_line() && self.candidates.passes(text) {
            return false;
        }
        self.search_opening(text);
        let mut is_closed = false;
        let mut rest = text;
        while !rest.is_empty() {
            let end = memchr(b'\n', rest.as_bytes());
            let len = end.map_or(rest.len(), |end| end + 1);
            let (piece, behind) = rest.split_at(len);
            rest = behind;
            self.search_candidates(piece);
            let line = piece.get(..end.unwrap_or(len)).unwrap_or_default();
            self.add_to_line(line);
            if self.filled <= MARKER_LIMIT || self.may_close {
                let filled = line.bytes().filter(|byte| !b" \t\r".contains(byte));
                // It is compared with the length of a marker.
                let filled = filled.take(MARKER_LIMIT + 1).count();
                self.filled += filled;
                self.may_close &= filled == 0;
            }
            if end.is_some() {
                is_closed |= mem::take(&mut self.may_close);
                self.end_line();
                self.line = Some(String::new());
                self.filled = 0;
            }
        }
        is_closed
    }

    /// Returns whether the rest of the current line does not matter, except for calls in other formats.
    const fn is_in_line(&self) -> bool {
        let is_decided = self.line.is_none() && matches!(self.opening, Opening::Over);
        is_decided && self.filled > MARKER_LIMIT && !self.may_close
    }

    /// Looks for calls in other formats in a line or a part of it.
    fn search_candidates(&mut self, line: &str) {
        let (before, len) = (&mut self.before, &mut self.others_len);
        self.candidates.feed_line(line, &mut |piece| {
            // After a broken beginning, no other one matters.
            let (Piece::Candidate(found), None) = (piece, &before.broken) else {
                return;
            };
            let shown = shown(&found.source);
            *len += shown.len() + found.named.len();
            let before = Arc::make_mut(before);
            if *len <= LONGEST_OTHERS {
                before.others.push((shown, found.named));
            } else {
                before.broken = Some(shown);
            }
        });
    }

    fn add_to_line(&mut self, text: &str) {
        let Some(line) = &mut self.line else {
            return;
        };
        let first = text.bytes().next().filter(|_| line.is_empty());
        if first.is_some_and(|first| !self.markers.may_begin(first)) {
            self.line = None;
            return;
        }
        line.push_str(text);
        if line.len() > LONGEST_LINE {
            self.end_line();
            self.line = None;
        }
    }

    /// Decides whether the current line begins like a call.
    fn end_line(&mut self) {
        let line = self.line.take().filter(|line| !line.is_empty());
        if let Some(line) = line.filter(|line| self.markers.is_start(line)) {
            self.add_broken(&line);
        }
    }

    fn add_broken(&mut self, found: &str) {
        if self.before.broken.is_none() {
            Arc::make_mut(&mut self.before).broken = Some(shown(found));
        }
    }

    fn search_opening(&mut self, text: &str) {
        match &mut self.opening {
            Opening::Over => {}
            Opening::Inside { close, end } => {
                end.push_str(&text.to_ascii_lowercase());
                if end.contains(*close) {
                    self.opening = Opening::Over;
                    Arc::make_mut(&mut self.before).opening = None;
                } else {
                    let cut = end.len().saturating_sub(close.len());
                    end.drain(..plaincall_syntax::ceil_char_boundary(end, cut));
                }
            }
            Opening::Undecided(begun) => {
                begun.push_str(&text.to_ascii_lowercase());
                let first =
                    begun.trim_start_matches(|c: char| c.is_whitespace() || is_invisible(c));
                // Without reasoning, `<think>` is text.
                let skipped = usize::from(!self.markers.has_reasoning);
                let mut openings = OPENINGS.iter().skip(skipped);
                if let Some([open, close]) =
                    openings.clone().find(|[open, _]| first.starts_with(open))
                {
                    let rest = first.get(open.len()..).unwrap_or_default().to_owned();
                    self.opening = Opening::Inside {
                        close,
                        end: String::new(),
                    };
                    Arc::make_mut(&mut self.before).opening = Some(open);
                    self.search_opening(&rest);
                } else if openings.any(|[open, _]| open.starts_with(first)) {
                    *begun = first.to_owned();
                } else {
                    self.opening = Opening::Over;
                }
            }
        }
    }
}

impl Starts {
    fn may_begin(&self, byte: u8) -> bool {
        let mut other = self.other.iter().filter_map(|start| start.bytes().next());
        self.near.may_begin_line(byte) || other.any(|first| first == byte)
    }

    /// Returns whether a line begins with a start marker that opens no call, or with something that looks like one.
    fn is_start(&self, line: &str) -> bool {
        let is_other = |start: &String| {
            let header = line.strip_prefix(start.as_str());
            header.is_some_and(|header| {
                let name = header.trim_start_matches(plaincall_syntax::is_blank);
                name.starts_with(|c: char| c.is_alphanumeric() || c == '_')
            })
        };
        let is_near = || {
            let mut near = self.near.find_in_first_column(line);
            near.any(|near| near.span.start == 0 && matches!(near.usage, MarkerUse::Start(_)))
        };
        self.own
            .iter()
            .any(|start| line.starts_with(start.as_str()))
            || self.other.iter().any(is_other)
            || is_near()
    }
}

/// Returns the beginning of a text, as it is shown.
fn shown(text: &str) -> String {
    let line = text.trim_start().lines().next().unwrap_or_default();
    shortened(line.trim_end(), LONGEST_SHOWN).into_owned()
}
