//! A whole text, matched with the steps of a format character by character.

use std::ops::Range;

use crate::bind::ReplySteps;
use crate::candidates::INFOS;
use crate::candidates::json_scan::{JsonScan, Scanned};
use crate::rescue::RescuedCall;
use crate::rescue::calls::calls;
use crate::rescue::fence::Fence;
use crate::rescue::formats::{ANY, BARE, BLANKS, FORMATS, Step};
use crate::tool::lookup::ToolLookup;

/// Returns the calls that a text consists of, if all of them are valid.
pub(super) fn calls_in(
    text: &str,
    tools: &impl ToolLookup,
    left: &mut ReplySteps,
) -> Option<Vec<RescuedCall>> {
    let mut formats = FORMATS.iter().copied();
    let (begin, steps) = formats
        .find(|(begin, _)| text.starts_with(begin))
        .unwrap_or(("", BARE));
    let mut matcher = Matcher {
        text,
        fence: Fence::opened_by(begin),
        ends: false,
        todo: steps.iter().rev().copied().collect(),
        begin: None,
        parts: Vec::new(),
        json: JsonScan::default(),
    };
    let rest = text.get(begin.len()..)?.char_indices();
    let mut rest = rest.map(|(at, c)| (begin.len() + at, c));
    let is_whole = rest.all(|(at, c)| matcher.step(c, at)) && matcher.step('\n', text.len());
    (is_whole && matcher.ends).then(|| calls(text, &matcher.parts, tools, left))?
}

#[derive(Debug)]
struct Matcher<'t> {
    text: &'t str,
    /// Whether the calls may end here.
    ends: bool,
    /// The fence, if it is a code block.
    fence: Option<Fence>,
    /// The next steps, last first.
    todo: Vec<Step>,
    /// Where the current part begins.
    begin: Option<usize>,
    /// The parts of the calls: the step of each, and its place in the text.
    parts: Vec<(Step, Range<usize>)>,
    json: JsonScan,
}

impl Matcher<'_> {
    /// Takes the character at this place. Returns whether the text still has the format.
    fn step(&mut self, c: char, at: usize) -> bool {
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
                Step::Name if self.begin.is_none() => return false,
                Step::Name | Step::Key => self.end_part(at),
                Step::Value(close) => {
                    let begin = *self.begin.get_or_insert(at);
                    let end = at + c.len_utf8();
                    let value = self.text.get(begin..end).unwrap_or_default();
                    if value.ends_with(close) {
                        self.end_part(end - close.len());
                    }
                    return true;
                }
                Step::Calls | Step::Arguments => return self.json(c, at),
                Step::FenceInfo => return self.fence_info(c, at),
                Step::FenceClose => {
                    let is_closed = self.fence.as_mut().and_then(|fence| fence.take(c));
                    return is_closed.is_some_and(|is_closed| !is_closed || self.end_line());
                }
                Step::End => return BLANKS.contains(&c) || (c == '\n' && self.end_line()),
            }
        }
        false
    }

    /// Ends the current step with a line end. The calls may end here.
    fn end_line(&mut self) -> bool {
        self.todo.pop();
        self.ends = true;
        true
    }

    /// Ends the current step and its part, which may be empty.
    fn end_part(&mut self, end: usize) {
        let begin = self.begin.take().unwrap_or(end);
        let step = self.todo.pop();
        self.parts.extend(step.map(|step| (step, begin..end)));
    }

    fn json(&mut self, c: char, at: usize) -> bool {
        if self.begin.is_none() && !matches!(c, '{' | '[') {
            return false;
        }
        self.begin.get_or_insert(at);
        match self.json.take(c) {
            Scanned::Invalid => return false,
            Scanned::Complete => {
                self.json = JsonScan::default();
                self.end_part(at + 1);
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
                let begin = self.begin.take().unwrap_or(at);
                let info = self.text.get(begin..at).unwrap_or_default();
                self.todo.pop();
                fence.take(c);
                return INFOS.contains(&info.trim());
            }
            (c, None) if c == fence.mark => fence.length += 1,
            _ => {
                self.begin.get_or_insert(at);
            }
        }
        true
    }
}
