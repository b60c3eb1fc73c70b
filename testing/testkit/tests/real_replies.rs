//! Replies of a real model, SmolLM2-135M-Instruct, to questions of a leaderboard, with and without grammars and examples. They are
//! read as they were when people looked at them, whole and in pieces.

#![allow(clippy::unwrap_used, reason = "a panic is how a test fails")]

use plaincall_reply::{Document, document::Segment};
use plaincall_syntax::{Dialect, Syntax};
use serde::Deserialize;

const REPLIES: &str = include_str!("../recordings/smollm2.jsonl");

#[derive(Deserialize, Debug, PartialEq)]
struct Recorded {
    syntax: String,
    reply: String,
    text: String,
    calls: Vec<Call>,
    near_misses: Vec<String>,
}

#[derive(Deserialize, Debug, PartialEq)]
struct Call {
    name: String,
    ends: String,
    problems: Vec<String>,
}

fn read(recorded: &Recorded) -> Recorded {
    let dialect = match &*recorded.syntax {
        "block" => Dialect::block(),
        _ => Dialect::emoji(),
    };
    let dialect = dialect.escaped();
    let document = Document::parse(&recorded.reply, &dialect).unwrap();
    let texts = document
        .segments
        .iter()
        .filter_map(|segment| match segment {
            Segment::Text { text, .. } => Some(&**text),
            _ => None,
        });
    let calls = document.decided().map(|read| Call {
        name: read.call.name.clone(),
        ends: read.call.termination.name().to_owned(),
        problems: read.diagnostics().map(|one| one.code.to_owned()).collect(),
    });
    let near = document.near_misses(&recorded.reply, &dialect).unwrap();
    Recorded {
        syntax: recorded.syntax.clone(),
        reply: recorded.reply.clone(),
        text: texts.collect(),
        calls: calls.collect(),
        near_misses: near.into_iter().map(|near| near.suggestion).collect(),
    }
}

#[test]
fn replies_of_a_real_model_keep_their_reading() {
    let recorded = REPLIES.lines().map(serde_json::from_str::<Recorded>);
    let recorded: Vec<Recorded> = recorded.collect::<Result<_, _>>().unwrap();
    assert_eq!(recorded.len(), 200);
    for expected in &recorded {
        assert_eq!(read(expected), *expected);
    }
    let with_calls = |syntax: Syntax| {
        let of_syntax = recorded.iter().filter(|one| one.syntax == syntax.name());
        of_syntax.filter(|one| !one.calls.is_empty()).count()
    };
    assert!(with_calls(Syntax::Block) > 50 && with_calls(Syntax::Emoji) > 50);
}
