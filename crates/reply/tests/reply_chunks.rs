//! Replies in chunks: text and bytes in turn, and the cost of a chunk.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]

use std::fmt::Write as _;

use plaincall_reply::{ReplyCheck, ReplyItem, ReplyReader, Stop, Unclosed};
use plaincall_syntax::{Dialect, Event, EventKind};
use plaincall_tool::{Limits, ToolSet, ToolSpec};

use plaincall_testkit::allocations::allocations;

const CALL: &str = "!!!GADGET_START:note\n!!!GADGET_END\n";

fn reader() -> ReplyReader<ToolSet> {
    let dialect = Dialect::block();
    let check = ReplyCheck::new(&dialect, Unclosed::Reject).expect("a dialect");
    let tools = ToolSet::new([ToolSpec::new("note")]).expect("a tool");
    ReplyReader::new(&dialect, tools, check, Limits::for_running()).expect("a dialect")
}

/// Reads the chunks with both kinds of readers: the text outside calls and the names of the calls.
fn check(chunks: &[&[u8]], expected: &str) {
    let read = |mut reader: ReplyReader<ToolSet>| {
        let mut found = String::new();
        let mut take = |item: ReplyItem<'_>| match item {
            ReplyItem::Text(text) => found.push_str(&text),
            ReplyItem::Event(Event {
                kind: EventKind::Text(text),
                ..
            }) => found.push_str(&text),
            ReplyItem::Call(read) => {
                assert!(read.may_run(), "{read:?}");
                let _ = write!(found, "[{} at {:?}]", read.call.name, read.call.span);
            }
            _ => {}
        };
        for chunk in chunks {
            match std::str::from_utf8(chunk) {
                Ok(text) => reader.feed(text).for_each(&mut take),
                Err(_) => reader.feed(*chunk).for_each(&mut take),
            }
        }
        reader
            .finish(Stop::Natural)
            .items
            .into_iter()
            .for_each(take);
        found
    };
    assert_eq!(read(reader()), expected, "{chunks:?}");
    assert_eq!(
        read(reader().with_events()),
        expected,
        "{chunks:?}, with events"
    );
}

#[test]
fn text_and_bytes_can_take_turns() {
    let tool = "\u{1F6E0}".as_bytes();
    let end = |split: usize| tool.get(split..).expect("a part");
    let begin = |split: usize| tool.get(..split).expect("a part");
    check(&[b"a ", begin(1), end(1), b" b"], "a \u{1F6E0} b");
    check(&[b"a ", begin(3), end(3), b" b"], "a \u{1F6E0} b");
    // Text that follows a split character ends it.
    check(&[b"a ", begin(2), b"b", tool], "a \u{FFFD}b\u{1F6E0}");
    check(&[begin(2), b"", tool], "\u{FFFD}\u{1F6E0}");
    check(&[b"a ", begin(3)], "a \u{FFFD}");
    let call = CALL.as_bytes();
    check(
        &[b"a\n", call, b"\xFF\n", call],
        "a\n[note at 2..36]\n\u{FFFD}\n[note at 39..73]\n",
    );
    check(
        &[b"a\n\xFF\n", call, begin(1), b"\n", call],
        "a\n\u{FFFD}\n[note at 4..38]\n\u{FFFD}\n[note at 41..75]\n",
    );
}

/// Reads text in chunks of four bytes; the reader may allocate at most `most` times.
fn check_allocations(before: &str, text: &str, most: u64) {
    let mut reader = reader();
    reader.feed(before).for_each(drop);
    let count = allocations(|| {
        for chunk in text.as_bytes().chunks(4) {
            reader.feed(chunk).for_each(drop);
        }
    });
    assert!(count <= most, "{count} allocations after {before:?}");
}

#[test]
fn a_chunk_of_text_allocates_nothing() {
    let text = "Some of this is plain text.\n\n    It has lines, and no tags.\n".repeat(50);
    check_allocations("I begin.\n", &text, 2);
    check_allocations(&format!("I begin.\n{CALL}And:\n"), &text, 2);
    // The value grows in few steps.
    let call = "I begin.\n!!!GADGET_START:note\n!!!ARG:text\n";
    check_allocations(call, &text, 12);
}
