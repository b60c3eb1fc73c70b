//! The parser for bytes: invalid parts are replaced, spans refer to the original bytes (`spec/common.md` 1.2).

use plaincall_syntax::{ByteParser, Dialect, DialectError, Event, EventKind, LINE_LIMIT, Syntax};

fn read<'b>(
    chunks: impl IntoIterator<Item = &'b [u8]>,
    dialect: &Dialect,
) -> Result<Vec<Event<'static>>, DialectError> {
    let mut parser = ByteParser::new(dialect)?;
    let mut events = Vec::new();
    for chunk in chunks {
        events.extend(parser.feed(chunk).map(Event::into_owned));
    }
    events.extend(parser.finish());
    Ok(events)
}

/// Returns the text of all events, and checks that the spans tile the bytes.
fn text(events: &[Event<'_>], length: usize) -> String {
    let mut place = 0;
    for event in events {
        assert_eq!(event.span.start, place, "{event:?}");
        place = event.span.end;
    }
    assert_eq!(place, length);
    events.iter().map(Event::source).collect()
}

#[test]
fn each_maximal_invalid_part_is_replaced_once_wherever_the_bytes_are_cut() {
    let cases: &[(&[u8], &str)] = &[
        (b"a\xFFb", "a\u{FFFD}b"),
        (b"\xE2\x82A", "\u{FFFD}A"),
        (b"\xF0\x9F\x9B", "\u{FFFD}"),
        (b"\xC0\x80", "\u{FFFD}\u{FFFD}"),
        (b"\xED\xA0\x80", "\u{FFFD}\u{FFFD}\u{FFFD}"),
        (b"\xF0\x9F\xE2\x82\xAC", "\u{FFFD}€"),
        (b"\xE2\xE2\x82\xAC\xE2", "\u{FFFD}€\u{FFFD}"),
        ("é€🛠".as_bytes(), "é€🛠"),
    ];
    for (bytes, expected) in cases {
        assert_eq!(String::from_utf8_lossy(bytes), *expected);
        for size in 1..=bytes.len() {
            let events = read(bytes.chunks(size), &Dialect::block()).unwrap();
            assert_eq!(text(&events, bytes.len()), *expected, "{bytes:?} by {size}");
        }
    }
}

/// A diagnostic whose span begins long ago, with more replacements in between than are stored individually.
#[test]
fn a_span_that_begins_long_ago_still_counts_the_original_bytes() {
    let cases = [
        (Dialect::emoji(), "🛠️[a]", "", "missing_end_marker"),
        (
            Dialect::block().reasoning("<think>", "</think>"),
            "<think>",
            "",
            "truncated_reasoning",
        ),
        (
            Dialect::block(),
            "!!!GADGET_START:A\n",
            "\n!!!GADGET_END",
            "text_without_argument",
        ),
    ];
    for (dialect, open, close, code) in cases {
        let invalid = b"\xFF\xE2\x82".repeat(LINE_LIMIT);
        let bytes = [&invalid, open.as_bytes(), &invalid, close.as_bytes()].concat();
        let start = match code {
            "text_without_argument" => invalid.len() + open.len(),
            _ => invalid.len(),
        };
        let end = bytes.len() - close.trim_start().len();
        for size in [1, 5, 4096, bytes.len()] {
            let found = read(bytes.chunks(size), &dialect).unwrap();
            let spans: Vec<_> = found
                .iter()
                .filter_map(|event| match &event.kind {
                    EventKind::Diagnostic(found) => Some((found.code.name(), found.span.range())),
                    _ => None,
                })
                .collect();
            assert_eq!(spans, [(code, start..end)], "chunks of {size}");
        }
    }
}

/// Several in a row: each has its own beginning.
#[test]
fn several_spans_that_begin_long_ago_count_the_original_bytes() {
    let invalid = b"\xFF\xE2\x82".repeat(LINE_LIMIT);
    let (open, close) = (b"!!!GADGET_START:A\n", b"\n!!!GADGET_END\n");
    let call = [open, &invalid[..], close].concat();
    let bytes = call.repeat(2);
    for size in [7, 4096, bytes.len()] {
        let found = read(bytes.chunks(size), &Dialect::block()).unwrap();
        let spans = found.iter().filter_map(|event| match &event.kind {
            EventKind::Diagnostic(found) => Some(found.span.range()),
            _ => None,
        });
        let expected = [0, call.len()].map(|at| {
            let start = at + open.len();
            start..start + invalid.len() + 1
        });
        assert_eq!(spans.collect::<Vec<_>>(), expected, "chunks of {size}");
    }
}

#[test]
fn the_syntax_is_available_as_soon_as_it_is_detected() {
    let mut parser = ByteParser::new(&Dialect::auto()).unwrap();
    assert_eq!(parser.syntax(), None);
    parser.feed(b"\xFF!!!GADGET_START:A\n").for_each(drop);
    assert_eq!(parser.syntax(), Some(Syntax::Block));
}

#[test]
fn a_dropped_iterator_loses_its_own_events_alone() {
    let bytes = "é!!!GADGET_START:A\n!!!ARG:ü\nö\n!!!GADGET_END é".as_bytes();
    for at in 0..=bytes.len() {
        let (first, second) = bytes.split_at(at);
        let mut whole = ByteParser::new(&Dialect::block()).unwrap();
        assert!(whole.feed(first).count() <= bytes.len());
        let expected: Vec<_> = whole.feed(second).map(Event::into_owned).collect();
        for taken in 0..4 {
            let mut dropped = ByteParser::new(&Dialect::block()).unwrap();
            assert!(dropped.feed(first).take(taken).count() <= taken);
            let mut events = dropped.feed(second);
            let found: Vec<_> = events.by_ref().map(Event::into_owned).collect();
            assert_eq!(found, expected, "cut at {at}, {taken} taken");
            assert_eq!(events.next(), None, "it stays at its end");
        }
    }
}

/// Its chunk is lost, and later events keep their positions.
#[test]
fn a_forgotten_iterator_moves_nothing_behind_it() {
    let bytes = "é\n!!!GADGET_START:A\n!!!ARG:ü\nö\n!!!GADGET_END é".as_bytes();
    let bytes = [bytes, b"\xE2\x82\xFF", bytes, b"\xF0\x9F"].concat();
    for from in 0..bytes.len() {
        for to in from..bytes.len() {
            for taken in [0, 1, 3, 9] {
                let mut parser = ByteParser::new(&Dialect::block()).unwrap();
                parser.feed(&bytes[..from]).for_each(drop);
                let mut lost = parser.feed(&bytes[from..to]);
                let begun = lost.by_ref().take(taken).last();
                let begun = begun.map_or(0, |event| event.span.end);
                std::mem::forget(lost);
                let mut place = 0;
                let mut check = |event: Event<'_>| {
                    let is_in_order = event.span.start >= begun.max(place);
                    let is_placed = matches!(event.kind, EventKind::Diagnostic(_)) || is_in_order;
                    assert!(is_placed, "{from}..{to}, {taken} taken: {event:?}");
                    place = event.span.end;
                };
                parser.feed(&bytes[to..]).for_each(&mut check);
                parser.finish().for_each(check);
                assert_eq!(place, bytes.len(), "{from}..{to}, {taken} taken");
            }
        }
    }
}

/// Replacements are tracked while their line is held. Then it is lost, and later text is too far away to track them.
#[test]
fn locations_after_a_forgotten_chunk() {
    let header = [b"!!!GADGET_START:A", &[0xFF; 50][..]].concat();
    let far = "x".repeat(3 * LINE_LIMIT);
    let mut parser = ByteParser::new(&Dialect::block()).unwrap();
    assert_eq!(parser.feed(&header).count(), 0);
    std::mem::forget(parser.feed(far.as_bytes()));
    let place = header.len() + far.len();
    let found: Vec<_> = parser
        .feed(b"\xFFx")
        .map(|event| event.span.range())
        .collect();
    assert_eq!(found, [place..place + 1, place + 1..place + 2]);
}

/// A diagnostic that is pending when an iterator is leaked is returned later and begins at the header, however long that is.
#[test]
fn a_forgotten_diagnostic_has_its_place() {
    let header = [b"!!!GADGET_START:A", &[0xFF; LINE_LIMIT / 3][..], b"\n"].concat();
    // A character begins after it and is never completed.
    let chunk = [&header[..], b"\xE2"].concat();
    let mut parser = ByteParser::new(&Dialect::block()).unwrap();
    let mut lost = parser.feed(&chunk);
    let call = lost.next().map(|event| event.span.range());
    assert_eq!(call, Some(0..header.len()));
    std::mem::forget(lost);
    let found = parser.feed(b"\xFF").next().map(|event| event.kind);
    assert!(
        matches!(&found, Some(EventKind::Diagnostic(due)) if Some(due.span.range()) == call),
        "{found:?}"
    );
}

/// Far more replacements than are stored, before and in a header that is held back: each event has its own bytes.
#[test]
fn many_replacements_keep_their_places() {
    let invalid = [0xFF; 2 * LINE_LIMIT];
    let marker = "!!!GADGET_START:".as_bytes();
    let bytes = [
        &invalid,
        "\r\né".as_bytes(),
        marker,
        &invalid,
        b"\n",
        marker,
    ]
    .concat();
    let width = |character: char| match character {
        char::REPLACEMENT_CHARACTER => 1,
        other => other.len_utf8(),
    };
    for size in [1, 7, 64, bytes.len()] {
        let mut events = read(bytes.chunks(size), &Dialect::block()).unwrap();
        events.retain(|event| !matches!(event.kind, EventKind::Diagnostic(_)));
        let found = text(&events, bytes.len());
        assert_eq!(found, String::from_utf8_lossy(&bytes), "chunks of {size}");
        for event in &events {
            let expected: usize = event.source().chars().map(width).sum();
            assert_eq!(event.span.len(), expected, "{event:?}, chunks of {size}");
        }
    }
}
