//! Plaincall's own parser, with the interface of a parser under test.

use std::io::{self, BufRead as _};

use plaincall_call::{Document, ReplyCheck, Stop, ToolSet, ToolSpec, Unclosed};
use plaincall_syntax::{
    Call, Dialect, Escaper, Event, EventKind, Slot, near_misses, parse, render,
};
use serde::Deserialize;
use serde_json::{Map, Value, json};

use crate::output::Output;
use crate::status::{Failure, Outcome, Status};

/// A request: one line of standard input.
#[derive(Deserialize)]
struct Request {
    operation: Operation,
    dialect: DialectChoice,
    input: Value,
    schema: Option<Map<String, Value>>,
}

#[derive(Clone, Copy, Deserialize)]
#[serde(rename_all = "snake_case")]
enum Operation {
    Read,
    Render,
    Escape,
    Near,
}

#[derive(Default, Deserialize)]
#[serde(default, deny_unknown_fields)]
struct DialectChoice {
    syntax: String,
    start: Option<String>,
    end: Option<String>,
    arg: Option<String>,
    key: Option<String>,
    escaped: bool,
    anywhere: bool,
    strict: bool,
    self_closing: bool,
    reasoning: Option<[String; 2]>,
    leading_reasoning: Option<[String; 2]>,
    in_reasoning: bool,
}

impl DialectChoice {
    fn dialect(self) -> Result<Dialect, String> {
        let dialect = match self.syntax.as_str() {
            "block" => Dialect::block(),
            "emoji" => Dialect::emoji(),
            "auto" => Dialect::auto(),
            other => return Err(format!("unknown syntax {other:?}")),
        };
        let dialect = set(dialect, self.start, Dialect::start);
        let dialect = set(dialect, self.end, Dialect::end);
        let dialect = set(dialect, self.arg, Dialect::arg);
        let dialect = set(dialect, self.key, Dialect::keyed);
        let dialect = set(dialect, self.reasoning, |it, [open, close]| {
            it.reasoning(open, close)
        });
        let dialect = set(dialect, self.leading_reasoning, |it, [open, close]| {
            it.leading_reasoning(open, close)
        });
        let dialect = switch(dialect, self.escaped, Dialect::escaped);
        let dialect = switch(dialect, self.anywhere, Dialect::markers_anywhere);
        let dialect = switch(dialect, self.strict, Dialect::strict);
        let dialect = switch(dialect, self.self_closing, Dialect::self_closing);
        let dialect = switch(dialect, self.in_reasoning, Dialect::in_reasoning);
        Ok(dialect)
    }
}

/// Sets an option of the dialect if `value` is set.
fn set<T>(dialect: Dialect, value: Option<T>, set: impl FnOnce(Dialect, T) -> Dialect) -> Dialect {
    match value {
        Some(value) => set(dialect, value),
        None => dialect,
    }
}

/// Enables an option of the dialect if `is_on`.
fn switch(dialect: Dialect, is_on: bool, enable: impl FnOnce(Dialect) -> Dialect) -> Dialect {
    set(dialect, is_on.then_some(()), |dialect, ()| enable(dialect))
}

/// Answers each line of standard input with a line of standard output.
pub(super) fn answer_lines(output: &mut Output) -> Outcome {
    for line in io::stdin().lock().lines() {
        let line =
            line.map_err(|error| Failure::Runtime(format!("cannot read standard input: {error}")))?;
        let request = serde_json::from_str(&line).map_err(|error| error.to_string());
        let answer = request
            .and_then(answer)
            .unwrap_or_else(|error| json!({"error": error}));
        output.json_line(&answer)?;
        output.flush()?;
    }
    Ok(Status::Success)
}

fn answer(request: Request) -> Result<Value, String> {
    let dialect = request.dialect.dialect()?;
    let text = || request.input.as_str().ok_or("`input` must be a string");
    match request.operation {
        Operation::Read => read(text()?, &dialect, request.schema.as_ref()),
        Operation::Escape => {
            let escaper = Escaper::new(&dialect).map_err(|error| error.to_string())?;
            Ok(json!({"text": escaper.escape(text()?)}))
        }
        Operation::Near => {
            let text = text()?;
            let misses = near_misses(text, &dialect).map_err(|error| error.to_string())?;
            let misses = misses
                .iter()
                .map(|miss| json!({"written": text.get(miss.span.range()), "suggestion": miss.suggestion}));
            Ok(json!({"near": misses.collect::<Vec<_>>()}))
        }
        Operation::Render => {
            let call = CallInput::deserialize(&request.input).map_err(|error| error.to_string())?;
            Ok(match render(&call.call(), &dialect) {
                Ok(text) => json!({"text": text}),
                Err(error) => json!({"refused": error.to_string()}),
            })
        }
    }
}

fn read(
    text: &str,
    dialect: &Dialect,
    schema: Option<&Map<String, Value>>,
) -> Result<Value, String> {
    let events = parse(text, dialect).map_err(|error| error.to_string())?;
    let events: Vec<_> = events.iter().filter_map(|it| event(it, text)).collect();
    let document = Document::parse(text, dialect).map_err(|error| error.to_string())?;
    let calls: Vec<Value> = match schema {
        None => document.calls().map(|call| json!(call)).collect(),
        Some(schema) => {
            let mut tools = ToolSet::default();
            for call in document.calls() {
                let tool = ToolSpec::new(call.name.as_str());
                let tool = tool.parameters_from_schema(&Value::Object(schema.clone()));
                // Several calls may name one tool.
                let _ = tools.add(tool.map_err(|error| error.to_string())?);
            }
            let check = ReplyCheck::new(dialect, Unclosed::Reject);
            let read = check
                .and_then(|check| Document::read(text, dialect, Some(&tools), check, Stop::Broken));
            let read = read.map_err(|error| error.to_string())?;
            read.decided().map(|call| json!(call)).collect()
        }
    };
    Ok(json!({"events": events, "calls": calls}))
}

/// Returns an event as `conformance/README.md` describes it. The end of a value has no event.
fn event(event: &Event<'_>, source: &str) -> Option<Value> {
    Some(match &event.kind {
        EventKind::Text(text) => json!({"type": "text", "text": &**text}),
        EventKind::Reasoning(text) => json!({"type": "reasoning", "text": &**text}),
        EventKind::ValueDelta(text) => json!({"type": "value", "text": &**text}),
        EventKind::Ignored(text) => json!({"type": "ignored", "text": &**text}),
        EventKind::CallStart(header) => match header.raw_args() {
            Some(raw_args) => json!({"type": "call", "name": header.name(), "raw_args": raw_args}),
            None => json!({
                "type": "call", "name": header.name(), "id": header.id(),
                "dependencies": header.dependencies().collect::<Vec<_>>(),
            }),
        },
        EventKind::ValueStart(Slot::Argument(pointer)) => {
            json!({"type": "argument", "pointer": pointer.as_str()})
        }
        EventKind::ValueStart(Slot::Body) => json!({"type": "body"}),
        EventKind::CallEnd(ending) => {
            json!({"type": "end", "termination": ending.termination().name()})
        }
        EventKind::Diagnostic(it) => json!({
            "type": "diagnostic", "code": it.code.name(), "text": source.get(event.span.range()),
        }),
        _ => return None,
    })
}

/// The input of `render`.
#[derive(Deserialize)]
struct CallInput {
    name: String,
    id: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
    #[serde(default)]
    arguments: Vec<(String, String)>,
    raw_args: Option<String>,
    #[serde(default)]
    body: String,
}

impl CallInput {
    fn call(&self) -> Call<'_> {
        let name = &self.name;
        match &self.raw_args {
            Some(raw_args) => Call::Emoji {
                name,
                raw_args,
                body: &self.body,
            },
            None => Call::Block {
                name,
                id: self.id.as_deref(),
                dependencies: self.dependencies.iter().map(String::as_str).collect(),
                arguments: self
                    .arguments
                    .iter()
                    .map(|(a, b)| (a.as_str(), b.as_str()))
                    .collect(),
            },
        }
    }
}
