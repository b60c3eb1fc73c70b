//! Calls: ids, ends, permission to run, source, wire form.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_reply::collector::{Collected, Collector};
use plaincall_reply::openai::{OpenAiCalls, openai_calls};
use plaincall_reply::{Document, ReplyCheck, Stop, Unclosed};
use plaincall_syntax::Syntax;
use plaincall_syntax::{ByteParser, Dialect, Parser, parse};
use plaincall_tool::{Limits, Parameter, ParameterKind, ReplyDiagnostic, ToolSet, ToolSpec};
use serde_json::json;

fn document(text: &str) -> Document {
    Document::parse(text, &Dialect::auto()).expect("a dialect that works")
}

#[test]
fn the_source_of_a_call_is_its_exact_text() {
    for text in [
        "!!!GADGET_START:A:i:b\n\n!!!ARG:x\n1\r\n!!!ARG:y\n2\n\n!!!GADGET_END",
        "!!!GADGET_START:A\nprose\n",
        "!!!GADGET_START:A!!!ARG:x!!!GADGET_END",
        "🛠️[a b c]\r\nbody\n🛠[/end]",
        "🛠️[a]",
    ] {
        let document = document(&format!("before {text}"));
        let call = document.calls().next().expect("a call");
        assert_eq!(call.source(), Some(text));
        assert_eq!(call.span.range(), 7..7 + text.len());
    }
}

#[test]
fn ids_and_indices_continue_over_turns() {
    let mut collector = Collector::new(Limits::default());
    let mut found = Vec::new();
    for turn in [
        "!!!GADGET_START:A\n!!!GADGET_START:B:b\n!!!GADGET_START:C:b\n",
        "!!!GADGET_START:D\n!!!GADGET_START:E:b\n",
    ] {
        collector.begin_turn();
        for event in parse(turn, &Dialect::block()).expect("a dialect that works") {
            if let Some(Collected::Finished(call)) = collector.push(&event) {
                let header = call.header;
                found.push((header.index, header.id.clone(), header.is_duplicate));
            }
        }
    }
    let expected = [
        (0, "gadget_1", false),
        (1, "b", false),
        (2, "b", true),
        (3, "gadget_2", false),
        (4, "b", false),
    ];
    assert_eq!(
        found,
        expected.map(|(index, id, twice)| (index, id.to_owned(), twice))
    );
    assert_eq!(collector.calls(), 5);
}

#[test]
fn a_start_is_reported_before_the_end() {
    let mut collector = Collector::new(Limits::default());
    let mut parser = Parser::new(&Dialect::auto()).expect("a dialect that works");
    let starts: Vec<_> = parser
        .feed("🛠️[run-query main.sql 100]\nand then")
        .filter_map(|event| match collector.push(&event) {
            Some(Collected::Started(started)) => Some((
                started.name.clone(),
                started.id.clone(),
                started.syntax,
                started.span.len(),
            )),
            _ => None,
        })
        .collect();
    assert_eq!(
        starts,
        [(
            "run-query".to_owned(),
            "call_1".to_owned(),
            Syntax::Emoji,
            "🛠️[run-query main.sql 100]".len()
        )]
    );
}

#[test]
fn a_duplicate_id_is_an_error_of_the_document_alone() {
    let document = document(
        "!!!GADGET_START:A:a\n!!!ARG:x\n1\n!!!GADGET_START:B:a\n!!!ARG:x\n2\n!!!GADGET_END",
    );
    assert_eq!(document.diagnostics[0].code, ReplyDiagnostic::DUPLICATE_ID);
    let parameters: Vec<_> = document
        .calls()
        .map(|call| serde_json::to_value(call).expect("JSON"))
        .collect();
    assert_eq!(parameters[1]["parameters"], json!({"x": 2}));
    assert_eq!(parameters[1].get("parseError"), None);
}

#[test]
fn the_wire_form_of_a_block_document() {
    let text = "Look.\n!!!GADGET_START:W:w:a,b,a\n!!!ARG:p\na.ts\n!!!GADGET_END\n!!!GADGET_START:V\n!!!ARG:/x\n1\n!!!ARG:x\n2\n";
    let expected = concat!(
        r#"{"syntax":"block","segments":["#,
        r#"{"type":"text","span":[0,6],"text":"Look.\n"},"#,
        r#"{"type":"call","span":[6,59],"termination":"explicit","call":{"gadgetName":"W","invocationId":"w","#,
        r#""dependencies":["a","b"],"parameters":{"p":"a.ts"},"parametersRaw":"!!!ARG:p\na.ts\n"}},"#,
        r#"{"type":"text","span":[59,60],"text":"\n"},"#,
        r#"{"type":"call","span":[60,101],"termination":"end_of_stream","call":{"gadgetName":"V","#,
        r#""invocationId":"gadget_1","dependencies":[],"parametersRaw":"!!!ARG:/x\n1\n!!!ARG:x\n2\n","#,
        r#""parseError":"Duplicate pointer: x"}}],"diagnostics":["#,
        r#"{"code":"leading_slash","severity":"warning","span":[78,88],"message":"the leading `/` of the pointer is ignored"},"#,
        r#"{"code":"duplicate_pointer","severity":"error","span":[90,99],"message":"Duplicate pointer: x"}]}"#,
    );
    assert_eq!(
        serde_json::to_string(&document(text)).expect("JSON"),
        expected
    );
}

#[test]
fn the_wire_form_of_other_documents() {
    for (text, dialect, expected) in [
        (
            "",
            Dialect::auto(),
            r#"{"syntax":null,"segments":[],"diagnostics":[]}"#,
        ),
        (
            "",
            Dialect::emoji(),
            r#"{"syntax":"emoji","segments":[],"diagnostics":[]}"#,
        ),
        (
            "a",
            Dialect::auto(),
            r#"{"syntax":null,"segments":[{"type":"text","span":[0,1],"text":"a"}],"diagnostics":[]}"#,
        ),
        (
            "🛠️[a b c]\nd\n🛠️[/end]",
            Dialect::auto(),
            r#"{"syntax":"emoji","segments":[{"type":"call","span":[0,30],"termination":"explicit","call":{"tool_name":"a","raw_args":"b c","body":"d\n"}}],"diagnostics":[]}"#,
        ),
        (
            "a<think>b</think>c",
            Dialect::block().reasoning("<think>", "</think>"),
            r#"{"syntax":"block","segments":[{"type":"text","span":[0,1],"text":"a"},{"type":"reasoning","span":[1,17],"text":"b"},{"type":"text","span":[17,18],"text":"c"}],"diagnostics":[]}"#,
        ),
        (
            "x !!!ARG\\: y",
            Dialect::block().escaped(),
            r#"{"syntax":"block","segments":[{"type":"text","span":[0,12],"text":"x !!!ARG: y"}],"diagnostics":[]}"#,
        ),
    ] {
        let document = Document::parse(text, &dialect).expect("a dialect that works");
        assert_eq!(
            serde_json::to_string(&document).expect("JSON"),
            expected,
            "{text}"
        );
    }
}

#[test]
fn bytes_that_are_not_text() {
    let mut collector = Collector::new(Limits::default());
    let mut parser = ByteParser::new(&Dialect::emoji()).expect("a dialect that works");
    let input = [
        &b"\xff"[..],
        "🛠️[a ".as_bytes(),
        b"\xf0\x9f b]x\xffy",
        "🛠️[/end]".as_bytes(),
    ]
    .concat();
    let mut calls = Vec::new();
    let mut take = |event: &plaincall_syntax::Event<'_>| {
        if let Some(Collected::Finished(call)) = collector.push(event) {
            calls.push(call);
        }
    };
    for event in parser.feed(&input) {
        take(&event);
    }
    for event in parser.finish() {
        take(&event);
    }
    let [call] = calls.as_slice() else {
        panic!("one call")
    };
    assert_eq!(
        (call.raw_args.as_deref(), call.body()),
        (Some("\u{fffd} b"), Some("x\u{fffd}y"))
    );
    assert_eq!(call.span.range(), 1..input.len());
    assert_eq!(
        call.raw_args_span(),
        Some(call.header.span),
        "no exact place is known in a header with other bytes"
    );
}

fn read(text: &str, tools: Option<&ToolSet>) -> Document {
    let dialect = Dialect::auto();
    let check = ReplyCheck::new(&dialect, Unclosed::Reject).expect("a dialect that works");
    Document::read(text, &dialect, tools, check, Stop::Natural).expect("a dialect that works")
}

#[test]
fn openai_form() {
    let text = "!!!GADGET_START:A:a\n!!!ARG:zip\n02134\n!!!ARG:n\n5\n!!!GADGET_END!!!GADGET_START:B:a\n!!!GADGET_END!!!GADGET_START:A\n!!!ARG:q\n1\n!!!GADGET_END!!!GADGET_START:C\n!!!ARG:x";
    let tool = ToolSpec::new("A")
        .parameter(Parameter::new("zip", ParameterKind::String))
        .parameter(Parameter::new("n", ParameterKind::String));
    let set = ToolSet::new([
        tool,
        ToolSpec::new("B"),
        ToolSpec::new("C").parameter(Parameter::new("x", ParameterKind::String)),
    ]);
    let set = set.expect("names that differ");
    let OpenAiCalls {
        tool_calls,
        skipped,
        ..
    } = openai_calls(&read(text, Some(&set)));
    assert_eq!(
        serde_json::to_value(&tool_calls).expect("JSON"),
        json!([{"id": "a", "type": "function", "function": {"name": "A", "arguments": "{\"zip\":\"02134\",\"n\":\"5\"}"}}])
    );
    let reasons: Vec<(usize, &str, usize)> = skipped
        .iter()
        .map(|one| (one.index, one.id.as_str(), one.reasons.len()))
        .collect();
    assert_eq!(
        reasons,
        [(1, "a", 1), (2, "gadget_1", 3), (3, "gadget_2", 1)]
    );
    assert_eq!(skipped[2].reasons, ["Truncated pointer line: x"]);

    let calls = openai_calls(&read("🛠️[a b]\nc🛠️[/end]", None));
    assert_eq!(
        calls.tool_calls[0]["function"]["arguments"],
        r#"{"raw_args":"b","body":"c"}"#
    );
}
