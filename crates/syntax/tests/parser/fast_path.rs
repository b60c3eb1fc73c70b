//! The fast path and the exact one give the same events.

use plaincall_syntax::{
    ByteParser, Dialect, Event, EventKind, LINE_LIMIT, Parser, ceil_char_boundary,
    floor_char_boundary,
};

const SIZES: [usize; 8] = [1, 2, 3, 4, 7, 16, 64, usize::MAX];

/// Joins adjacent pieces of text, since only their boundaries may differ.
fn joined<'e>(events: impl Iterator<Item = Event<'e>>, out: &mut Vec<(u8, String)>) {
    for event in events {
        let piece = match &event.kind {
            EventKind::Text(_) => 1,
            EventKind::Reasoning(_) => 2,
            EventKind::ValueDelta(_) => 3,
            EventKind::Ignored(_) => 4,
            kind => {
                out.push((0, format!("{kind:?} {:?}", event.span)));
                continue;
            }
        };
        join(piece, event.source(), out);
    }
}

fn join(piece: u8, more: &str, out: &mut Vec<(u8, String)>) {
    match out.last_mut() {
        Some((last, text)) if *last == piece => text.push_str(more),
        _ => out.push((piece, more.to_owned())),
    }
}

/// Splits the text into chunks of `size` bytes, or slightly more at a character boundary.
fn chunks(text: &str, size: usize) -> Vec<&str> {
    let mut chunks = Vec::new();
    let mut rest = text;
    while !rest.is_empty() {
        let (chunk, behind) = rest.split_at(ceil_char_boundary(rest, size.min(rest.len())));
        chunks.push(chunk);
        rest = behind;
    }
    chunks
}

/// Compares both paths: their events, and their positions after each chunk. Also compares the events taken one by one
/// with those taken all at once.
fn check_both(dialect: &Dialect, parser: &Parser, text: &str, size: usize) {
    let exact = read(parser.clone().without_fast_path(), text, size);
    let found = read(parser.clone(), text, size);
    let (mut one_by_one, mut at_once) = (Vec::new(), Vec::new());
    let mut parsers = [parser.clone(), parser.clone()];
    for chunk in chunks(text, size) {
        let [first, second] = &mut parsers;
        for event in first.feed(chunk) {
            one_by_one.push(event);
        }
        second.feed(chunk).for_each(|event| at_once.push(event));
        assert_eq!(first.position(), second.position());
    }
    assert_eq!(one_by_one, at_once);
    check_open_content(dialect, text, size);
    let start = &text[..floor_char_boundary(text, 200)];
    assert!(
        found == exact,
        "{start:?} in chunks of {size}: {found:?}, {exact:?}"
    );
}

/// Compares a parser that reads every chunk with one that advances over content. Returns how many chunks that was.
fn check_open_content(dialect: &Dialect, text: &str, size: usize) -> usize {
    let new = || ByteParser::new(dialect).expect("the dialect works");
    let (mut whole, mut advanced, mut count) = (new(), new(), 0);
    let (mut found, mut expected) = (Vec::new(), Vec::new());
    // The content of the chunk before, and whether a line end is left of it.
    let mut line_end = "";
    for chunk in chunks(text, size) {
        joined(whole.feed(chunk.as_bytes()), &mut expected);
        let open = advanced.open_content();
        let taken = open.and_then(|open| Some((open, open.content_len(chunk)?)));
        if let Some((open, length)) = taken {
            let content = format!("{line_end}{}", &chunk[..length]);
            line_end = &chunk[length..];
            advanced.advance(content.len());
            if !content.is_empty() {
                join(if open.is_value { 3 } else { 1 }, &content, &mut found);
            }
            count += 1;
        } else {
            joined(advanced.feed(line_end.as_bytes()), &mut found);
            line_end = "";
            joined(advanced.feed(chunk.as_bytes()), &mut found);
        }
        // Nothing is known later.
        assert_eq!(found, expected, "{text:?} in chunks of {size}");
    }
    joined(advanced.feed(line_end.as_bytes()), &mut found);
    joined(advanced.finish(), &mut found);
    joined(whole.finish(), &mut expected);
    assert_eq!(found, expected, "{text:?} in chunks of {size}");
    count
}

#[test]
fn most_chunks_of_a_call_are_known_to_be_content() {
    let call = "I look.\n!!!GADGET_START:write\n!!!ARG:text\nfn main() {\n    run(1, 2);\n}\n!!!GADGET_END\nDone, and more.";
    assert_eq!(check_open_content(&Dialect::block(), call, 4), 10);
    let emoji = "I look.\n🛠️[write]\nfn main() {\n    run(1, 2);\n}\n🛠️[/end]\nDone, and more.";
    assert_eq!(check_open_content(&Dialect::emoji(), emoji, 4), 12);
    let other = "Ich höre.\n!!!GADGET_START:write\n!!!ARG:text\n天気は晴れ 😀 and Grüße\n!!!GADGET_END\nEnde, наконец.";
    assert_eq!(check_open_content(&Dialect::block(), other, 4), 12);
    let bytes = ByteParser::new(&Dialect::block()).expect("the dialect works");
    let mut exact = bytes.without_fast_path();
    exact.feed(b"text").for_each(drop);
    assert_eq!(exact.open_content(), None);
}

/// Returns the events, and the position after each chunk.
fn read(mut parser: Parser, text: &str, size: usize) -> (Vec<(u8, String)>, Vec<usize>) {
    let mut events = Vec::new();
    let mut positions = Vec::new();
    for chunk in chunks(text, size) {
        joined(parser.feed(chunk), &mut events);
        positions.push(parser.position());
    }
    joined(parser.finish(), &mut events);
    (events, positions)
}

#[test]
fn both_paths_say_the_same() {
    let block = Dialect::block;
    let dialects = [
        block(),
        block().escaped(),
        block().keyed("k1").reasoning("<t>", "</t>"),
        block().start("#!").end("#!!").arg("##").markers_anywhere(),
        block().start("ab#").end("#c").arg("b#c").escaped(),
        block().start("##").end("<##>").arg("a<##>"),
        Dialect::emoji(),
        Dialect::emoji().keyed("k").reasoning("<think>", "</think>"),
        Dialect::emoji().escaped().self_closing(),
        Dialect::auto().reasoning("<t>", "</t>").escaped(),
    ];
    for dialect in dialects {
        let parser = Parser::new(&dialect).expect("the dialect works");
        let markers = dialect.markers().expect("the dialect works");
        let mut pieces: Vec<String> = ["\n", "\r\n", "\r", " ", "x", "A\n", "a:b:c\n", "]"]
            .map(str::to_owned)
            .into();
        pieces.push("some more text than a short word".to_owned());
        for marker in markers {
            let (stem, last) = marker
                .text
                .split_at(floor_char_boundary(&marker.text, marker.text.len() - 1));
            pieces.extend([format!("{stem}\\{last}"), stem.to_owned()]);
            pieces.extend([marker.text.clone(), format!("\n{}", marker.text)]);
            pieces.push(format!("{}name\n", marker.text));
        }
        let mut seed = 1_u64;
        let mut below = |bound: usize| {
            seed = seed.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1);
            usize::try_from(seed >> 33).expect("31 bits") % bound
        };
        for _ in 0..400 {
            let count = 1 + below(10);
            let text: String = (0..count).map(|_| &*pieces[below(pieces.len())]).collect();
            for size in SIZES {
                check_both(&dialect, &parser, &text, size);
            }
        }
    }
}

#[test]
fn both_paths_say_the_same_of_long_lines() {
    let long = "a".repeat(LINE_LIMIT - 3);
    for more in 1..=5 {
        let line = format!("{long}{}", "b".repeat(more));
        for (dialect, text) in [
            (
                Dialect::block(),
                format!("!!!GADGET_START:{line}\nx\n!!!ARG:p\n"),
            ),
            (
                Dialect::block(),
                format!("!!!GADGET_START:A\r\n!!!ARG:{line}\r\nx\n!!!GADGET_END\n"),
            ),
            (Dialect::emoji(), format!("🛠️[{line}]\nx\n🛠️[/end]")),
        ] {
            let parser = Parser::new(&dialect).expect("the dialect works");
            for size in [1, 5, 64, 1000, LINE_LIMIT, usize::MAX] {
                check_both(&dialect, &parser, &text, size);
            }
        }
    }
}

#[test]
fn both_paths_say_the_same_of_header_and_pointer_lines() {
    let dialect = Dialect::block();
    let parser = Parser::new(&dialect).expect("the dialect works");
    for line in [
        "A",
        "create-file",
        "a.b:id_1",
        "a:",
        "a::x",
        "a:b:c, d e",
        "",
        ":a",
        "-a",
        ".a",
        " a",
        "a b",
        "a:b c",
        "a:b:c:d",
        "a:b:c:d, e",
        "é",
        "aéb",
        "a\"",
        "a\tb",
        "a!b",
        "A\rB",
        " a/b~1c ",
        "a/b:c",
        "~",
    ] {
        for end in ["\n", "\r\n", "\r", ""] {
            let header = format!("!!!GADGET_START:{line}{end}x");
            let pointer = format!("!!!GADGET_START:A\n!!!ARG:{line}{end}x\n!!!GADGET_END");
            for size in SIZES {
                check_both(&dialect, &parser, &header, size);
                check_both(&dialect, &parser, &pointer, size);
            }
        }
    }
}

#[test]
fn both_paths_say_the_same_of_a_letter_behind_an_end_marker() {
    let dialect = Dialect::block().start("écall:");
    let parser = Parser::new(&dialect).expect("the dialect works");
    for size in SIZES {
        check_both(
            &dialect,
            &parser,
            "écall:A\n!!!GADGET_ENDécall:B\n!!!GADGET_END",
            size,
        );
    }
}
