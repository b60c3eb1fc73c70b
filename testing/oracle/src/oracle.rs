//! A naive reader of both syntaxes, written from `spec/` alone: the slow, obvious twin of the parser.
//!
//! It has the whole text before it, looks at every place again whenever it asks something, and never looks at the
//! parser. Where the two disagree, `spec/` decides.

mod block;
mod emoji;
mod escape;
mod options;

use std::ops::Range;

use plaincall_syntax::Syntax;

pub use options::Options;

use crate::merged::{Kind, Merged};

/// Ranges of characters that have no width or only change how others are shown (`spec/common.md` 5.1): those of category Cf, and
/// fillers, variation selectors and unassigned characters of the same kind.
const INVISIBLE: &[(u32, u32)] = &[
    (0xAD, 0xAD),
    (0x34F, 0x34F),
    (0x600, 0x605),
    (0x61C, 0x61C),
    (0x6DD, 0x6DD),
    (0x70F, 0x70F),
    (0x890, 0x891),
    (0x8E2, 0x8E2),
    (0x115F, 0x1160),
    (0x17B4, 0x17B5),
    (0x180B, 0x180F),
    (0x200B, 0x200F),
    (0x202A, 0x202E),
    (0x2060, 0x206F),
    (0x3164, 0x3164),
    (0xFE00, 0xFE0F),
    (0xFEFF, 0xFEFF),
    (0xFFA0, 0xFFA0),
    (0xFFF0, 0xFFFB),
    (0x110BD, 0x110BD),
    (0x110CD, 0x110CD),
    (0x13430, 0x1343F),
    (0x1BCA0, 0x1BCA3),
    (0x1D173, 0x1D17A),
    (0xE0000, 0xE0FFF),
];

fn is_invisible(c: char) -> bool {
    let code = u32::from(c);
    INVISIBLE
        .iter()
        .any(|(first, last)| (*first..=*last).contains(&code))
}

/// The use of a marker (`spec/common.md` 1.3, `spec/emoji.md` 1.2).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Role {
    BlockStart,
    BlockEnd,
    BlockArgument,
    EmojiStart(Family),
    EmojiEnd(Family),
    ReasoningOpen,
    ReasoningClose,
}

/// The two families of emoji signs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Family {
    Tool,
    MisDecoded,
}

impl Role {
    /// The syntax that the marker belongs to; reasoning belongs to none.
    fn syntax(self) -> Option<Syntax> {
        match self {
            Self::BlockStart | Self::BlockEnd | Self::BlockArgument => Some(Syntax::Block),
            Self::EmojiStart(_) | Self::EmojiEnd(_) => Some(Syntax::Emoji),
            Self::ReasoningOpen | Self::ReasoningClose => None,
        }
    }
}

/// A whole marker in the text.
#[derive(Clone, Debug)]
struct Found {
    span: Range<usize>,
    role: Role,
}

/// A reader of texts with one set of options.
#[derive(Clone, Debug)]
pub struct Oracle {
    options: Options,
    markers: Vec<(String, Role)>,
}

impl Oracle {
    /// The options must be ones that the parser accepts.
    pub fn new(options: &Options) -> Self {
        Self {
            options: options.clone(),
            markers: options.markers(),
        }
    }

    /// The merged events of a text.
    pub fn read(&self, text: &str) -> Vec<Merged> {
        let mut reader = Reader::new(text, self);
        reader.outside();
        reader.events
    }
}

/// The merged events of one text.
///
/// The options must be ones that the parser accepts.
pub fn oracle(text: &str, options: &Options) -> Vec<Merged> {
    Oracle::new(options).read(text)
}

/// The text, the markers in force and the events so far.
struct Reader<'t> {
    text: &'t str,
    options: &'t Options,
    markers: Vec<(&'t str, Role)>,
    events: Vec<Merged>,
}

impl<'t> Reader<'t> {
    fn new(text: &'t str, oracle: &'t Oracle) -> Self {
        let markers = oracle.markers.iter();
        Self {
            text,
            options: &oracle.options,
            markers: markers.map(|(marker, role)| (&**marker, *role)).collect(),
            events: Vec::new(),
        }
    }

    /// Text outside calls (`spec/common.md` 4, 5, 8).
    fn outside(&mut self) {
        let mut at = 0;
        // Where the text began that an open marker may lead: the input, or the text after a call or reasoning.
        let mut leading_from = Some(0);
        if self.options.in_reasoning {
            at = self.reasoning(0, 0);
            leading_from = Some(at);
        }
        while let Some(found) = self.next_marker(at, |_| true) {
            let is_leading = leading_from.take().is_some_and(|from| {
                let mut before = self.text[from..found.span.start].chars();
                before.all(|c| " \t\r\n".contains(c) || (from == 0 && is_invisible(c)))
            });
            self.run(Kind::Text, at..found.span.start);
            at = found.span.end;
            let code = match found.role {
                Role::ReasoningOpen if !is_leading && self.options.leading => {
                    "stray_reasoning_open"
                }
                Role::ReasoningOpen => {
                    self.piece(Kind::Ignored, found.span.clone());
                    at = self.reasoning(found.span.start, at);
                    leading_from = Some(at);
                    continue;
                }
                Role::ReasoningClose => "stray_reasoning_close",
                Role::BlockStart => match block::header(self, &found) {
                    Ok(header) => {
                        self.decide(Syntax::Block);
                        at = block::calls(self, &found, &header);
                        leading_from = Some(at);
                        continue;
                    }
                    Err(code) => code,
                },
                Role::EmojiStart(family) => match emoji::header(self, &found) {
                    Ok(header) => {
                        self.decide(Syntax::Emoji);
                        at = emoji::call(self, &found, family, header);
                        leading_from = Some(at);
                        continue;
                    }
                    Err(code) => code,
                },
                Role::BlockEnd | Role::BlockArgument | Role::EmojiEnd(_) => "stray_marker",
            };
            self.piece(Kind::Text, found.span.clone());
            self.report(code, found.span);
        }
        self.run(Kind::Text, at..self.text.len());
    }

    /// Reads reasoning with its open marker at `open` and its text from `from`. Returns where text continues.
    fn reasoning(&mut self, open: usize, from: usize) -> usize {
        let close = self.next_marker(from, |role| role == Role::ReasoningClose);
        let to = close
            .as_ref()
            .map_or(self.text.len(), |close| close.span.start);
        self.piece(Kind::Reasoning, from..to);
        if let Some(close) = close {
            self.piece(Kind::Ignored, close.span.clone());
            return close.span.end;
        }
        self.report("truncated_reasoning", open..to);
        to
    }

    /// Only the markers of this syntax, and those of reasoning, exist from now on.
    fn decide(&mut self, syntax: Syntax) {
        self.markers
            .retain(|(_, role)| role.syntax().is_none_or(|own| own == syntax));
    }

    /// Returns the longest of the wanted markers at this position (`spec/common.md` 1.4).
    fn marker_at(&self, at: usize, wanted: impl Fn(Role) -> bool) -> Option<Found> {
        let candidates = self
            .markers
            .iter()
            .filter(|(marker, role)| wanted(*role) && self.text[at..].starts_with(marker));
        let (marker, role) = candidates.max_by_key(|(marker, _)| marker.len())?;
        Some(Found {
            span: at..at + marker.len(),
            role: *role,
        })
    }

    /// The first whole marker from here on, among the wanted ones.
    fn next_marker(&self, from: usize, wanted: impl Fn(Role) -> bool) -> Option<Found> {
        (from..self.text.len())
            .filter(|at| self.text.is_char_boundary(*at))
            .find_map(|at| self.marker_at(at, &wanted))
    }

    /// A run of content.
    fn run(&mut self, kind: fn(String) -> Kind, span: Range<usize>) {
        if self.options.escaped {
            self.escaped_run(kind, span);
        } else {
            self.piece(kind, span);
        }
    }

    /// Pieces of one kind, and the escape's backslashes (`spec/common.md` 6.1).
    fn escaped_run(&mut self, kind: fn(String) -> Kind, span: Range<usize>) {
        let mut from = span.start;
        for backslash in escape::escaping(&self.text[span.clone()], &self.markers) {
            let at = span.start + backslash;
            self.piece(kind, from..at);
            self.piece(Kind::Ignored, at..at + 1);
            from = at + 1;
        }
        self.piece(kind, from..span.end);
    }

    /// Content as written, joined to the previous event if that is of the same kind.
    fn piece(&mut self, kind: fn(String) -> Kind, mut span: Range<usize>) {
        if span.is_empty() {
            return;
        }
        let alike = std::mem::discriminant(&kind(String::new()));
        if let Some(last) = self
            .events
            .pop_if(|last| std::mem::discriminant(&last.kind) == alike)
        {
            span.start = last.span.start;
        }
        let written = self.text[span.clone()].to_owned();
        self.push(kind(written), span);
    }

    fn report(&mut self, code: &'static str, span: Range<usize>) {
        self.push(Kind::Diagnostic(code), span);
    }

    fn push(&mut self, kind: Kind, span: Range<usize>) {
        self.events.push(Merged { kind, span });
    }
}
