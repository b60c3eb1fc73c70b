//! The interpretation of a reply, and its calls.

use plaincall_grammar::Engine;
use plaincall_reply::ToolCall;
use plaincall_report::diagnostics::{Diagnostics, Entry};
use plaincall_report::source::Counter;
use plaincall_report::trace::Trace;
use plaincall_syntax::{ByteParser, Syntax};
use plaincall_tool::{Argument, Arguments, ToolSpec};
use serde::Serialize;
use serde_json::Value;

use crate::parts::{Part, Parts};
use crate::settings::Inspected;

/// The interpretation of a reply. Positions are bytes of the text.
#[derive(Serialize)]
pub(crate) struct Reply {
    /// The text, if the page has other bytes, because they are not UTF-8.
    text: Option<String>,
    syntax: Option<&'static str>,
    parts: Vec<Part>,
    diagnostics: Vec<DiagnosticView>,
    /// How many calls there are.
    calls: usize,
    tools: Option<usize>,
    engines: Vec<&'static str>,
}

/// The calls of a reply.
#[derive(Serialize)]
pub(crate) struct Calls {
    trace: Trace,
    /// More about each call of the trace.
    views: Vec<CallView>,
}

#[derive(Serialize)]
struct DiagnosticView {
    code: &'static str,
    severity: &'static str,
    message: String,
    help: Option<String>,
    suggestion: Option<String>,
    /// The section of the specification.
    rule: String,
    start: usize,
    end: usize,
    line: usize,
    column: usize,
}

#[derive(Serialize)]
struct CallView {
    start: usize,
    line: usize,
    syntax: &'static str,
    termination: &'static str,
    is_id_automatic: bool,
    values: Vec<ValueView>,
    problems: Vec<String>,
}

/// A value, and how it was read.
#[derive(Serialize)]
struct ValueView {
    pointer: String,
    text: String,
    json: Option<String>,
    declared: Option<String>,
    rule: Option<String>,
    start: usize,
}

pub(crate) fn reply(inspected: &Inspected) -> Result<Reply, String> {
    let source = &inspected.source;
    let run = inspected.run();
    let mut parser = ByteParser::new(run.dialect).map_err(|error| error.to_string())?;
    let mut parts = Parts::default();
    for event in parser.feed(source.text.as_bytes()) {
        parts.push(&event);
    }
    for event in parser.finish() {
        parts.push(&event);
    }
    let found = Diagnostics::of(source, &inspected.given, run);
    let found = found.map_err(|error| error.to_string())?;
    let mut counter = Counter::new(source.text.as_bytes());
    let diagnostics = found.diagnostics.into_iter();
    let diagnostics = diagnostics.map(|entry| diagnostic(entry, &mut counter));
    Ok(Reply {
        text: source.replaced().map(|_| source.text.clone()),
        syntax: parts.syntax.map(Syntax::name),
        calls: parts.calls,
        parts: parts.list,
        diagnostics: diagnostics.collect(),
        tools: run.tools.map(|tools| tools.iter().count()),
        engines: Engine::ALL.map(Engine::name).to_vec(),
    })
}

pub(crate) fn calls(inspected: &Inspected) -> Result<Calls, String> {
    let run = inspected.run();
    let read = inspected.decided()?;
    let mut counter = Counter::new(inspected.source.text.as_bytes());
    let mut views = Vec::new();
    for read in read.decided() {
        let call = &read.call;
        let tool = run.tools.and_then(|tools| tools.get(&call.name));
        let bound = read.binding.as_ref();
        let bound = bound.and_then(|binding| binding.arguments.as_deref().ok());
        let problems = read.errors().map(|it| it.message.clone());
        views.push(CallView {
            start: call.span.start,
            line: counter.position(call.span.start).0,
            syntax: call.syntax.name(),
            termination: call.termination.name(),
            is_id_automatic: call.is_id_automatic,
            values: values(call, tool, bound),
            problems: problems.collect(),
        });
    }
    let mut trace = Trace::of_reply(&read, run.tools, run.stop);
    // The page shows the text itself.
    trace
        .turns
        .iter_mut()
        .for_each(|turn| turn.segments.clear());
    Ok(Calls { trace, views })
}

fn diagnostic(entry: Entry, counter: &mut Counter<'_>) -> DiagnosticView {
    let found = entry.diagnostic;
    let (line, column) = counter.position(found.span.start);
    DiagnosticView {
        code: found.code,
        severity: found.severity.name(),
        rule: found.section.to_string(),
        message: found.message,
        help: entry.help,
        suggestion: entry.suggestion,
        start: found.span.start,
        end: found.span.end,
        line,
        column,
    }
}

/// Returns the values of a call: bound, or as written if they are not valid.
fn values(call: &ToolCall, tool: Option<&ToolSpec>, bound: Option<&Arguments>) -> Vec<ValueView> {
    if bound.is_none() && call.syntax == Syntax::Emoji {
        let raw = |pointer: &str, text: Option<&str>, span: Option<plaincall_syntax::Span>| {
            let span = span.unwrap_or_default();
            text.filter(|text| !text.is_empty()).map(|text| ValueView {
                pointer: pointer.to_owned(),
                text: text.to_owned(),
                json: None,
                declared: None,
                rule: None,
                start: span.start,
            })
        };
        let line = raw("(line)", call.raw_args.as_deref(), call.raw_args_span());
        let body = raw("(body)", call.body(), call.body_span());
        return line.into_iter().chain(body).collect();
    }
    // Without tools, coercion decides. With tools, invalid arguments have no value.
    let is_read = bound.is_some() || tool.is_none();
    let arguments = bound.unwrap_or(&call.arguments);
    let json = arguments.to_value();
    let view = |argument: Argument<'_>| ValueView {
        pointer: argument.pointer.to_owned(),
        text: argument.text.to_owned(),
        json: json
            .pointer(&format!("/{}", argument.pointer))
            .filter(|_| is_read)
            .map(Value::to_string),
        declared: tool.and_then(|tool| tool.schema().expected(argument.pointer)),
        rule: is_read.then(|| argument.rule.to_string()),
        start: argument.span.start,
    };
    arguments.iter().map(view).collect()
}
