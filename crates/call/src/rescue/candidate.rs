//! A text that may become calls, matched with the steps of a format character by character.

use std::ops::Range;

use plaincall_syntax::ceil_char_boundary;

use crate::may_run::Bound;
use crate::reply_reader::{ReplyItem, ReplyReader};
use crate::rescue::calls::{Member, calls};
use crate::rescue::fence::Fence;
use crate::rescue::formats::{ANY, BLANKS, INFOS, Step};
use crate::rescue::json_scan::{JsonScan, Scanned};
use crate::rescue::{MAX_HELD, RescuedCall};
use crate::tool::lookup::ToolLookup;

/// The length that is kept of a candidate that is known to be text, in bytes. The texts that end a part are shorter.
const KEPT: usize = 64;

#[derive(Debug)]
pub(super) struct Candidate<T> {
    /// The text so far; only its end, once the candidate is known to be text.
    pub(super) text: String,
    /// The length of the text before it.
    removed: usize,
    /// Set once the candidate is known to be text. The match continues, because what is inside it is text too.
    pub(super) is_text: bool,
    /// Where the calls may end.
    pub(super) end: Option<usize>,
    /// The fence, if it is a code block.
    pub(super) fence: Option<Fence>,
    /// The next steps, last first.
    todo: Vec<Step>,
    /// Where the current part begins.
    begin: Option<usize>,
    /// The parts of the calls: the step of each, and its place in the text.
    parts: Vec<(Step, Range<usize>)>,
    json: JsonScan,
    /// Whether the value of the current member names a tool.
    names_tool: bool,
    /// Reads a call in one of our own syntaxes.
    own: Option<Box<ReplyReader<T>>>,
    own_call: Option<RescuedCall>,
}

impl<T: ToolLookup> Candidate<T> {
    /// Creates a candidate from a text that begins a format, the steps after this text, and the reader for a call in one of our
    /// own syntaxes.
    pub(super) fn new(text: String, steps: &[Step], mut own: Option<ReplyReader<T>>) -> Self {
        if let Some(reader) = &mut own {
            reader.feed(&text).for_each(drop);
        }
        Self {
            fence: Fence::opened_by(&text),
            text,
            removed: 0,
            is_text: false,
            end: None,
            todo: steps.iter().rev().copied().collect(),
            begin: None,
            parts: Vec::new(),
            json: JsonScan::default(),
            names_tool: false,
            own: own.map(Box::new),
            own_call: None,
        }
    }

    /// Returns whether the match has ended.
    pub(super) fn is_over(&self) -> bool {
        self.todo.is_empty() || (self.is_text && self.end.is_some())
    }

    /// Returns the calls, if all of them are valid.
    pub(super) fn calls(&self, tools: &T) -> Option<Vec<RescuedCall>> {
        let own = self.own_call.clone().map(|call| vec![call]);
        own.or_else(|| calls(&self.text, &self.parts, tools))
    }

    /// Takes the next character. Returns whether the text still has the format.
    pub(super) fn take(&mut self, c: char, tools: &T) -> bool {
        let was_text = self.is_text;
        if was_text {
            let cut = ceil_char_boundary(&self.text, self.text.len().saturating_sub(KEPT));
            self.text.drain(..cut);
            self.removed += cut;
        }
        self.text.push(c);
        self.is_text |= self.text.len() > MAX_HELD;
        let matches = self.step(c, self.text.len() - c.len_utf8(), tools);
        self.is_text &= was_text || matches;
        matches
    }

    /// Takes the character at this place.
    fn step(&mut self, c: char, at: usize, tools: &T) -> bool {
        while let Some(step) = self.todo.last().copied() {
            match step {
                Step::Text(text) => {
                    self.todo.pop();
                    let rest = text.strip_prefix(c);
                    let rest = rest.filter(|rest| !rest.is_empty());
                    self.todo.extend(rest.map(Step::Text));
                    return text.starts_with(c);
                }
                Step::Skip(skipped) if skipped.contains(&c) => return true,
                Step::Skip(_) => {
                    self.todo.pop();
                }
                Step::One(cases) => {
                    self.todo.pop();
                    let mut cases = cases.iter();
                    let Some((_, steps)) = cases.find(|(case, _)| [c, ANY].contains(case)) else {
                        return false;
                    };
                    self.todo.extend(steps.iter().rev());
                }
                Step::Name | Step::Key if step.is_in_part(c) => {
                    self.begin.get_or_insert(at);
                    return true;
                }
                Step::Key => self.end_part(at),
                Step::Name => {
                    let Some(begin) = self.begin else {
                        return false;
                    };
                    self.is_text |= !self.offers(begin..at, tools);
                    self.end_part(at);
                }
                Step::Value(close) => {
                    self.begin.get_or_insert(at);
                    if self.text.ends_with(close) {
                        self.end_part(self.text.len() - close.len());
                    }
                    return true;
                }
                Step::Calls | Step::Arguments => return self.json(step, c, at, tools),
                Step::Own => return self.own(c, tools),
                Step::FenceInfo => return self.fence_info(c, at),
                Step::FenceClose => {
                    let is_closed = self.fence.as_mut().and_then(|fence| fence.take(c));
                    return is_closed.is_some_and(|is_closed| !is_closed || self.end_line(at));
                }
                Step::End => return BLANKS.contains(&c) || (c == '\n' && self.end_line(at)),
            }
        }
        false
    }

    /// Ends the current step with the line end at this place. The calls may end here.
    fn end_line(&mut self, at: usize) -> bool {
        self.todo.pop();
        self.end = Some(at + 1);
        true
    }

    /// Ends the current step and its part, which may be empty.
    fn end_part(&mut self, end: usize) {
        let begin = self.begin.take().unwrap_or(end);
        let step = self.todo.pop();
        self.parts.extend(step.map(|step| (step, begin..end)));
    }

    /// Returns whether a tool has the name at this place.
    fn offers(&self, name: Range<usize>, tools: &T) -> bool {
        let name = self.text.get(name);
        name.is_some_and(|name| tools.find(name).is_some())
    }

    fn json(&mut self, step: Step, c: char, at: usize, tools: &T) -> bool {
        if self.begin.is_none() && !matches!(c, '{' | '[') {
            return false;
        }
        self.begin.get_or_insert(at);
        let has_calls = matches!(step, Step::Calls);
        // A list of calls has nothing else.
        self.is_text |= has_calls && self.json.is_before_item() && !"{] \t\r\n".contains(c);
        let is_call = has_calls && self.json.is_in_call();
        match self.json.take(c, at) {
            Scanned::Invalid => return false,
            Scanned::Complete => {
                self.json = JsonScan::default();
                self.end_part(at + 1);
            }
            Scanned::Key(begin) if is_call => {
                let member = self.text.get(begin..at).and_then(Member::of);
                self.is_text |= member.is_none();
                self.names_tool = member == Some(Member::Name);
            }
            Scanned::String(begin) if is_call && self.names_tool => {
                self.is_text |= !self.offers(begin..at, tools);
            }
            _ => {}
        }
        true
    }

    fn fence_info(&mut self, c: char, at: usize) -> bool {
        let Some(fence) = &mut self.fence else {
            return false;
        };
        match (c, self.begin) {
            ('\n', _) => {
                let info = self.begin.take().and_then(|begin| self.text.get(begin..));
                self.todo.pop();
                fence.take(c);
                return INFOS.contains(&info.unwrap_or_default().trim());
            }
            (c, None) if c == fence.mark => fence.length += 1,
            // Code in a line may be between such marks too.
            (c, _) if c == fence.mark => {
                self.fence = None;
                return false;
            }
            _ => {
                self.begin.get_or_insert(at);
            }
        }
        true
    }

    fn own(&mut self, c: char, tools: &T) -> bool {
        let Some(reader) = &mut self.own else {
            return false;
        };
        let mut ended = None;
        for item in reader.feed(c.encode_utf8(&mut [0; 4])) {
            match item {
                ReplyItem::Text(text) if !text.trim().is_empty() => return false,
                ReplyItem::CallStart(header) => self.is_text |= tools.find(&header.name).is_none(),
                ReplyItem::Call { call, .. } if !call.is_closed() => return false,
                ReplyItem::Call { call, bound } => {
                    ended = Some(call.span.end);
                    self.is_text |= bound.is_err();
                    self.own_call = bound.ok().map(|Bound { arguments, .. }| RescuedCall {
                        name: call.name.clone(),
                        arguments,
                    });
                }
                _ => {}
            }
        }
        let Some(end) = ended else {
            return true;
        };
        self.todo.pop();
        // The parser may have waited for the next characters.
        let end = end.saturating_sub(self.removed);
        let rest = self.text.get(end..).unwrap_or_default().to_owned();
        let mut rest = rest.char_indices();
        rest.all(|(at, c)| self.step(c, end + at, tools))
    }
}
