//! The parser's contract (ARCHITECTURE.md, "The parser"), where the examples and the oracle do not reach.
#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

use plaincall_oracle::captures;
use plaincall_oracle::effort::{cores, setting};
use plaincall_oracle::examples::{self, Operation};
use plaincall_oracle::merged::{Kind, merge, merged, merged_of_chunks};
use plaincall_oracle::split::{self, Share, Ways};
use plaincall_syntax::{ByteParser, Dialect, EventKind, LINE_LIMIT, MARKER_LIMIT, Parser};

const FILES: &[&str] = &["common.md", "block.md", "emoji.md"];

fn parser(dialect: &Dialect) -> Parser {
    Parser::new(dialect).expect("the dialect works")
}

/// The split of a text into chunks makes no difference. `ORACLE_SPLITS` is the number of random ways to split a long text.
/// If it is set, short texts are split at all pairs of places, and all texts of the repository are tested.
#[test]
fn cuts_make_no_difference() {
    let random = setting("ORACLE_SPLITS", 0);
    let is_whole = random > 0;
    let share = if is_whole {
        Share {
            pairs: 1,
            places: 1,
            random: usize::try_from(random).expect("a number of ways"),
        }
    } else {
        Share {
            pairs: 16,
            places: 8,
            random: 100,
        }
    };
    let mut kinds = vec![
        (
            "examples of the specification",
            captures::of_the_specification(),
        ),
        ("transcripts", captures::transcripts()),
    ];
    if is_whole {
        kinds.push(("other texts", captures::others()));
    }
    for (kind, captures) in kinds {
        let next = AtomicUsize::new(0);
        let count = Mutex::new((0, Ways::default()));
        let check = || {
            while let Some(capture) = captures.get(next.fetch_add(1, Ordering::Relaxed)) {
                for dialect in &capture.dialects {
                    let ways = split::check(&capture.text, dialect, share);
                    let (readings, sum) = &mut *count.lock().expect("no check has failed");
                    *readings += 1;
                    sum.add(ways);
                }
            }
        };
        std::thread::scope(|scope| {
            for _ in 0..cores() {
                scope.spawn(check);
            }
        });
        let (readings, ways) = count.into_inner().expect("no check has failed");
        let Ways {
            single,
            bytes,
            pairs,
            random,
        } = ways;
        println!(
            "cuts: {} {kind}, {readings} with their dialects: {single} at one place, {bytes} at one byte, {pairs} at \
             two places, {random} at random",
            captures.len()
        );
        assert!(captures.len() > 50, "the {kind} were not found");
    }
}

/// Dropping the iterator early loses the chunk's remaining events; later spans and events stay right.
#[test]
fn an_iterator_dropped_early_changes_nothing_later() {
    for example in examples::all(FILES) {
        if example.operation != Operation::Read {
            continue;
        }
        let text = &example.input;
        let edges = (0..=text.len()).filter(|&at| text.is_char_boundary(at));
        for at in edges {
            let mut whole = parser(&example.dialect);
            let _: Vec<_> = whole.feed(&text[..at]).collect();
            let expected: Vec<_> = whole.feed(&text[at..]).collect();
            for taken in 0..3 {
                let mut dropped = parser(&example.dialect);
                let _: Vec<_> = dropped.feed(&text[..at]).take(taken).collect();
                let found: Vec<_> = dropped.feed(&text[at..]).collect();
                assert_eq!(found, expected, "{}: split at {at}", example.place);
            }
        }
    }
}

/// At the end of a chunk, the parser holds back only a line end, the start of a marker, a mid-line end marker with the text
/// that may follow it, one backslash, the line being collected, or a fence line that may end the last value.
#[test]
fn text_outside_markers_is_delivered_at_once() {
    let mut count = 0;
    for example in examples::all(FILES) {
        let words = format!("{:?}", example.dialect);
        if example.operation != Operation::Read || words.contains("key: Some") {
            continue;
        }
        let mut parser = parser(&example.dialect);
        let mut fed = 0;
        for c in example.input.chars() {
            parser.feed(c.encode_utf8(&mut [0; 4])).for_each(drop);
            fed += c.len_utf8();
            let held = &example.input[parser.position()..fed];
            assert!(
                may_be_held(held, &words),
                "{}: {held:?} is held",
                example.place
            );
            count += 1;
        }
    }
    assert!(count > 1000, "the examples were not found");
}

/// Text without width is not held back either.
#[test]
fn a_call_that_closes_itself_ends_at_once() {
    let mut parser = parser(&Dialect::emoji().self_closing());
    let last = parser.feed("🛠️[a /]").last().map(|event| event.kind);
    assert!(matches!(last, Some(EventKind::CallEnd(_))), "{last:?}");
}

fn may_be_held(held: &str, dialect: &str) -> bool {
    let quoted = |name: &str| {
        let rest = dialect
            .split(&format!("{name}: \""))
            .nth(1)
            .unwrap_or_default();
        rest.split('"').next().unwrap_or_default().to_owned()
    };
    let (start, end, arg) = (quoted("start"), quoted("end"), quoted("arg"));
    let mut markers = vec![start.clone(), end.clone(), arg.clone()];
    for sign in ["🛠️", "🛠", "ğŸ›\u{a0}ï¸", "ğŸ› ï¸"] {
        markers.push(format!("{sign}["));
        markers.push(format!("{sign}[/end]"));
    }
    if let Some(reasoning) = dialect.split("reasoning: Some((").nth(1) {
        let list = reasoning.split("))").next().unwrap_or_default();
        markers.extend(
            list.split(", ")
                .map(|marker| marker.trim_matches('"').to_owned()),
        );
    }
    let is_begun = |text: &str| markers.iter().any(|marker| marker.starts_with(text));
    let is_line = |text: &str| {
        let lines = markers
            .iter()
            .filter(|marker| **marker != end && !marker.ends_with("[/end]"));
        lines
            .clone()
            .any(|marker| text.starts_with(marker.as_str()))
            && !text.contains('\n')
    };
    let is_mid_line_end = |text: &str| {
        text.strip_prefix(end.as_str()).is_some_and(|rest| {
            let behind = rest.trim_start_matches([' ', '\t']);
            rest.len() - behind.len() <= 16
                && ("\r".starts_with(behind) || start.starts_with(behind))
        })
    };
    // A fence line that may end the last value, and what may follow it.
    let is_fence = |text: &str| {
        let (line, behind) = text.split_once('\n').unwrap_or((text, ""));
        let marks = line.trim_matches([' ', '\t', '\r']);
        let is_bare = marks.chars().all(|c| c == '`') || marks.chars().all(|c| c == '~');
        is_bare && line.len() < 64 && (behind.is_empty() || is_begun(behind) || is_line(behind))
    };
    // The escape's backslash, while the text after it may begin a marker.
    let held = held.strip_prefix('\\').unwrap_or(held);
    let rest = held.strip_prefix('\r').unwrap_or(held);
    let rest = rest.strip_prefix('\n').unwrap_or(rest);
    rest.is_empty() || is_begun(rest) || is_line(rest) || is_mid_line_end(rest) || is_fence(rest)
}

/// Lines at, below and above the limit, at chunk sizes around it.
#[test]
fn limits_hold_for_every_chunking() {
    let check = |text: &str, dialect: &Dialect| {
        let whole = merged(text, dialect).expect("the dialect works");
        for size in [1, 7, 64, 4095, 4096, 4097, 4200] {
            let chunks: Vec<&str> = split::chunks(text, size).collect();
            let found = merged_of_chunks(chunks, dialect).expect("the dialect works");
            assert_eq!(found, whole, "chunks of {size}");
        }
        let diagnostics = whole.iter().filter_map(|event| match event.kind {
            Kind::Diagnostic(code) => Some(code),
            _ => None,
        });
        diagnostics.collect::<Vec<_>>().join(" ")
    };
    let long = |length: usize| "x".repeat(length);
    let block = Dialect::block();
    let emoji = Dialect::emoji();
    for (length, header, pointer) in [
        (LINE_LIMIT - 1, "", ""),
        (LINE_LIMIT, "", ""),
        (LINE_LIMIT + 1, "header_too_long", "pointer_too_long"),
        (3 * LINE_LIMIT, "header_too_long", "pointer_too_long"),
    ] {
        for line_end in ["\n", "\r\n"] {
            let text = format!("!!!GADGET_START:{}{line_end}", long(length));
            assert_eq!(check(&text, &block), header, "a header of {length}");
            let text = format!(
                "!!!GADGET_START:A\n!!!ARG:{}{line_end}1\n!!!GADGET_END",
                long(length)
            );
            assert_eq!(check(&text, &block), pointer, "a pointer of {length}");
        }
        let text = format!("🛠️[{}]x🛠️[/end]", long(length));
        let expected = if header.is_empty() {
            ""
        } else {
            "header_too_long stray_marker"
        };
        assert_eq!(
            check(&text, &emoji),
            expected,
            "an emoji header of {length}"
        );
        let text = format!("!!!GADGET_START:A\n!!!ARG:{}!!!GADGET_END\n", long(length));
        let expected = if pointer.is_empty() {
            "missing_newline"
        } else {
            pointer
        };
        assert_eq!(
            check(&text, &block),
            expected,
            "a pointer of {length} cut by a marker"
        );
    }
    // A limit in the middle of a character.
    let text = format!("!!!GADGET_START:A\n!!!ARG:{}\n1\n", "é".repeat(LINE_LIMIT));
    assert_eq!(check(&text, &block), "pointer_too_long");
}

/// A line without an end is buffered only while the longest marker may still end it within its limit.
#[test]
fn a_line_without_end_is_not_buffered_forever() {
    let line = "x".repeat(LINE_LIMIT + MARKER_LIMIT + 2);
    for opening in ["!!!GADGET_START:", "!!!GADGET_START:A\n!!!ARG:"] {
        let mut parser = parser(&Dialect::block());
        parser.feed(opening).for_each(drop);
        let held_from = parser.position();
        parser.feed(&line).for_each(drop);
        assert!(parser.position() > held_from, "{opening:?}");
    }
}

/// A value that is split in the middle of a character, and bytes that are not UTF-8, in every state.
#[test]
fn bytes_that_are_not_utf_8_are_replaced_and_counted() {
    let text = b"a\xFF!!!GADGET_START:A\xF0\x9F\n!!!ARG:x\xC0\n\xED\xA0\x80\n!!!GADGET_END\xE2\x82";
    let mut parser = ByteParser::new(&Dialect::block()).expect("the dialect works");
    let mut events: Vec<_> = parser
        .feed(text)
        .map(plaincall_syntax::Event::into_owned)
        .collect();
    events.extend(parser.finish());
    let mut place = 0;
    let mut values = String::new();
    for event in events {
        if !matches!(event.kind, EventKind::Diagnostic(_)) {
            assert_eq!(event.span.start, place, "{event:?}");
            place = event.span.end;
        }
        match event.kind {
            EventKind::CallStart(header) => {
                assert_eq!(header.name(), "A\u{FFFD}");
                assert_eq!(event.span.range(), 2..22);
            }
            EventKind::ValueDelta(text) => values.push_str(&text),
            _ => {}
        }
    }
    assert_eq!(place, text.len());
    assert_eq!(values, "\u{FFFD}\u{FFFD}\u{FFFD}");
}

/// Merging what the iterator gives is merging what the whole text gives, also for a giant line without an end.
#[test]
fn one_long_line_is_delivered_in_pieces() {
    let line = "!!! no marker here ".repeat(1 << 16);
    let mut parser = parser(&Dialect::auto());
    let mut events = Vec::new();
    for chunk in split::chunks(&line, 4096) {
        events.extend(parser.feed(chunk));
        assert!(line.len() >= parser.position());
    }
    events.extend(parser.finish());
    let merged = merge(events);
    assert_eq!(merged.len(), 1);
    assert_eq!(merged[0].kind, Kind::Text(line));
}
