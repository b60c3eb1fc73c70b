use crate::drawn::{Drawn, cut_bytes};
use plaincall_syntax::{ByteParser, Event, EventKind, Parser};
use plaincall_testkit::merged::merge_lossy;
use plaincall_testkit::untrusted::chunks;

/// Puts the source texts together, and checks the width of each event and its place.
fn source(events: &[Event<'_>], len: usize, is_text: bool) -> String {
    let mut source = String::new();
    let mut place = 0;
    for event in events {
        let span = event.span;
        if let EventKind::Diagnostic(diagnostic) = &event.kind {
            assert_eq!(diagnostic.span, span);
            assert_eq!(span.end, place, "not at the end of its span: {event:?}");
            assert!(span.start <= span.end, "{event:?}");
            continue;
        }
        assert_eq!(span.start, place, "a gap or an overlap: {event:?}");
        assert!(span.end >= place, "{event:?}");
        assert!(!is_text || span.len() == event.source().len(), "{event:?}");
        place = span.end;
        source.push_str(event.source());
    }
    assert_eq!(place, len, "the end of the input");
    source
}

/// The events' spans tile all inputs, and their sources equal the input (`spec/common.md` 2.1 and 10).
pub fn spans_tile(data: &[u8]) {
    let Some(drawn) = Drawn::new(data) else {
        return;
    };
    let (bytes, dialect) = (drawn.bytes(), drawn.options.dialect());
    let text = String::from_utf8_lossy(&bytes).into_owned();

    let mut parser = Parser::new(&dialect).expect("a dialect that works");
    let mut events = Vec::new();
    for chunk in chunks(&text, &drawn.sizes) {
        events.extend(parser.feed(chunk));
    }
    events.extend(parser.finish());
    assert_eq!(source(&events, text.len(), true), text);

    let by_bytes = |sizes: &[usize]| {
        let mut parser = ByteParser::new(&dialect).expect("a dialect that works");
        let mut events: Vec<Event<'_>> = Vec::new();
        for chunk in cut_bytes(&bytes, sizes) {
            events.extend(parser.feed(chunk));
        }
        events.extend(parser.finish());
        assert_eq!(source(&events, bytes.len(), text.as_bytes() == bytes), text);
        merge_lossy(events)
    };
    assert_eq!(by_bytes(&drawn.sizes), by_bytes(&[usize::MAX]));
}
