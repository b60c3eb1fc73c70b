//! The reader of replies: chunk boundaries make no difference, and its calls are those of the whole text.

#![allow(
    clippy::expect_used,
    clippy::panic,
    reason = "a panic is how a test fails"
)]

use std::collections::BTreeMap;

use plaincall_oracle::captures;
use plaincall_reply::{
    Bound, CallError, Document, ReplyCheck, ReplyItem, ReplyReader, Stop, Unclosed,
};
use plaincall_syntax::{Dialect, EventKind, Slot};
use plaincall_tool::{Effect, Limits, Parameter, ParameterKind, ToolSet, ToolSpec};

const WORKS: &str = "a dialect that works";
const STOPS: [Stop; 3] = [Stop::Natural, Stop::EndOfFile, Stop::Broken];

/// Tools for some of the calls of a document, which take some of their arguments.
fn tools(document: &Document) -> ToolSet {
    let mut specs: BTreeMap<String, ToolSpec> = BTreeMap::new();
    for call in document.calls().filter(|call| call.name.len() % 5 > 0) {
        let spec = specs.entry(call.name.clone()).or_insert_with(|| {
            let names = call.arguments.iter().map(|one| one.pointer);
            let names = names.filter(|name| !name.contains(['/', '~']) && name.len() % 4 > 0);
            let parameters =
                names.map(|name| Parameter::new(name, ParameterKind::String).optional());
            parameters.fold(ToolSpec::new(&*call.name), ToolSpec::parameter)
        });
        if call.index % 2 == 0 {
            *spec = spec.clone().effect(Effect::Read);
        }
    }
    ToolSet::new(specs.into_values()).expect("names that differ")
}

/// A call as a line.
fn call_line(index: usize, bound: &Result<Bound, CallError>) -> String {
    let bound = bound
        .as_ref()
        .map(|bound| (bound.tool, bound.arguments.to_value(), &bound.held));
    format!("call: {index} {bound:?}")
}

/// The items as lines; neighbouring text and deltas join. Events count as the items that they replace.
fn lines<'i>(items: impl Iterator<Item = ReplyItem<'i>>) -> Vec<String> {
    let mut lines: Vec<String> = Vec::new();
    let mut last = String::new();
    let (mut begun, mut value) = (0, String::new());
    for item in items {
        let (kind, text) = match &item {
            ReplyItem::Text(text) => ("text".to_owned(), &**text),
            ReplyItem::Reasoning(text) => ("reasoning".to_owned(), &**text),
            ReplyItem::ArgumentDelta {
                call,
                pointer,
                text,
            } => (format!("{call} {pointer:?}"), &**text),
            ReplyItem::Event(event) => match &event.kind {
                EventKind::Text(text) => ("text".to_owned(), &**text),
                EventKind::Reasoning(text) => ("reasoning".to_owned(), &**text),
                EventKind::ValueDelta(text) => (value.clone(), &**text),
                EventKind::ValueStart(slot) => {
                    let pointer = match slot {
                        Slot::Argument(pointer) => Some(pointer.as_str()),
                        Slot::Body => None,
                    };
                    value = format!("{begun} {pointer:?}");
                    continue;
                }
                _ => continue,
            },
            ReplyItem::Call(read) => {
                lines.push(call_line(read.call.index, &read.bound()));
                last.clear();
                continue;
            }
            other => {
                if let ReplyItem::CallStart(header) = other {
                    begun = header.index;
                }
                lines.push(format!("{other:?}"));
                last.clear();
                continue;
            }
        };
        match lines.last_mut().filter(|_| last == kind) {
            Some(line) => line.push_str(text),
            None if text.is_empty() => continue,
            None => lines.push(format!("{kind}: {text}")),
        }
        last = kind;
    }
    lines
}

fn read(reader: &ReplyReader<ToolSet>, chunks: &[&[u8]], stop: Stop) -> Vec<String> {
    lines(items(reader, chunks, stop).into_iter())
}

fn items(reader: &ReplyReader<ToolSet>, chunks: &[&[u8]], stop: Stop) -> Vec<ReplyItem<'static>> {
    let mut reader = reader.clone();
    let mut items: Vec<ReplyItem<'static>> = Vec::new();
    for chunk in chunks {
        items.extend(reader.feed(chunk).map(ReplyItem::into_owned));
    }
    items.extend(reader.finish(stop).items);
    items
}

/// Compares cuts of a text, and its calls with those of the document.
fn check(text: &str, dialect: &Dialect) {
    let document = Document::parse(text, dialect).expect(WORKS);
    let tools = tools(&document);
    let rule = ReplyCheck::new(dialect, Unclosed::Reject).expect(WORKS);
    let limits = Limits::for_reading();
    let reader = ReplyReader::new(dialect, tools.clone(), rule.clone(), limits).expect(WORKS);
    for stop in STOPS {
        let whole = read(&reader, &[text.as_bytes()], stop);
        let read_whole = Document::read(text, dialect, &tools, rule.clone(), stop).expect(WORKS);
        let calls: Vec<String> = read_whole
            .decided()
            .map(|read| call_line(read.call.index, &read.bound()))
            .collect();
        // No call of a whole text has started when its end of reasoning is read.
        let mut decided = items(&reader, &[text.as_bytes()], stop);
        ReplyItem::reject_reasoning(&mut decided);
        let decided = lines(decided.into_iter());
        let is_call = |line: &&String| line.starts_with("call: ");
        let read_calls: Vec<&String> = decided.iter().filter(is_call).collect();
        if calls.iter().all(|call| decided.contains(call)) {
            assert!(read_calls.len() >= calls.len(), "{text}");
        } else {
            panic!("{text}\n{calls:#?}\n{decided:#?}");
        }
        let bytes: Vec<&[u8]> = text.as_bytes().chunks(1).collect();
        assert_eq!(read(&reader, &bytes, stop), whole, "{text}");
        let with_events = read(&reader.clone().with_events(), &bytes, stop);
        let only = |lines: &[String]| -> Vec<String> {
            let not_text = |line: &&String| !line.starts_with("text: ");
            lines.iter().filter(not_text).cloned().collect()
        };
        assert_eq!(only(&with_events), only(&whole), "{text}");
        if stop == Stop::Natural {
            let step = text.len() / 40 + 1;
            for cut in (0..text.len()).step_by(step) {
                let (left, right) = text.as_bytes().split_at(cut);
                assert_eq!(read(&reader, &[left, right], stop), whole, "{cut} {text}");
            }
        }
    }
}

#[test]
fn cuts_make_no_difference() {
    let captures = captures::of_the_specification();
    for capture in captures.iter().chain(&captures::transcripts()) {
        for dialect in &capture.dialects {
            check(&capture.text, dialect);
            let with_reasoning = dialect.clone().reasoning("<think>", "</think>");
            check(&capture.text, &with_reasoning);
        }
    }
    for text in [
        "<think>a</think>b!!!GADGET_START:A\n!!!GADGET_END</think>c<think>",
        "!!!GADGET_START:add\n!!!GADGET_END\nResult 1 of 1: tool add\nOutput: 5\n!!!GADGET_START:add\n!!!GADGET_END\nResult",
        "a\u{1F6E0}\u{FE0F}[x y]\nz\u{1F6E0}\u{FE0F}[/end]b",
    ] {
        check(text, &Dialect::auto().reasoning("<think>", "</think>"));
    }
}

/// Bytes that are not UTF-8 become the same text, and the second reply of a conversation continues the numbers.
#[test]
fn bytes_and_replies() {
    let dialect = Dialect::block();
    let rule = ReplyCheck::new(&dialect, Unclosed::Reject).expect(WORKS);
    let mut reader =
        ReplyReader::new(&dialect, ToolSet::default(), rule, Limits::for_running()).expect(WORKS);
    let text = b"caf\xE9 \xF0\x9F\n!!!GADGET_START:A:a\n!!!GADGET_END\n\xC3";
    let whole = read(&reader, &[text], Stop::Natural);
    let bytes: Vec<&[u8]> = text.chunks(1).collect();
    assert_eq!(read(&reader, &bytes, Stop::Natural), whole);
    assert_eq!(whole.first().expect("text"), "text: caf\u{FFFD} \u{FFFD}\n");

    // Items that are not requested are read too.
    drop(reader.feed(text));
    assert_eq!(reader.calls(), 1);
    reader.finish(Stop::Natural);
    assert_eq!(reader.feed(text).count(), 0, "the reply ends");
    reader.begin_reply();
    let second = lines(reader.feed(text));
    assert!(
        second.iter().any(|line| line.contains("index: 1")),
        "{second:?}"
    );
    let is_duplicate = |line: &String| line.contains("is_duplicate: true");
    assert!(!second.iter().any(is_duplicate), "ids may be used again");
}
