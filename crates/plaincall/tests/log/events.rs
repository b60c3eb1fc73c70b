//! Events of all kinds to write and read.

use std::collections::BTreeMap;
use std::num::NonZeroU32;
use std::sync::Arc;
use std::time::Duration;

use plaincall::events::{
    Admission, AdmittedBy, Appeared, ArgumentTexts, Author, AwaitingApproval, BackOff, CallRef,
    Cancel, Completed, DamagedEnd, Delta, DirectoryBegin, HeldReason, Lagged, LogFailed, Message,
    ReplyEnd, Resumed, RunBegin, Source, Started, SubagentText, SubmittedArguments, ToolBegin,
    TurnBegin, TurnEnd, UntrustedText, Usage,
};
use plaincall::log::{LOG_VERSION, LineEncoder, TornTail};
use plaincall::policy::{Dependents, Echoes, Order, Retry, ToolPolicy, Writes};
use plaincall::reply::Unclosed;
use plaincall::reply::{SuspectMarker, Untrusted};
use plaincall::result::{Because, Cause, Link, StatusCounts};
use plaincall::rules::Rule;
use plaincall::tool::Limits;
use plaincall::{CallResult, Effect, Policy, Rules, RunEvent, Status, Stop};
use serde::de::DeserializeOwned;
use serde_json::json;

/// Builds an event, or a part of one, from its fields. A program can only receive them.
macro_rules! build {
    (@ $field:ident) => { $field };
    (@ $field:ident $value:expr) => { $value };
    ($kind:ident { $($field:ident $(: $value:expr)?),* $(,)? }) => {{
        let mut event: $kind = minimal();
        $(event.$field = build!(@ $field $($value)?);)*
        event
    }};
}

/// Reads an event from JSON with the required keys of all kinds.
fn minimal<T: DeserializeOwned>() -> T {
    let json = r#"{
        "version": 0, "plaincall": "", "began_unix_ms": 0, "policy": {}, "tools": {}, "path": "", "temporary": false,
        "effect": "read", "timeout_ms": 0, "grace_ms": 0, "count": 0, "t_ms": 0, "call": 0, "id": "", "name": "",
        "number": 0, "author": "user", "text": "", "turn": 0, "bytes": 0, "arguments": {}, "by": "rule", "attempt": 0,
        "error": "", "wait_ms": 0, "reason": "", "stop": "natural", "link": "order", "root": {"call": 0, "id": ""},
        "counts": {"ok": 0, "error": 0, "skipped": 0, "rejected": 0, "cancelled": 0, "unknown": 0}
    }"#;
    serde_json::from_str(json).unwrap()
}

fn suspect(fields: serde_json::Value) -> SuspectMarker {
    serde_json::from_value(fields).unwrap()
}

/// Texts that are difficult to write in JSON or on one line.
pub(crate) const HARD_TEXTS: &[&str] = &[
    "",
    " ",
    "\"\\\"",
    "\n\r\n\r",
    "\0\u{1}\u{7f}\u{85}",
    "\u{2028}\u{2029}\u{feff}",
    "🛠️[/end] e\u{301} \u{10ffff}",
    "\",\"crc\":\"00000000\"}\n{\"n\":0,\"event\":\"run\"}",
    "99999999999999999999999999999999.5e999",
    "</script>",
];

/// Returns the lines of these events.
pub(crate) fn lines(events: &[RunEvent]) -> String {
    let mut encoder = LineEncoder::default();
    events
        .iter()
        .map(|event| encoder.next_line(event))
        .collect()
}

pub(crate) fn at(milliseconds: u64) -> Duration {
    Duration::from_millis(milliseconds)
}

/// The start of a run with defaults.
pub(crate) fn begin() -> RunEvent {
    RunEvent::Run(Box::new(build!(RunBegin {
        version: LOG_VERSION,
        plaincall: "0.1.0".to_owned(),
        began_unix_ms: 1_800_000_000_000,
        policy: Policy::default(),
        tools: BTreeMap::new(),
        current_directory: None,
        directory: None,
        rules: Rules::default(),
        note: json!(null),
    })))
}

/// The start of a run with every field.
pub(crate) fn begin_with_everything() -> RunEvent {
    let policy = Policy::default()
        .concurrent(0)
        .calls_per_turn(Some(u32::MAX))
        .block_order(Order::StopOnError)
        .emoji_order(Order::Graph)
        .turn_timeout(Some(at(u64::MAX)))
        .gate_timeout(Duration::ZERO)
        .writes(Writes::AtEndOfTurn)
        .unclosed(Unclosed::Run)
        .result_limit(0)
        .echoes(Echoes::Ignored)
        .untrusted_limit(0)
        .dependency_limit(0)
        .dependency_total(1)
        .limits(Limits::for_reading());
    let mut copy = ToolPolicy::default();
    copy.timeout = at(1);
    copy.grace = at(u64::MAX);
    copy.max_concurrent = NonZeroU32::new(3);
    copy.exclusive = true;
    copy.retry = Some(Retry::attempts(u32::MAX).waits(at(500), at(30_000)));
    copy.dependents = Dependents::Fallback("no \"copy\"".to_owned());
    copy.finishes = true;
    let tool = |effect, policy| build!(ToolBegin { effect, policy });
    let mut look = ToolPolicy::default();
    look.dependents = Dependents::Run;
    RunEvent::Run(Box::new(build!(RunBegin {
        version: LOG_VERSION,
        plaincall: "0.1.0".to_owned(),
        began_unix_ms: u64::MAX,
        policy,
        tools: BTreeMap::from([
            ("Look".to_owned(), tool(Effect::Read, look)),
            ("copy\n\"".to_owned(), tool(Effect::Idempotent, copy)),
            (
                "write-file".to_owned(),
                tool(Effect::Write, ToolPolicy::default()),
            ),
        ]),
        current_directory: Some("/home/\u{7f}".to_owned()),
        directory: Some(build!(DirectoryBegin {
            path: "/tmp/a b\u{2028}".to_owned(),
            temporary: true,
        })),
        rules: Rules::new([
            Rule::deny(["send", "**"], "no \"keys\"")
                .effect(Effect::Write)
                .argument("path", "**.key"),
            Rule::allow(["look-*"]),
            Rule::ask(["?"]),
        ]),
        note: json!({"z": [1, -1, u64::MAX, i64::MIN, 0.1, 1e300, null], "a": {"": "\u{0}"}, "crc": "x", "n": 7}),
    })))
}

/// Every kind of event with every field, after the start of a run.
#[allow(clippy::too_many_lines, reason = "it is a list")]
pub(crate) fn every_kind() -> Vec<RunEvent> {
    let id: Arc<str> = "copy_1".into();
    let name: Arc<str> = "copy".into();
    let moment = |call| {
        build!(CallRef {
            call,
            id: Arc::clone(&id),
            name: Arc::clone(&name),
            at: at(12),
        })
    };
    let arguments = ArgumentTexts(vec![
        ("b/0".to_owned(), "1\r".to_owned()),
        ("a".to_owned(), String::new()),
        // A call cannot have the same argument twice, but the log does not lose it.
        ("a".to_owned(), "2".to_owned()),
    ]);
    let cause = |call: u32| {
        build!(Cause {
            call,
            id: format!("x_{call}").into(),
        })
    };
    let mut counts = StatusCounts::default();
    counts.ok = 1;
    counts.error = 2;
    counts.skipped = 3;
    counts.rejected = 4;
    counts.cancelled = 5;
    counts.unknown = u32::MAX;
    let mut events = vec![
        untrusted(None),
        untrusted(Some("!!!GADGET_START:copy\n")),
        RunEvent::Message(build!(Message {
            author: Author::User,
            text: "What?\n".into(),
            at: at(0),
        })),
        RunEvent::Message(build!(Message {
            author: Author::Program,
            text: "".into(),
            at: at(u64::MAX),
        })),
        RunEvent::Turn(build!(TurnBegin {
            turn: 0,
            calls: None,
            at: at(0),
        })),
        RunEvent::Turn(build!(TurnBegin {
            turn: 1,
            calls: Some(0),
            at: at(0),
        })),
        RunEvent::Text(delta(b"Let me see.\n")),
        RunEvent::Text(delta(b"\xf0\x9f\x9b\x00\xff")),
        RunEvent::Text(delta(b"")),
        RunEvent::Call(build!(Appeared {
            call: u32::MAX,
            id: Arc::clone(&id),
            name: Arc::clone(&name),
            dependencies: Arc::new(["a".to_owned(), String::new()]),
            submitted: Some(Arc::new(SubmittedArguments::Texts(arguments.clone()))),
            parent: Some(u32::MAX),
            at: at(u64::MAX),
        })),
        RunEvent::Call(build!(Appeared {
            call: 0,
            id: "".into(),
            name: "".into(),
            dependencies: Arc::new([]),
            submitted: Some(Arc::new(json!({"b": [1.5, null, "\n"], "": {}}).into())),
            parent: None,
            at: at(3),
        })),
        RunEvent::Waiting(build!(Completed {
            call: 0,
            id: Arc::clone(&id),
            name: Arc::clone(&name),
            arguments: arguments.clone(),
            at: at(3),
        })),
        RunEvent::Ready(at_gate(None)),
        RunEvent::Start(build!(Started {
            call: 0,
            id: Arc::clone(&id),
            name: Arc::clone(&name),
            attempt: 1,
            at: at(4),
        })),
        subagent_text("Let me see.\n", None, None),
        subagent_text("", Some(Stop::Natural), Some(Usage::new(12, 3))),
        RunEvent::BackOff(build!(BackOff {
            call: 0,
            id: Arc::clone(&id),
            name: Arc::clone(&name),
            error: "it did not answer".into(),
            wait: at(500),
            at: at(5),
        })),
        RunEvent::Retry(moment(0)),
        result(Status::Skipped, |result| {
            result.output = Some("a part".into());
            result.whole_bytes = Some(u64::MAX);
            result.error = Some("it failed".into());
            result.note = Some("a user edited the arguments".into());
            result.because = Some(build!(Because {
                link: Link::Dependency,
                direct: cause(3),
                root: cause(1),
            }));
        }),
        result(Status::Skipped, |result| {
            result.because = Some(build!(Because {
                link: Link::Order,
                direct: cause(0),
                root: cause(0),
            }));
        }),
        RunEvent::Resumed(build!(Resumed {
            call: None,
            at: at(7),
        })),
        RunEvent::Resumed(build!(Resumed {
            call: Some(1),
            at: at(7),
        })),
        RunEvent::DamagedEnd(build!(DamagedEnd {
            bytes: 87,
            at: at(7),
        })),
        RunEvent::TurnEnd(build!(TurnEnd {
            turn: 0,
            counts,
            at: at(9),
        })),
        RunEvent::LogFailed(build!(LogFailed {
            error: "no space is left".into(),
            at: at(10),
        })),
        RunEvent::Lagged(build!(Lagged { count: u64::MAX })),
    ];
    events.extend(every_word());
    events
}

/// The events with a field of a few values, with each of these values.
fn every_word() -> Vec<RunEvent> {
    let mut events = Vec::new();
    for by in [AdmittedBy::Rule, AdmittedBy::Always, AdmittedBy::Gate] {
        for always in [false, true] {
            events.push(RunEvent::Admitted(build!(Admission {
                call: 0,
                id: "copy_1".into(),
                name: "copy".into(),
                by,
                reason: always.then(|| "a person approved it".into()),
                always,
                arguments: always.then(|| ArgumentTexts(vec![("a".to_owned(), "2".to_owned())])),
                at: at(4),
            })));
        }
    }
    let sources = [
        HeldReason::Result {
            call: 3,
            id: "x_3".into(),
        },
        HeldReason::Untrusted {
            number: 0,
            name: "page".into(),
        },
        HeldReason::UntrustedLimit,
        HeldReason::EndMarker(suspect(
            json!({"found": "!!!GADGT_END", "suggestion": "!!!GADGET_END", "line": 4, "pointer": "text"}),
        )),
        HeldReason::EndMarker(suspect(json!({"found": "🛠️[a]", "line": 2}))),
    ];
    events.extend(sources.map(|held| RunEvent::Ready(at_gate(Some(held)))));
    for stop in [Stop::Natural, Stop::EndOfFile, Stop::Length, Stop::Broken] {
        events.push(RunEvent::ReplyEnd(build!(ReplyEnd { stop, at: at(8) })));
    }
    let many = Usage::new(u64::MAX, u64::MAX).cached(u64::MAX);
    for usage in [Usage::default(), many] {
        events.push(RunEvent::ReplyEnd(build!(ReplyEnd {
            usage: Some(usage),
            at: at(8),
        })));
    }
    for (call, timed_out) in [(None, false), (None, true), (Some(0), false)] {
        events.push(RunEvent::Cancel(build!(Cancel {
            call,
            reason: "the run was stopped".into(),
            timed_out,
            at: at(8),
        })));
    }
    for status in Status::ALL {
        events.push(result(status, |_| {}));
    }
    events
}

/// The text in every field that can contain untrusted text.
pub(crate) fn everywhere(text: &str) -> Vec<RunEvent> {
    let call = 1;
    let (id, name): (Arc<str>, Arc<str>) = (text.into(), text.into());
    vec![
        untrusted(Some(text)),
        RunEvent::Text(delta(text.as_bytes())),
        RunEvent::Call(build!(Appeared {
            call,
            id: Arc::clone(&id),
            name: Arc::clone(&name),
            dependencies: Arc::new([text.to_owned()]),
            submitted: Some(Arc::new(json!({text: [text]}).into())),
            parent: None,
            at: at(1),
        })),
        RunEvent::Waiting(build!(Completed {
            call,
            id: Arc::clone(&id),
            name: Arc::clone(&name),
            arguments: ArgumentTexts(vec![(text.to_owned(), text.to_owned())]),
            at: at(1),
        })),
        RunEvent::BackOff(build!(BackOff {
            call,
            id,
            name,
            error: text.into(),
            wait: at(1),
            at: at(1),
        })),
        subagent_text(text, None, None),
        result(Status::Error, |result| {
            result.output = Some(text.into());
            result.error = Some(text.into());
            result.note = Some(text.into());
        }),
        RunEvent::Cancel(build!(Cancel {
            call: None,
            reason: text.into(),
            timed_out: false,
            at: at(1),
        })),
    ]
}

/// An untrusted text, and its relevant part.
fn untrusted(text: Option<&str>) -> RunEvent {
    RunEvent::Untrusted(build!(UntrustedText {
        number: 0,
        name: text.unwrap_or("page").into(),
        text: text.map(|text| Arc::new(Untrusted::new(text.to_owned()))),
        at: at(1),
    }))
}

fn subagent_text(text: &str, stop: Option<Stop>, usage: Option<Usage>) -> RunEvent {
    RunEvent::SubagentText(build!(SubagentText {
        text: text.into(),
        stop,
        usage,
        at: at(4),
    }))
}

fn at_gate(held: Option<HeldReason>) -> AwaitingApproval {
    build!(AwaitingApproval {
        call: 0,
        id: "copy_1".into(),
        name: "copy".into(),
        held,
        at: at(12),
    })
}

pub(crate) fn delta(bytes: &[u8]) -> Delta {
    build!(Delta {
        source: Source::from(bytes),
        at: at(2),
    })
}

fn result(status: Status, change: impl FnOnce(&mut CallResult)) -> RunEvent {
    let mut result = CallResult::new(0, "copy_1", "copy", status);
    result.times.ended = at(6);
    change(&mut result);
    RunEvent::Result(result)
}

/// Returns the line, the size and `may_be_start` of an unfinished end.
pub(crate) fn torn_fields(torn: &TornTail) -> (u64, usize, bool) {
    (torn.line, torn.bytes, torn.may_be_start)
}
