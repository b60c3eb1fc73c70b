//! The memory of the parser, counted by the allocator: none for a delta, and a bounded amount for held text.

use std::fmt::Write as _;
use std::hint::black_box;

use alloc_tracker::{Allocator, Session};
use plaincall_syntax::{
    ByteParser, Dialect, Event, EventKind, LINE_LIMIT, MARKER_LIMIT, MarkerUse, Parser, Syntax,
};

#[global_allocator]
static ALLOCATOR: Allocator<std::alloc::System> = Allocator::system();

/// The chunk sizes, in bytes; with the last one, every text is one chunk.
const CHUNKS: [usize; 4] = [1, 4, 64, usize::MAX];

/// The maximum memory of a parser, in bytes: the parser and its part of the heap; for bytes also the positions of
/// invalid UTF-8. Compiled markers, which clones share, are counted separately.
const STATE_LIMIT: usize = 4096 + LINE_LIMIT;
/// The maximum memory of compiled markers, in bytes: the longest allowed markers, with a key, reasoning and the
/// escape, in both syntaxes. The default markers take half of it.
const MARKERS_LIMIT: usize = 7 * 1024;

/// The number of allocations, and the maximum additional memory, in bytes.
#[derive(Debug)]
struct Asked {
    count: u64,
    most: usize,
}

fn asked(run: impl FnOnce()) -> Asked {
    let session = Session::new().no_stdout().no_file();
    let operation = session.operation("run");
    {
        let _span = operation.measure_thread().iterations(1);
        run();
    }
    let report = session.to_report();
    let (_, operation) = report.operations().next().expect("it was measured");
    let most = operation.peak_outstanding_bytes().expect("it was measured");
    Asked {
        count: operation.total_allocations_count(),
        #[allow(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            reason = "an integer of bytes"
        )]
        most: most as usize,
    }
}

/// A parser for text or for bytes.
trait AnyParser: Clone {
    const NAME: &str;
    fn open(dialect: &Dialect) -> Self;
    fn take(&mut self, chunk: &[u8], see: &mut dyn FnMut(&Event<'_>));
}

impl AnyParser for Parser {
    const NAME: &str = "text";

    fn open(dialect: &Dialect) -> Self {
        Self::new(dialect).expect("a dialect that works")
    }

    fn take(&mut self, chunk: &[u8], see: &mut dyn FnMut(&Event<'_>)) {
        let chunk = std::str::from_utf8(chunk).expect("whole characters");
        self.feed(chunk).for_each(|event| see(&event));
    }
}

impl AnyParser for ByteParser {
    const NAME: &str = "bytes";

    fn open(dialect: &Dialect) -> Self {
        Self::new(dialect).expect("a dialect that works")
    }

    fn take(&mut self, chunk: &[u8], see: &mut dyn FnMut(&Event<'_>)) {
        self.feed(chunk).for_each(|event| see(&event));
    }
}

/// `text` in chunks of `size` bytes; for text, split at the next character boundary.
fn chunks<D: AnyParser>(mut text: &[u8], size: usize) -> impl Iterator<Item = &[u8]> {
    let is_inside = |byte: &u8| D::NAME == Parser::NAME && byte & 0xC0 == 0x80;
    std::iter::from_fn(move || {
        let mut at = size.min(text.len());
        while text.get(at).is_some_and(is_inside) {
            at += 1;
        }
        let (chunk, rest) = text.split_at(at);
        text = rest;
        Some(chunk).filter(|chunk| !chunk.is_empty())
    })
}

fn feed<D: AnyParser>(parser: &mut D, text: &[u8], size: usize, see: &mut dyn FnMut(&Event<'_>)) {
    for chunk in chunks::<D>(text, size) {
        parser.take(chunk, see);
    }
}

/// The markers of a dialect that the tests write.
struct Markers {
    start: String,
    end: String,
    /// Empty in the emoji syntax.
    argument: String,
    all: Vec<String>,
}

impl Markers {
    fn of(dialect: &Dialect, syntax: Syntax) -> Self {
        let forms = dialect.markers().expect("a dialect that works");
        let first = |usage: MarkerUse| {
            let form = forms.iter().find(|form| form.usage == usage);
            form.map(|form| form.text.clone()).unwrap_or_default()
        };
        Self {
            start: first(MarkerUse::Start(syntax)),
            end: first(MarkerUse::End(syntax)),
            argument: match syntax {
                Syntax::Block => first(MarkerUse::Argument),
                Syntax::Emoji => String::new(),
            },
            all: forms.into_iter().map(|form| form.text).collect(),
        }
    }

    /// A call whose header and pointer lines are `width` bytes longer than necessary, and its value.
    fn call(&self, width: usize, value: &str) -> String {
        let name = "n".repeat(1 + width);
        let open = if self.argument.is_empty() {
            format!("{}{name}]\n", self.start)
        } else {
            format!("{}{name}\n{}{name}\n", self.start, self.argument)
        };
        format!("{open}{value}\n{}\n", self.end)
    }

    /// The beginning of a call, up to its value.
    fn opened(&self) -> String {
        let call = self.call(0, "");
        let end = call.rfind(&self.end).expect("an end marker") - 1;
        call[..end].to_owned()
    }

    /// Text that is content in every position: every proper prefix of every marker, both kinds of line ends,
    /// characters of all widths, backslashes.
    fn awkward(&self) -> String {
        let mut text = "plain words, é ü \u{1F680} \\ ".to_owned();
        for marker in &self.all {
            for (at, _) in marker.char_indices().skip(1) {
                let _ = write!(text, "{} \r\nx{}\\y\n\r\r\n", &marker[..at], &marker[..at]);
            }
        }
        text
    }
}

fn dialects() -> Vec<(&'static str, Dialect, Syntax)> {
    let custom = Dialect::block().start("<<<START:").end("<<<END").arg("@p:");
    vec![
        ("block", Dialect::block(), Syntax::Block),
        ("emoji", Dialect::emoji(), Syntax::Emoji),
        ("auto, block", Dialect::auto(), Syntax::Block),
        ("auto, emoji", Dialect::auto(), Syntax::Emoji),
        ("escaped block", Dialect::block().escaped(), Syntax::Block),
        ("escaped emoji", Dialect::emoji().escaped(), Syntax::Emoji),
        (
            "keyed block",
            Dialect::block().keyed("k3v9q2x8"),
            Syntax::Block,
        ),
        (
            "keyed emoji",
            Dialect::emoji().keyed("k3v9q2x8"),
            Syntax::Emoji,
        ),
        ("custom", custom.clone(), Syntax::Block),
        (
            "all of it",
            custom
                .keyed("k3v9q2x8")
                .escaped()
                .reasoning("<think>", "</think>"),
            Syntax::Block,
        ),
        (
            "reasoning",
            Dialect::auto().reasoning("<think>", "</think>"),
            Syntax::Emoji,
        ),
    ]
}

/// The kinds of content.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Content {
    Text,
    Value,
    Reasoning,
}

/// Long content of this kind arrives in chunks of `size` bytes. After the first part, in which the buffer is
/// allocated, there are no allocations.
fn check_deltas<D: AnyParser>(dialect: &Dialect, written: &Markers, content: Content, size: usize) {
    let opening = match content {
        Content::Text => String::new(),
        Content::Value => written.opened(),
        Content::Reasoning => "<think>".to_owned(),
    };
    let plain = "Words without a line end, a mark or anything else to wait for. ".repeat(100);
    let awkward = written.awkward();
    let mut parser = D::open(dialect);
    feed(&mut parser, opening.as_bytes(), usize::MAX, &mut |_| {});
    let mut found = 0;
    let mut see = |event: &Event<'_>| {
        let (at, len) = match &event.kind {
            EventKind::Text(text) => (Content::Text, text.len()),
            EventKind::ValueDelta(text) => (Content::Value, text.len()),
            EventKind::Reasoning(text) => (Content::Reasoning, text.len()),
            _ => return,
        };
        assert_eq!(at, content);
        found += len;
    };
    let first = asked(|| feed(&mut parser, plain.as_bytes(), size, &mut see));
    assert_eq!(first.count, 0, "plain content");
    // The buffer is allocated once, by doubling.
    let room = asked(|| {
        for size in CHUNKS {
            feed(&mut parser, awkward.as_bytes(), size, &mut see);
        }
    });
    assert!(room.count <= 12, "the first awkward content: {room:?}");
    let again = asked(|| {
        for _ in 0..5 {
            feed(&mut parser, awkward.as_bytes(), size, &mut see);
            feed(&mut parser, plain.as_bytes(), size, &mut see);
        }
    });
    assert_eq!(again.count, 0, "awkward content: {again:?}");
    let fed = 6 * plain.len() + 9 * awkward.len();
    assert!(found > fed * 9 / 10 && found <= fed, "{found} of {fed}");
}

#[test]
fn a_delta_asks_for_no_memory() {
    for (name, dialect, syntax) in dialects() {
        let written = Markers::of(&dialect, syntax);
        for content in [Content::Text, Content::Value, Content::Reasoning] {
            if content == Content::Reasoning
                && !written.all.iter().any(|marker| marker == "<think>")
            {
                continue;
            }
            for size in CHUNKS {
                println!("{name}, {content:?} in chunks of {size}");
                check_deltas::<Parser>(&dialect, &written, content, size);
                check_deltas::<ByteParser>(&dialect, &written, content, size);
            }
        }
    }
}

/// A call whose lines are `width` bytes longer than necessary: the fifth in a row makes at most `most` allocations.
fn check_call<D: AnyParser>(
    dialect: &Dialect,
    written: &Markers,
    width: usize,
    size: usize,
    most: u64,
) {
    let call = written.call(width, &written.awkward());
    let mut parser = D::open(dialect);
    for _ in 0..4 {
        feed(&mut parser, call.as_bytes(), size, &mut |_| {});
    }
    let mut ends = 0;
    let asked = asked(|| {
        feed(&mut parser, call.as_bytes(), size, &mut |event| {
            ends += usize::from(matches!(event.kind, EventKind::CallEnd(_)));
        });
    });
    assert_eq!(ends, 1);
    assert!(asked.count <= most, "{width}: {asked:?}, at most {most}");
}

#[test]
fn a_call_asks_at_most_once_for_each_long_line() {
    for (name, dialect, syntax) in dialects() {
        let written = Markers::of(&dialect, syntax);
        let lines = if written.argument.is_empty() { 1 } else { 2 };
        let longest = written.start.len().max(written.argument.len());
        for size in CHUNKS {
            println!("{name} in chunks of {size}");
            // A line of at most 31 bytes, including marker and line end, does not use the heap.
            let short = 29_usize.saturating_sub(longest);
            let is_inline = longest <= 29;
            let most = if is_inline || size == usize::MAX {
                0
            } else {
                lines
            };
            check_call::<Parser>(&dialect, &written, short, size, most);
            check_call::<ByteParser>(&dialect, &written, short, size, most);
            let most = if size == usize::MAX { 0 } else { lines };
            check_call::<Parser>(&dialect, &written, 1000, size, most);
            check_call::<ByteParser>(&dialect, &written, 1000, size, most);
        }
    }
}

/// The size that is added to held text to make it the maximum; far more than any event has.
const BALLAST: usize = 1 << 20;

/// Returns the maximum memory of the parser that `open` creates, between the chunks of `text`: its own bytes and
/// those on the heap. Memory of events is not included.
fn held<D: AnyParser>(open: impl FnOnce() -> D, text: &[u8], size: usize) -> usize {
    let weigh = || drop(black_box(Vec::<u8>::with_capacity(BALLAST)));
    let heap = asked(|| {
        let mut parser = open();
        weigh();
        for chunk in chunks::<D>(text, size) {
            parser.take(chunk, &mut |_| {});
            weigh();
        }
    });
    size_of::<D>() + heap.most - BALLAST
}

#[test]
fn held_text_is_bounded() {
    let marker = |first: &str| format!("{first}{}", "x".repeat(MARKER_LIMIT - 32 - first.len()));
    let longest = Dialect::auto()
        .start(marker("a"))
        .end(marker("b"))
        .arg(marker("c"))
        .keyed("k".repeat(32))
        .reasoning("r".repeat(MARKER_LIMIT), "s".repeat(MARKER_LIMIT))
        .escaped();
    let dialects = dialects().into_iter().chain([
        ("the longest markers, block", longest.clone(), Syntax::Block),
        ("the longest markers, emoji", longest, Syntax::Emoji),
    ]);
    let [mut from_text, mut from_bytes, mut markers] = [0; 3];
    for (name, dialect, syntax) in dialects {
        let written = Markers::of(&dialect, syntax);
        let (text_parser, byte_parser) = (Parser::open(&dialect), ByteParser::open(&dialect));
        let compiled = held(|| Parser::open(&dialect), b"", 1) - size_of::<Parser>();
        println!("{compiled:6} bytes: {name}, the markers");
        markers = compiled.max(markers);
        for (case, text) in worst_texts(&written) {
            for size in CHUNKS {
                let place = format!("{name}, {case} in chunks of {size}");
                // A clone shares the markers, so they are not counted.
                let bytes = held(|| byte_parser.clone(), &text, size);
                println!("{bytes:6} bytes: {place}, by bytes");
                from_bytes = bytes.max(from_bytes);
                if std::str::from_utf8(&text).is_ok() {
                    let bytes = held(|| text_parser.clone(), &text, size);
                    println!("{bytes:6} bytes: {place}, by text");
                    from_text = bytes.max(from_text);
                }
            }
        }
    }
    println!(
        "\na parser holds at most {from_text} bytes of text, {from_bytes} where it is given bytes, {markers} of markers"
    );
    assert!(from_text.max(from_bytes) <= STATE_LIMIT && markers <= MARKERS_LIMIT);
}

/// Texts that make a parser hold the maximum.
fn worst_texts(written: &Markers) -> Vec<(&'static str, Vec<u8>)> {
    let opened = written.opened();
    let line = "l".repeat(LINE_LIMIT);
    let cases = [
        ("nothing", String::new()),
        ("a header at its limit", format!("{}{line}", written.start)),
        ("a longer header", format!("{}{line}{line}", written.start)),
        (
            "a header behind a value",
            format!("{opened}\r\n{}{line}", written.start),
        ),
        (
            "a pointer at its limit",
            format!("{opened}\r\n{}{line}", written.argument),
        ),
        (
            "a longer pointer",
            format!("{opened}\r\n{}{line}{line}", written.argument),
        ),
        (
            "awkward content",
            format!("{}{opened}{}", written.awkward(), written.awkward()),
        ),
    ];
    let start = written.start.as_bytes();
    let bytes = [
        (
            "a header that is not UTF-8",
            [start, &[0xFF; 2 * LINE_LIMIT]].concat(),
        ),
        (
            "the same after bytes that are not UTF-8",
            [&[0xFF; 2 * LINE_LIMIT], start, &[0xFF; 2 * LINE_LIMIT]].concat(),
        ),
        (
            "a long header that a cut character ends",
            [start, &[b'l'; LINE_LIMIT - 1], "\u{20AC}".as_bytes()].concat(),
        ),
        ("no UTF-8", [0xFF; 3 * LINE_LIMIT].to_vec()),
    ];
    let cases = cases.map(|(name, text)| (name, text.into_bytes()));
    cases.into_iter().chain(bytes).collect()
}
