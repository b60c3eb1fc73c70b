//! Matches a text against the steps of a format, character by character.

use plaincall_syntax::Span;

use crate::may_run::Bound;
use crate::reply_reader::{ReplyItem, ReplyReader};
use crate::rescue::RescuedCall;
use crate::rescue::calls::Part;
use crate::rescue::formats::{ANY, INFOS, Step};
use crate::rescue::json_scan::{JsonScan, Scanned};
use crate::stop::Stop;
use crate::tool::lookup::ToolLookup;

/// The state of a match.
#[derive(Debug)]
pub(super) struct Matcher<T> {
    /// A call in one of our own syntaxes, until it has ended.
    own: Option<Box<ReplyReader<T>>>,
    /// The call that was in one of our own syntaxes.
    pub(super) own_call: Option<RescuedCall>,
    /// The next steps, last first.
    todo: Vec<Step>,
    pub(super) parts: Vec<Part>,
    /// The matched part of a fixed text.
    matched: usize,
    /// Where the current part begins.
    begin: Option<usize>,
    json: Option<JsonScan>,
    /// The characters of the fence of a code block.
    pub(super) fence: Option<Fence>,
    /// Where the calls may end.
    pub(super) end: Option<usize>,
}

/// The fence of a code block: so many of this character.
#[derive(Clone, Copy, Debug)]
pub(super) struct Fence {
    pub(super) mark: char,
    pub(super) length: usize,
}

/// The meaning of a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Matched {
    More,
    /// The format continues, but has no call of an offered tool.
    NoCall,
    /// The text does not have this format.
    Never,
}

impl<T: ToolLookup> Matcher<T> {
    pub(super) fn new(steps: &[Step], fence: Option<char>) -> Self {
        Self {
            own: None,
            own_call: None,
            todo: steps.iter().rev().copied().collect(),
            parts: Vec::new(),
            matched: 0,
            begin: None,
            json: None,
            fence: fence.map(|mark| Fence { mark, length: 3 }),
            end: None,
        }
    }

    /// Creates a matcher for a call in one of our own syntaxes, and these steps.
    pub(super) fn own(reader: ReplyReader<T>, steps: &[Step]) -> Self {
        Self {
            own: Some(Box::new(reader)),
            ..Self::new(steps, None)
        }
    }

    /// Returns whether the text is complete.
    pub(super) fn is_complete(&self) -> bool {
        self.own.is_none() && self.todo.is_empty()
    }

    /// Takes the character at the end of the text, which begins at this offset of the whole.
    pub(super) fn take(&mut self, c: char, text: &str, offset: usize, tools: &T) -> Matched {
        if self.own.is_some() {
            return self.take_own(c, text, offset, tools);
        }
        let at = offset + text.len() - c.len_utf8();
        let from = |begin: usize| text.get(begin.checked_sub(offset)?..);
        let offers = |name: &str| tools.find(name).is_some();
        let mut matched = Matched::More;
        while let Some(step) = self.todo.last().copied() {
            match step {
                Step::Text(expected) => {
                    let rest = expected.get(self.matched..).unwrap_or_default();
                    if !rest.starts_with(c) {
                        return Matched::Never;
                    }
                    self.matched += c.len_utf8();
                    if self.matched == expected.len() {
                        self.matched = 0;
                        self.todo.pop();
                    }
                    return matched;
                }
                Step::Space if c.is_ascii_whitespace() => return matched,
                Step::Blank if matches!(c, ' ' | '\t') => return matched,
                Step::Space | Step::Blank => {
                    self.todo.pop();
                }
                Step::If(expected, steps) => {
                    self.todo.pop();
                    if expected == c {
                        self.todo.extend(steps.iter().rev());
                    }
                }
                Step::One(cases) => {
                    let case = cases
                        .iter()
                        .find(|(expected, _)| [c, ANY].contains(expected));
                    let Some((_, steps)) = case else {
                        return Matched::Never;
                    };
                    self.todo.pop();
                    self.todo.extend(steps.iter().rev());
                }
                Step::Name if is_in_name(c) => {
                    self.begin.get_or_insert(at);
                    return matched;
                }
                Step::Name => {
                    let Some(begin) = self.begin.take() else {
                        return Matched::Never;
                    };
                    self.todo.pop();
                    let name = from(begin).and_then(|name| name.strip_suffix(c));
                    if !name.is_some_and(offers) {
                        matched = Matched::NoCall;
                    }
                    self.parts.push(Part::Name(begin..at));
                }
                Step::Key => {
                    let begin = *self.begin.get_or_insert(at);
                    match c {
                        '>' => self.end_part(Part::Key(begin..at)),
                        '\n' | '<' => return Matched::Never,
                        _ => {}
                    }
                    return matched;
                }
                Step::Value(close) => {
                    let begin = *self.begin.get_or_insert(at);
                    let end = (at + c.len_utf8()).saturating_sub(close.len());
                    if end >= begin && text.ends_with(close) {
                        self.end_part(Part::Value(begin..end));
                    }
                    return matched;
                }
                Step::Calls | Step::Arguments => {
                    let has_calls = matches!(step, Step::Calls);
                    let result = self.json(c, at, has_calls, from, offers);
                    return if result == Matched::More {
                        matched
                    } else {
                        result
                    };
                }
                Step::FenceInfo => return self.fence_info(c, at, from),
                Step::FenceClose => return self.fence_close(c, at),
                Step::End => match c {
                    ' ' | '\t' | '\r' => return matched,
                    '\n' => {
                        self.end = Some(at + 1);
                        self.todo.pop();
                        return matched;
                    }
                    _ => return Matched::Never,
                },
            }
        }
        Matched::Never
    }

    /// Takes a character of JSON.
    fn json<'t>(
        &mut self,
        c: char,
        at: usize,
        has_calls: bool,
        from: impl Fn(usize) -> Option<&'t str>,
        offers: impl Fn(&str) -> bool,
    ) -> Matched {
        if self.json.is_none() && !matches!(c, '{' | '[') {
            return Matched::Never;
        }
        let begin = *self.begin.get_or_insert(at);
        let json = self.json.get_or_insert_with(|| JsonScan::new(has_calls));
        let string = |begin| from(begin).and_then(|text| text.strip_suffix(c));
        match json.take(c, at, |begin| string(begin).unwrap_or_default(), offers) {
            Scanned::More => return Matched::More,
            Scanned::NoCall => return Matched::NoCall,
            Scanned::Invalid => return Matched::Never,
            Scanned::Complete => {}
        }
        self.json = None;
        let range = begin..at + 1;
        self.end_part(if has_calls {
            Part::Calls(range)
        } else {
            Part::Arguments(range)
        });
        Matched::More
    }

    fn end_part(&mut self, part: Part) {
        self.parts.push(part);
        self.begin = None;
        self.todo.pop();
    }

    fn fence_info<'t>(
        &mut self,
        c: char,
        at: usize,
        from: impl Fn(usize) -> Option<&'t str>,
    ) -> Matched {
        let Some(fence) = &mut self.fence else {
            return Matched::Never;
        };
        if self.begin.is_none() && c == fence.mark {
            fence.length += 1;
            return Matched::More;
        }
        let begin = *self.begin.get_or_insert(at);
        // Code in a line may be between such marks too.
        if c == fence.mark {
            self.fence = None;
            return Matched::Never;
        }
        if c != '\n' {
            return Matched::More;
        }
        let info = from(begin).unwrap_or_default().trim();
        if !INFOS.contains(&info) {
            return Matched::Never;
        }
        self.begin = None;
        self.todo.pop();
        Matched::More
    }

    fn fence_close(&mut self, c: char, at: usize) -> Matched {
        let Some(Fence { mark, length }) = self.fence else {
            return Matched::Never;
        };
        // `matched` counts the marks, after a line end.
        match (self.begin, c) {
            (_, '\n') if self.matched == 0 => self.begin = Some(at),
            (_, ' ' | '\t' | '\r') if self.matched == 0 => {}
            (Some(_), _) if c == mark => self.matched += 1,
            _ => {
                let is_closed = self.matched >= length;
                (self.matched, self.begin) = (0, None);
                self.todo.pop();
                if !is_closed {
                    return Matched::Never;
                }
                if c == '\n' {
                    self.end = Some(at + 1);
                    self.todo.pop();
                } else if !matches!(c, ' ' | '\t' | '\r') {
                    return Matched::Never;
                }
            }
        }
        Matched::More
    }

    fn take_own(&mut self, c: char, text: &str, offset: usize, tools: &T) -> Matched {
        let mut buffer = [0; 4];
        let reader = self.own.as_mut();
        let items = reader.map(|reader| {
            let items = reader.feed(c.encode_utf8(&mut buffer));
            items.map(ReplyItem::into_owned).collect::<Vec<_>>()
        });
        self.own_items(items.unwrap_or_default(), text, offset, tools)
    }

    /// Ends the text after a virtual line end.
    pub(super) fn finish(&mut self, text: &str, offset: usize, tools: &T) {
        if let Some(mut reader) = self.own.take() {
            let items = reader.finish(Stop::Broken).items;
            self.own = Some(reader);
            self.own_items(items, text, offset, tools);
        }
    }

    fn own_items(
        &mut self,
        items: Vec<ReplyItem<'static>>,
        text: &str,
        offset: usize,
        tools: &T,
    ) -> Matched {
        let mut matched = Matched::More;
        for item in items {
            match item {
                ReplyItem::CallStart(header) if tools.find(&header.name).is_none() => {
                    matched = Matched::NoCall;
                }
                ReplyItem::Text(text) if !text.trim().is_empty() => return Matched::Never,
                ReplyItem::Call { call, bound } => {
                    if !call.is_closed() {
                        return Matched::Never;
                    }
                    let Span { end, .. } = call.span;
                    self.own = None;
                    match bound {
                        Ok(Bound { arguments, .. }) => {
                            self.own_call = Some(RescuedCall {
                                name: call.name.clone(),
                                arguments,
                            });
                        }
                        Err(_) => matched = Matched::NoCall,
                    }
                    // The parser may have waited for the next characters.
                    let rest = end.checked_sub(offset).and_then(|end| text.get(end..));
                    let Some(rest) = rest else {
                        return Matched::NoCall;
                    };
                    let mut to = text.len() - rest.len();
                    for c in rest.chars() {
                        to += c.len_utf8();
                        let text = text.get(..to).unwrap_or_default();
                        if self.take(c, text, offset, tools) == Matched::Never {
                            return Matched::Never;
                        }
                    }
                    return matched;
                }
                _ => {}
            }
        }
        matched
    }
}

fn is_in_name(c: char) -> bool {
    !c.is_whitespace() && !c.is_control() && !"\"'`<>{}[](),".contains(c)
}
