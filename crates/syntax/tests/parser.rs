//! Properties of the parser beside its events.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]

mod fast_path;
mod memory;

use std::fmt::Debug;

use plaincall_syntax::{
    ByteEvents, ByteParser, Diagnostic, Dialect, DialectError, Escaper, Event, EventKind, Events,
    NearMiss, Parser, Piece, RenderError, Span,
};

/// Compiling shows that these traits hold.
#[test]
fn public_types_can_be_sent_shared_and_printed() {
    fn check<T: Send + Sync + Debug>() {}
    fn check_clone<T: Send + Sync + Debug + Clone>() {}
    check::<Events<'_, '_>>();
    check::<ByteEvents<'_, '_>>();
    check_clone::<Parser>();
    check_clone::<ByteParser>();
    check_clone::<Escaper>();
    check_clone::<Dialect>();
    check_clone::<Event<'_>>();
    check_clone::<Piece<'_>>();
    check_clone::<Diagnostic>();
    check_clone::<NearMiss>();
    check_clone::<Span>();
    check_clone::<DialectError>();
    check_clone::<RenderError>();
}

#[test]
fn an_event_stays_small_enough_to_be_moved() {
    assert!(size_of::<Event<'_>>() <= 72, "{}", size_of::<Event<'_>>());
    assert!(size_of::<Piece<'_>>() <= 40);
}

#[test]
fn a_clone_continues_at_the_parser_s_position() {
    let text = "a!!!GADGET_START:A:b\r\n!!!ARG:x\r\n1 !!!GADGET_END \r\n!!!GADGET_END";
    for at in 0..=text.len() {
        let mut parser = Parser::new(&Dialect::auto()).unwrap();
        parser.feed(&text[..at]).for_each(drop);
        let mut clone = parser.clone();
        let events: Vec<_> = parser.feed(&text[at..]).collect();
        assert_eq!(clone.feed(&text[at..]).collect::<Vec<_>>(), events);
        assert!(clone.finish().eq(parser.finish()));
    }
}

const CALLS: &str = "a!b\n!!!GADGET_START:A\n!!!ARG:x\n1\r\n!!!ARG:y\n!!!GADGET_END\nAfter it.";

/// `for_each` and similar methods use a separate path.
#[test]
fn events_taken_at_once_are_those_taken_one_by_one() {
    let parser = Parser::new(&Dialect::block()).unwrap();
    for at in 0..=CALLS.len() {
        for taken in 0..8 {
            let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
            let [mut first, mut second] = [parser.clone(), parser.clone()];
            for chunk in [&CALLS[..at], &CALLS[at..]] {
                for event in first.feed(chunk) {
                    one_by_one.push(event);
                }
                let mut events = second.feed(chunk);
                at_once.extend(events.by_ref().take(taken));
                events.for_each(|event| at_once.push(event));
            }
            assert_eq!(at_once, one_by_one, "{at}, {taken}");
            assert!(second.finish().eq(first.finish()));
        }
    }
}

#[test]
fn a_closure_that_panics_loses_events_and_nothing_else() {
    let parser = Parser::new(&Dialect::block()).unwrap();
    for taken in 0..8 {
        let [mut broken, mut left_early] = [parser.clone(), parser.clone()];
        let mut seen = 0;
        let reading = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            broken.feed(CALLS).for_each(|_| {
                seen += 1;
                if seen > taken {
                    std::panic::resume_unwind(Box::new(()));
                }
            });
        }));
        assert!(reading.is_err());
        assert_eq!(left_early.feed(CALLS).take(taken).count(), taken);
        assert_eq!(broken.position(), left_early.position());
        assert!(broken.finish().eq(left_early.finish()));
    }
}

/// Leaking an iterator is allowed and safe: its chunk is lost, and parsing continues as text.
#[test]
fn a_forgotten_iterator_loses_its_chunk_and_nothing_else() {
    let dialects = [
        Dialect::auto(),
        Dialect::auto().escaped(),
        Dialect::auto().reasoning("!!", "AR"),
    ];
    let text = "a!!!GADGET_START:A\n!!!ARG:x\n1 !!!AR\\: \\é !!!GADGET_END\n!!!GADGET_START:B é";
    let edges = |from: usize| (from..=text.len()).filter(|at| text.is_char_boundary(*at));
    for dialect in &dialects {
        for from in edges(0) {
            for to in edges(from) {
                for taken in 0..4 {
                    let mut parser = Parser::new(dialect).unwrap();
                    parser.feed(&text[..from]).for_each(drop);
                    let mut lost = parser.feed(&text[from..to]);
                    let is_over = (0..taken).any(|_| lost.next().is_none());
                    std::mem::forget(lost);
                    let rest = &text[to..];
                    let mut events: Vec<_> = parser.feed(rest).take(99).collect();
                    assert!(events.len() < 99, "{from}..{to}: {events:?}");
                    events.extend(parser.finish().take(99));
                    // All events are present and have the correct positions.
                    events.retain(|event| !matches!(event.kind, EventKind::Diagnostic(_)));
                    let mut end = events.first().map(|event| event.span.start);
                    for event in &events {
                        assert_eq!(Some(event.span.start), end, "{from}..{to}: {events:?}");
                        assert_eq!(event.source(), &text[event.span.range()]);
                        end = Some(event.span.end);
                    }
                    assert!(is_over || rest.is_empty() || end == Some(text.len()));
                }
            }
        }
    }
}

/// The held text may then begin at another position than expected.
#[test]
fn after_a_forgotten_iterator_both_paths_say_the_same() {
    let dialect = Dialect::block().start("aac").end("ab").arg("ccc");
    let stray = |mut parser: Parser| {
        parser.feed("aa").for_each(drop);
        let mut lost = parser.feed("b");
        lost.next().unwrap();
        std::mem::forget(lost);
        let events: Vec<_> = parser.feed("zz").map(Event::into_owned).collect();
        let sources: String = events.iter().map(Event::source).collect();
        assert_eq!(sources, "abzz");
        let is_stray = |event: &Event<'_>| matches!(event.kind, EventKind::Diagnostic(_));
        events.iter().filter(|event| is_stray(event)).count()
    };
    let parser = Parser::new(&dialect).unwrap();
    assert_eq!(stray(parser.clone().without_fast_path()), 1);
    assert_eq!(stray(parser), 1);
}

/// Held text comes first; text of the chunk is borrowed from it.
#[test]
fn only_what_was_held_is_copied() {
    let parser = Parser::new(&Dialect::block()).unwrap();
    for mut parser in [parser.clone(), parser.without_fast_path()] {
        assert_eq!(parser.feed("!!!GADG").count(), 0);
        let chunk = "and more text than is ever kept inline";
        let found: Vec<_> = parser.feed(chunk).map(|event| event.span.range()).collect();
        assert_eq!(found, [0..7, 7..7 + chunk.len()]);
    }
}

#[test]
fn a_piece_is_its_text_however_it_is_kept() {
    for text in [
        "\n",
        "\r\n",
        "é",
        &"x".repeat(31),
        &"x".repeat(32),
        &"é".repeat(31),
    ] {
        let text = format!("<!{text}");
        // Borrowed text, copied text, and held text that was never in this chunk.
        let mut parser = Parser::new(&Dialect::block().start("<!!").end("<!?")).unwrap();
        let mut pieces: Vec<Piece<'_>> = Vec::new();
        for event in parser.feed(&text) {
            if let EventKind::Text(piece) = event.kind {
                pieces.extend([piece.clone().into_owned(), piece]);
            }
        }
        let [owned, borrowed] = &pieces[..] else {
            panic!("one piece: {pieces:?}");
        };
        assert_eq!(owned, borrowed);
        for piece in &pieces {
            assert_eq!(*piece, *text);
            assert_ne!(*piece, *"another");
            assert_eq!(piece.clone().into_owned(), *piece);
            assert_eq!(piece.to_string(), text);
            assert_eq!(format!("{piece:?}"), format!("{text:?}"));
            assert_eq!(piece.to_cow(), text);
        }
    }
}

#[test]
fn a_span_counts_its_bytes() {
    for (start, end, len, text) in [(0, 0, 0, "0..0"), (2, 5, 3, "2..5"), (5, 2, 0, "5..2")] {
        let span = Span::new(start, end);
        assert_eq!((span.len(), span.is_empty()), (len, len == 0), "{text}");
        assert_eq!(span.range(), start..end);
        assert_eq!(format!("{span:?}"), text);
    }
}

#[test]
fn borrowed_text_stays_borrowed() {
    let mut parser = Parser::new(&Dialect::block()).unwrap();
    let chunk = String::from("plain text");
    let cow = match parser.feed(&chunk).next().map(|event| event.kind) {
        Some(EventKind::Text(piece)) => piece.to_cow(),
        other => panic!("{other:?}"),
    };
    drop(parser);
    assert!(matches!(cow, std::borrow::Cow::Borrowed("plain text")));
}
