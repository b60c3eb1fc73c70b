//! Counts the instructions of the streaming parser in seven small cases (`bench/README.md`).
//!
//! The texts are defined here and are not the payloads of the table, so that two versions of the parser read the same
//! ones.

use std::hint::black_box;

use gungraun::prelude::*;
use plaincall_syntax::{Dialect, Event, Parser};

const PROSE: &str = "The ship is in the harbour, so we can read the first file and check it again! Then, however, \
                     the café closes.\n";
const CODE: &str = "    // Both sides are measured before the next step is taken.\n    if !is_ready && count != 0 {\n        \
                    total = \"index\" + 17;\n    }\n    let path = buffer; // \u{1F680} done!!!\n";

/// The input in chunks, and the parser that reads it.
struct Case {
    parser: Parser,
    text: String,
    size: usize,
    /// Whether a `for` loop takes the events, instead of `for_each`.
    in_loop: bool,
}

fn prepare(dialect: &Dialect, text: String, size: usize) -> Case {
    let parser = Parser::new(dialect).expect("a dialect that works");
    Case {
        parser,
        text,
        size,
        in_loop: false,
    }
}

fn in_loop(case: Case) -> Case {
    Case {
        in_loop: true,
        ..case
    }
}

fn prose(size: usize) -> Case {
    prepare(&Dialect::block(), PROSE.repeat(40), size)
}

fn value(size: usize) -> Case {
    let value = CODE.repeat(20);
    let text = format!("!!!GADGET_START:WriteFile\n!!!ARG:content\n{value}!!!GADGET_END\n");
    prepare(&Dialect::block(), text, size)
}

fn block_calls(size: usize) -> Case {
    let call = format!("{PROSE}!!!GADGET_START:WriteFile\n!!!ARG:content\n{CODE}!!!GADGET_END\n");
    prepare(&Dialect::block(), call.repeat(10), size)
}

fn emoji_calls(size: usize) -> Case {
    let call = format!("{PROSE}🛠️[create-file a.txt]\n{CODE}🛠️[/end]\n");
    prepare(&Dialect::emoji(), call.repeat(10), size)
}

/// Counts events, so that the compiler cannot remove any.
fn read(case: Case) -> usize {
    let Case {
        mut parser,
        text,
        size,
        in_loop,
    } = case;
    let mut count = 0;
    let mut see = |event: Event<'_>| {
        count += 1;
        black_box(event);
    };
    let mut rest = black_box(text.as_str());
    while !rest.is_empty() {
        let at = rest.ceil_char_boundary(size.min(rest.len()));
        let (chunk, behind) = rest.split_at(at);
        if in_loop {
            for event in parser.feed(chunk) {
                see(event);
            }
        } else {
            parser.feed(chunk).for_each(&mut see);
        }
        rest = behind;
    }
    // The return type is ignored, so that older versions of the parser compile too.
    for event in parser.finish() {
        see(event);
    }
    count
}

#[library_benchmark]
#[bench::prose_by_64(prose(64))]
#[bench::value_by_4(value(4))]
#[bench::block_calls_by_4(block_calls(4))]
#[bench::block_calls_by_64(block_calls(64))]
#[bench::block_calls_by_64_in_a_loop(in_loop(block_calls(64)))]
#[bench::block_calls_whole(block_calls(usize::MAX))]
#[bench::emoji_calls_by_4(emoji_calls(4))]
fn events(case: Case) -> usize {
    black_box(read(black_box(case)))
}

library_benchmark_group!(name = parser, benchmarks = events);
main!(library_benchmark_groups = parser);
