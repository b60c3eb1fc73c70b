//! The rules for the deltas of a call's JSON (`spec/json-stream.md`), for every tool, call and split.

use plaincall_reply::collector::{Collected, Collector};
use plaincall_reply::{JsonStream, NotClosed, ToolCall, bind};
use plaincall_syntax::{Dialect, Event, Parser};
use plaincall_tool::{Arguments, Limits, ToolSpec};
use serde_json::Value;

use crate::schema_calls::{Choices, call, sample, schema};
use crate::untrusted::chunks;

/// The outcome of one call.
#[derive(Debug)]
pub struct Streamed {
    /// The text written after each chunk, up to the end of the call.
    pub deltas: Vec<String>,
    /// The text that closing added, or the error.
    pub rest: Result<String, NotClosed>,
    /// The error of the stream before it was closed.
    pub fault: Option<String>,
    /// The call.
    pub call: ToolCall,
    /// The arguments, if they were bound: the stream is closed with them.
    pub bound: Option<Arguments>,
}

impl Streamed {
    /// Returns the text written before the end of the call.
    pub fn begun(&self) -> String {
        self.deltas.concat()
    }
}

/// Returns the calls of a text that arrives in these chunks.
///
/// # Panics
/// Panics if the dialect is invalid.
pub fn stream<'t>(
    chunks: impl IntoIterator<Item = &'t str>,
    dialect: &Dialect,
    tool: &ToolSpec,
) -> Vec<Streamed> {
    stream_all(chunks, dialect, tool, Some(tool), Limits::default())
}

/// Like [`stream`], with limits. Without a tool, arguments are converted without a definition.
///
/// # Panics
/// Panics if the dialect is invalid.
pub fn stream_all<'t>(
    chunks: impl IntoIterator<Item = &'t str>,
    dialect: &Dialect,
    shape: &ToolSpec,
    tool: Option<&ToolSpec>,
    limits: Limits,
) -> Vec<Streamed> {
    let mut parser = Parser::new(dialect).expect("a dialect that works");
    let mut collector = Collector::new(limits);
    let mut streamed = Vec::new();
    let mut open: Option<(JsonStream<&ToolSpec>, Vec<String>)> = None;
    let mut take = |event: &Event<'_>, is_first: bool| {
        let collected = collector.push(event);
        if let Some(Collected::Started(_)) = &collected {
            open = Some((JsonStream::new(shape, limits), vec![String::new()]));
        }
        let Some((stream, deltas)) = &mut open else {
            return;
        };
        if is_first {
            deltas.push(String::new());
        }
        if let Some(delta) = deltas.last_mut() {
            stream.push(event, delta);
        }
        if let Some(Collected::Finished(call)) = collected
            && let Some((mut stream, deltas)) = open.take()
        {
            let bound = match tool {
                Some(tool) => bind(tool, &call).ok(),
                None => Some(call.arguments.clone()).filter(|_| call.parse_error.is_none()),
            };
            let fault = stream.error().map(str::to_owned);
            let mut rest = String::new();
            let arguments = bound.as_ref().unwrap_or(&call.arguments);
            let closed = stream.close(&call, arguments, &mut rest);
            streamed.push(Streamed {
                deltas,
                rest: closed.map(|()| rest),
                fault,
                call: *call,
                bound,
            });
        }
    };
    for chunk in chunks {
        for (place, event) in parser.feed(chunk).enumerate() {
            take(&event, place == 0);
        }
    }
    for (place, event) in parser.finish().enumerate() {
        take(&event, place == 0);
    }
    streamed
}

/// The numbers of the checked cases.
#[derive(Clone, Copy, Debug, Default)]
pub struct Tally {
    /// Calls.
    pub calls: usize,
    /// Calls with valid arguments.
    pub bound: usize,
    /// Valid calls that had more than the first key before they ended.
    pub early: usize,
}

/// Checks a text that arrives in chunks of these sizes.
///
/// # Errors
/// Returns an error that describes the violation.
pub fn check(
    text: &str,
    dialect: &Dialect,
    sizes: &[usize],
    tool: &ToolSpec,
) -> Result<Tally, String> {
    let mut tally = Tally::default();
    let whole = stream([text], dialect, tool);
    let cut = stream(chunks(text, sizes), dialect, tool);
    if whole.len() != cut.len() {
        return Err(format!("{} calls, cut {}", whole.len(), cut.len()));
    }
    for (whole, cut) in whole.iter().zip(&cut) {
        tally.calls += 1;
        if whole.rest != cut.rest || whole.begun() != cut.begun() {
            return Err(format!("the cuts show: {whole:?}\n{cut:?}"));
        }
        let begun = whole.begun();
        if serde_json::from_str::<Value>(&begun).is_ok() {
            return Err(format!("closed too early: {begun}"));
        }
        let Some(bound) = &whole.bound else {
            continue;
        };
        tally.bound += 1;
        tally.early += usize::from(begun.len() > 8);
        let value = bound.to_value();
        let text = value.to_string();
        match &whole.rest {
            // Members in the order of first appearance, and nothing twice.
            Ok(rest) if text.strip_prefix(&*begun) == Some(rest) => {}
            Ok(rest) => return Err(format!("{begun}\n{rest}\nand not {value}")),
            Err(error) => return Err(format!("{error}: {begun}\nof {value}")),
        }
    }
    Ok(tally)
}

/// Creates a tool, a text with a call of it, the dialect of the text, and the chunk sizes from bytes. Returns `None`
/// if no tool has such a schema.
pub fn case(bytes: &[u8]) -> Option<(ToolSpec, String, Dialect, Vec<usize>)> {
    let mut choices = Choices::new(bytes);
    let sizes = vec![choices.below(9) + 1, choices.below(5) + 1];
    let is_emoji = choices.below(4) == 3;
    let schema = schema(&mut choices);
    let mut tool = ToolSpec::new("t").parameters_from_schema(&schema).ok()?;
    if !is_emoji {
        let pairs = call(&schema, &mut choices);
        let lines = pairs
            .iter()
            .map(|(pointer, text)| format!("!!!ARG:{pointer}\n{text}\n"));
        let text = format!(
            "!!!GADGET_START:t\n{}!!!GADGET_END",
            lines.collect::<String>()
        );
        return Some((tool, text, Dialect::block(), sizes));
    }
    if choices.below(2) == 1 {
        tool = tool.body("p");
    }
    if choices.below(3) == 1 {
        tool = tool.positional(["q", "r"]);
    }
    tool.check().ok()?;
    let value = sample(&schema, &schema, &mut choices, 6);
    let word = |name: &str| match value.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(other) => other.to_string(),
        None => String::new(),
    };
    let usage = tool.usage();
    let line: Vec<String> = usage
        .line
        .iter()
        .map(|item| word(&item.parameter.name).replace([']', '\n'], ""))
        .collect();
    let body = match &usage.body {
        plaincall_tool::usage::UsageBody::Json => value.to_string(),
        plaincall_tool::usage::UsageBody::Parameter(parameter) => word(&parameter.name),
        plaincall_tool::usage::UsageBody::Nothing => String::new(),
    };
    let text = format!("🛠️[t {}]\n{body}🛠️[/end]", line.join(" "));
    Some((tool, text, Dialect::emoji(), sizes))
}

/// Checks the case that these bytes create.
///
/// # Errors
/// Returns an error that describes the violation and its case.
pub fn check_bytes(bytes: &[u8]) -> Result<Tally, String> {
    let Some((tool, text, dialect, sizes)) = case(bytes) else {
        return Ok(Tally::default());
    };
    let found = check(&text, &dialect, &sizes, &tool);
    found.map_err(|error| format!("{error}\n{}\n{text}", tool.to_schema()))
}
