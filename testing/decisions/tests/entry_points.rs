//! The entry points: everything that runs, sends or counts calls.

use std::sync::Arc;

use plaincall_gateway::ToolMode;
use plaincall_gateway::translation::ClientApi;
use plaincall_reply::extract::Extractor;
use plaincall_reply::openai::openai_calls;
use plaincall_reply::{Document, ReplyCheck, ReplyItem, ReplyReader, Unclosed};
use plaincall_report::diagnostics::{Diagnostics, RunSettings};
use plaincall_report::source::Source;
use plaincall_report::trace::Trace;
use plaincall_tool::Limits;
use serde_json::Value;

use crate::decision::{Decision, Outcome, Seen};
use crate::differences::Difference::{self, *};
use crate::gateway::{Form, sent};
use crate::run;
use crate::texts::Reply;
use crate::tools::Tools;

/// Something that runs, sends or counts the calls of a reply.
pub(crate) struct EntryPoint {
    pub(crate) name: &'static str,
    pub(crate) decide: fn(&Tools, &Reply) -> Seen,
    /// The differences that the rules allow it.
    pub(crate) differences: &'static [Difference],
}

const fn entry_point(
    name: &'static str,
    decide: fn(&Tools, &Reply) -> Seen,
    differences: &'static [Difference],
) -> EntryPoint {
    EntryPoint {
        name,
        decide,
        differences,
    }
}

/// The gateway in this mode and this API.
macro_rules! serve {
    ($name:literal, $mode:ident, $api:ident, $is_streamed:literal, $differences:expr) => {
        entry_point(
            $name,
            |tools, reply| {
                let form = Form {
                    mode: ToolMode::$mode,
                    api: ClientApi::$api,
                    is_streamed: $is_streamed,
                };
                sent(tools, form, reply)
            },
            $differences,
        )
    };
}

const WHOLE: &[Difference] = &[NoFiles, NoEffects, NoGate, UpToFirstInvalid];
const STREAMED: &[Difference] = &[NoFiles, NoEffects, NoGate, UpToFirstInvalid, AlreadySent];
const NATIVE: &[Difference] = &[NoFiles, NoEffects, NoGate, NativeCandidates];

/// All entry points. The first one is what the others are compared with.
pub(crate) const ENTRY_POINTS: &[EntryPoint] = &[
    entry_point("run", run::whole, &[]),
    entry_point("run, streamed", run::streamed, &[AlreadySent]),
    entry_point("ask", run::ask, &[AlreadySent]),
    entry_point("durable", run::durable, &[]),
    entry_point("reader", reader, &[]),
    entry_point("reader, in pieces", reader_in_pieces, &[]),
    entry_point("document", document, &[]),
    entry_point("planned", planned, &[]),
    entry_point("extract", extract, &[NoGate]),
    #[cfg(feature = "tables")]
    entry_point("table", crate::arrow::table, &[NoGate]),
    entry_point("parse --format openai", openai, &[NoGate, OtherSentence]),
    entry_point("check", check, &[NoGate, NoReasons]),
    serve!("serve, text, chat", Text, Chat, false, WHOLE),
    serve!("serve, text, chat, streamed", Text, Chat, true, STREAMED),
    serve!("serve, text, messages", Text, Messages, false, WHOLE),
    serve!(
        "serve, text, messages, streamed",
        Text,
        Messages,
        true,
        STREAMED
    ),
    serve!("serve, text, responses", Text, Responses, false, WHOLE),
    serve!(
        "serve, text, responses, streamed",
        Text,
        Responses,
        true,
        STREAMED
    ),
    serve!("serve, text, ollama", Text, Ollama, false, WHOLE),
    serve!(
        "serve, text, ollama, streamed",
        Text,
        Ollama,
        true,
        STREAMED
    ),
    serve!("serve, native, chat", Native, Chat, false, NATIVE),
    serve!("serve, native, chat, streamed", Native, Chat, true, NATIVE),
    serve!("serve, native, messages", Native, Messages, false, NATIVE),
    serve!(
        "serve, native, messages, streamed",
        Native,
        Messages,
        true,
        NATIVE
    ),
    serve!("serve, native, responses", Native, Responses, false, NATIVE),
    serve!(
        "serve, native, responses, streamed",
        Native,
        Responses,
        true,
        NATIVE
    ),
    serve!("serve, native, ollama", Native, Ollama, false, NATIVE),
    serve!(
        "serve, native, ollama, streamed",
        Native,
        Ollama,
        true,
        NATIVE
    ),
];

fn reply_check(reply: &Reply) -> ReplyCheck {
    ReplyCheck::new(&reply.dialect().for_reply(), Unclosed::Reject).unwrap()
}

fn read(tools: &Tools, reply: &Reply, piece: usize) -> Seen {
    let dialect = reply.dialect().for_reply();
    let limits = Limits::for_running();
    let reader = ReplyReader::new(&dialect, &*tools.set, reply_check(reply), limits);
    let mut reader = reader.unwrap();
    let mut items = Vec::new();
    for piece in reply.text.as_bytes().chunks(piece) {
        items.extend(reader.feed(piece).map(ReplyItem::into_owned));
    }
    items.extend(reader.finish(reply.stop()).items);
    let mut decisions = Vec::new();
    for item in items {
        match item {
            ReplyItem::Call(read) => {
                let arguments = read.decision.is_ok().then(|| read.value()).flatten();
                let held = read.decision.as_ref().map(Option::as_ref);
                decisions.push(Decision::of(&read.call.name, arguments, held));
            }
            ReplyItem::MaybeReasoning { from, error } => {
                for decision in &mut decisions[from..] {
                    // A call that is invalid has its reason already.
                    if !matches!(decision.outcome, Outcome::Rejected(_)) {
                        *decision = Decision::rejected(&decision.name, Some(error.to_string()));
                    }
                }
            }
            _ => {}
        }
    }
    decisions.into()
}

/// `reader` of a toolbox, in Python and npm.
fn reader(tools: &Tools, reply: &Reply) -> Seen {
    read(tools, reply, usize::MAX)
}

fn reader_in_pieces(tools: &Tools, reply: &Reply) -> Seen {
    read(tools, reply, 3)
}

fn decided(tools: &Tools, reply: &Reply) -> Document {
    let dialect = reply.dialect().for_reply();
    let (check, tools) = (reply_check(reply), Some(&*tools.set));
    Document::read(&reply.text, &dialect, tools, check, reply.stop()).unwrap()
}

/// `parse` of a toolbox, in Python and npm. It also returns the arguments of rejected calls.
pub(crate) fn document(tools: &Tools, reply: &Reply) -> Seen {
    let read = decided(tools, reply);
    let decisions = read.decided().map(|read| {
        let decided = read.decision.as_ref().map(Option::as_ref);
        Decision {
            arguments: read.value(),
            ..Decision::of(&read.call.name, None, decided)
        }
    });
    decisions.collect::<Vec<_>>().into()
}

/// The inspector; and `execute` in Python and npm, which adds the same plan to a document.
fn planned(tools: &Tools, reply: &Reply) -> Seen {
    let read = decided(tools, reply);
    let trace = Trace::of_reply(&read, Some(&tools.set), reply.stop());
    let calls = trace.calls.iter().zip(read.decided());
    let decisions = calls.map(|(call, read)| match call.planned {
        Some(_) => Decision::of(&call.name, read.value(), Ok(read.held())),
        None => Decision::rejected(&call.name, call.error.as_deref().map(str::to_owned)),
    });
    decisions.collect::<Vec<_>>().into()
}

pub(crate) fn row_call(
    name: &str,
    may_run: bool,
    arguments: Option<&str>,
    error: Option<&str>,
) -> Decision {
    if may_run {
        let arguments = arguments.map(|text| serde_json::from_str(text).unwrap());
        Decision::runs(name, arguments)
    } else {
        Decision::rejected(name, error.map(str::to_owned))
    }
}

pub(crate) fn extractor(tools: &Tools, reply: &Reply) -> Extractor {
    let dialect = reply.dialect().for_reply();
    let tools = Some(Arc::clone(&tools.set));
    Extractor::new(&dialect, Unclosed::Reject, tools, reply.stop()).unwrap()
}

/// `extract` with lines.
fn extract(tools: &Tools, reply: &Reply) -> Seen {
    let row = extractor(tools, reply).row(&reply.text);
    let calls = row.calls.iter();
    let decisions = calls.map(|call| {
        let (arguments, error) = (call.arguments.as_deref(), call.error.as_deref());
        row_call(&call.name, call.may_run, arguments, error)
    });
    decisions.collect::<Vec<_>>().into()
}

/// `parse --format openai`.
fn openai(tools: &Tools, reply: &Reply) -> Seen {
    let dialect = reply.dialect().for_reply();
    let (check, tools) = (reply_check(reply).without_gate(), Some(&*tools.set));
    let document = Document::read(&reply.text, &dialect, tools, check, reply.stop()).unwrap();
    let found = openai_calls(&document);
    let mut valid = found.tool_calls.iter();
    let decisions = document.calls().map(|call| {
        let skipped = found
            .skipped
            .iter()
            .find(|skipped| skipped.index == call.index);
        if let Some(skipped) = skipped {
            return Decision::rejected(&call.name, Some(skipped.reasons.join("; ")));
        }
        let arguments = &valid.next().unwrap()["function"]["arguments"];
        let arguments = serde_json::from_str::<Value>(arguments.as_str().unwrap());
        Decision::runs(&call.name, Some(arguments.unwrap()))
    });
    decisions.collect::<Vec<_>>().into()
}

/// Diagnostics of `check` that are warnings, although nothing runs such a call without approval.
const HELD: &str = "end_marker_in_value";
/// The diagnostic of a reasoning close marker; the calls before it have diagnostics of their own.
const STRAY_CLOSE: &str = "stray_reasoning_close";

/// `check`.
fn check(tools: &Tools, reply: &Reply) -> Seen {
    let dialect = reply.dialect().for_reply();
    let source = Source::new("reply".to_owned(), reply.text.clone().into_bytes());
    let settings = RunSettings {
        dialect: &dialect,
        tools: Some(&tools.set),
        unclosed: Unclosed::Reject,
        stop: reply.stop(),
    };
    let found = Diagnostics::of(&source, &reply.dialect(), settings).unwrap();
    let document = Document::parse(&reply.text, &dialect).unwrap();
    let calls = document.calls();
    let mut decisions: Vec<Decision> = calls.map(|call| Decision::runs(&call.name, None)).collect();
    for entry in &found.diagnostics {
        let diagnostic = &entry.diagnostic;
        let is_rejection = diagnostic.is_error() || diagnostic.code == HELD;
        if !is_rejection || diagnostic.code == STRAY_CLOSE {
            continue;
        }
        let at = diagnostic.span.start;
        // Where one call ends, the next one may begin.
        let spans: Vec<_> = document.calls().map(|call| call.span).collect();
        let place = spans
            .iter()
            .rposition(|span| (span.start..=span.end).contains(&at));
        if let Some(place) = place {
            decisions[place].outcome = Outcome::Rejected(None);
        }
    }
    decisions.into()
}
