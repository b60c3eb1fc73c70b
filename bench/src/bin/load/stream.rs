//! A stream far longer than memory. The parser's events are compared byte for byte while the stream is generated.

use std::collections::VecDeque;
use std::fmt::Write as _;
use std::ops::Range;

use plaincall_syntax::{Dialect, Event, EventKind, MarkerUse, Parser, Slot, Syntax, Termination};

use crate::memory;
use crate::prose::Writer;

/// The memory limit of the program, in bytes.
const MOST_MEMORY: usize = 8 << 20;

/// The bytes of the stream that are generated at a time.
const ROOM: usize = 64 << 10;

/// The chunk sizes, in bytes. Each part of the stream is split by one of them.
const CHUNKS: [usize; 8] = [4, 64, 64, 64, 1024, 1024, ROOM, ROOM];

/// The length of the texts from which all parts are taken.
const PAGE: usize = 48 << 10;

/// The share of long values, and their length in bytes.
const LONG_EVERY: usize = 16 << 10;
const LONG: usize = 16 << 20;

/// Reads a stream of `mebibytes` in each syntax.
pub(crate) fn play(mebibytes: usize) -> Result<String, String> {
    let mut figure = String::new();
    for syntax in [Syntax::Block, Syntax::Emoji] {
        let (calls, events) = read(syntax, mebibytes << 20)?;
        let _ = write!(
            figure,
            "{}: {calls} calls, {events} events; ",
            syntax.name()
        );
    }
    if let Some(peak) = memory::peak() {
        // Without optimization, most of the time is spent in this program's own code.
        if peak > MOST_MEMORY && !cfg!(debug_assertions) {
            return Err(format!("the program took {} KiB of memory", peak >> 10));
        }
        let _ = write!(figure, "the program took {} KiB in all", peak >> 10);
    }
    Ok(figure)
}

/// A part of a page that is repeated endlessly.
#[derive(Clone, Debug)]
struct Stretch {
    page: usize,
    range: Range<usize>,
}

/// The contents of the stream.
#[derive(Clone, Debug)]
enum Part {
    Text(Stretch),
    /// Returns the call with this number.
    Call(usize),
    Value(Stretch),
}

/// Generates the stream, and keeps the part that has not been read yet.
struct Source {
    syntax: Syntax,
    start: String,
    end: String,
    argument: String,
    /// Prose, values, and a line end.
    pages: [String; 3],
    random: Writer,
    calls: usize,
    /// The pieces to write, in order.
    ahead: VecDeque<Piece>,
    /// The written parts, in order.
    due: VecDeque<Part>,
}

enum Piece {
    Literal(String),
    Stretch(Stretch),
}

impl Source {
    fn new(syntax: Syntax) -> Result<Self, String> {
        let dialect = dialect(syntax);
        let forms = dialect.markers().map_err(|error| error.to_string())?;
        let marker = |usage: MarkerUse| {
            let form = forms.iter().find(|form| form.usage == usage);
            form.map(|form| form.text.clone()).unwrap_or_default()
        };
        let mut writer = match syntax {
            Syntax::Block => Writer::plain(5),
            Syntax::Emoji => Writer::emoji(6),
        };
        let mut pages = [String::new(), String::new(), "\n".to_owned()];
        writer.prose(&mut pages[0], PAGE);
        writer.code(&mut pages[1], PAGE);
        Ok(Self {
            syntax,
            start: marker(MarkerUse::Start(syntax)),
            end: marker(MarkerUse::End(syntax)),
            argument: marker(MarkerUse::Argument),
            pages,
            random: writer,
            calls: 0,
            ahead: VecDeque::new(),
            due: VecDeque::new(),
        })
    }

    /// Returns a part of about `len` bytes that begins anywhere in a page and ends at a character boundary.
    fn stretch(&mut self, page: usize, len: usize) -> Stretch {
        let text = &self.pages[page];
        let edge = |at: usize| at - at % text.len() + text.ceil_char_boundary(at % text.len());
        let from = edge(self.random.below(text.len()));
        let range = from..edge(from + len);
        Stretch { page, range }
    }

    /// Text, a call, text, and so on.
    fn refill(&mut self) {
        let line_end = Stretch {
            page: 2,
            range: 0..1,
        };
        let len = self.random.below(2048);
        let text = self.stretch(0, len);
        let len = match self.calls % LONG_EVERY {
            0 => LONG,
            // Short values are more frequent.
            _ => self.random.below(64) * self.random.below(64),
        };
        let value = self.stretch(1, len);
        for text in [line_end.clone(), text, line_end] {
            self.due.push_back(Part::Text(text.clone()));
            self.ahead.push_back(Piece::Stretch(text));
        }
        let number = self.calls;
        self.calls += 1;
        self.due.push_back(Part::Call(number));
        self.due.push_back(Part::Value(value.clone()));
        let open = match self.syntax {
            Syntax::Block => format!("{}write:{number}\n{}content\n", self.start, self.argument),
            Syntax::Emoji => format!("{}write {number}]\n", self.start),
        };
        self.ahead.push_back(Piece::Literal(open));
        self.ahead.push_back(Piece::Stretch(value));
        let close = match self.syntax {
            Syntax::Block => format!("\n{}", self.end),
            Syntax::Emoji => self.end.clone(),
        };
        self.ahead.push_back(Piece::Literal(close));
    }

    /// Fills `room` up to [`ROOM`] bytes, without new calls once `is_over`.
    fn fill(&mut self, room: &mut Vec<u8>, is_over: bool) {
        while room.len() < ROOM {
            let Some(next) = self.ahead.pop_front() else {
                if is_over {
                    return;
                }
                self.refill();
                continue;
            };
            match next {
                Piece::Literal(text) => room.extend_from_slice(text.as_bytes()),
                Piece::Stretch(mut stretch) => {
                    let page = self.pages[stretch.page].as_bytes();
                    let rest = &page[stretch.range.start % page.len()..];
                    let len = rest.len().min(stretch.range.len()).min(ROOM - room.len());
                    room.extend_from_slice(&rest[..len]);
                    stretch.range.start += len;
                    if !stretch.range.is_empty() {
                        self.ahead.push_front(Piece::Stretch(stretch));
                    }
                }
            }
        }
    }

    /// Compares an event with the generated text.
    fn check(&mut self, event: &Event<'_>) -> Result<(), String> {
        let is_right = match &event.kind {
            EventKind::Text(text) => self.takes(text, false),
            EventKind::ValueDelta(text) => self.takes(text, true),
            EventKind::CallStart(header) => match (self.due.pop_front(), self.syntax) {
                (Some(Part::Call(number)), Syntax::Block) => {
                    header.name() == "write"
                        && header.id().is_some_and(|id| id.parse() == Ok(number))
                }
                (Some(Part::Call(number)), Syntax::Emoji) => {
                    header.name() == "write"
                        && header
                            .raw_args()
                            .is_some_and(|line| line.parse() == Ok(number))
                }
                _ => false,
            },
            EventKind::ValueStart(Slot::Argument(pointer)) => pointer.as_str() == "content",
            EventKind::ValueStart(Slot::Body) => self.syntax == Syntax::Emoji,
            EventKind::ValueEnd => match self.due.pop_front() {
                Some(Part::Value(stretch)) => stretch.range.is_empty(),
                _ => false,
            },
            EventKind::CallEnd(ending) => ending.termination() == Termination::Explicit,
            _ => false,
        };
        if is_right {
            return Ok(());
        }
        Err(format!(
            "not what was written, at {}: {event:?}",
            event.span.start
        ))
    }

    /// Returns whether `text` comes next in the current text or value.
    fn takes(&mut self, text: &str, is_value: bool) -> bool {
        let mut text = text.as_bytes();
        while !text.is_empty() {
            let stretch = match self.due.front_mut() {
                Some(Part::Text(stretch)) if !is_value => stretch,
                Some(Part::Value(stretch)) if is_value => stretch,
                _ => return false,
            };
            let page = self.pages[stretch.page].as_bytes();
            let rest = &page[stretch.range.start % page.len()..];
            let len = rest.len().min(stretch.range.len()).min(text.len());
            if rest[..len] != text[..len] {
                return false;
            }
            text = &text[len..];
            stretch.range.start += len;
            if stretch.range.is_empty() {
                if is_value {
                    return text.is_empty();
                }
                self.due.pop_front();
            }
        }
        true
    }
}

fn dialect(syntax: Syntax) -> Dialect {
    Dialect::auto().for_syntax(syntax)
}

/// Reads a stream of at least `bytes`. Returns the numbers of calls and events.
fn read(syntax: Syntax, bytes: usize) -> Result<(usize, usize), String> {
    let mut source = Source::new(syntax)?;
    let parser = Parser::new(&dialect(syntax));
    let mut parser = parser.map_err(|error| error.to_string())?;
    let mut room = Vec::with_capacity(2 * ROOM);
    let mut events = 0_usize;
    let mut made = 0;
    loop {
        let before = room.len();
        source.fill(&mut room, made >= bytes);
        made += room.len() - before;
        // A character that the end of the room splits waits for its rest.
        let whole = match std::str::from_utf8(&room) {
            Ok(text) => text,
            Err(error) => std::str::from_utf8(&room[..error.valid_up_to()]).unwrap_or_default(),
        };
        if whole.is_empty() {
            break;
        }
        let size = CHUNKS[source.random.below(CHUNKS.len())];
        let mut rest = whole;
        while !rest.is_empty() {
            let (chunk, behind) = rest.split_at(rest.ceil_char_boundary(size.min(rest.len())));
            rest = behind;
            for event in parser.feed(chunk) {
                events += 1;
                source.check(&event)?;
            }
        }
        let read = whole.len();
        room.drain(..read);
    }
    for event in parser.finish() {
        events += 1;
        source.check(&event)?;
    }
    if !room.is_empty() || !source.due.is_empty() {
        return Err(format!(
            "{} parts were written and not read",
            source.due.len()
        ));
    }
    Ok((source.calls, events))
}
