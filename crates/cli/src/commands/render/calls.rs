//! Calls as JSON in, text out.

use std::path::Path;

use plaincall_call::{
    Document, ToolLookup as _, ToolSet, ToolSpec, bind,
    json::parse as parse_json,
    render::{JsonCall, render_call},
};
use plaincall_syntax::{Dialect, Escaper};
use plaincall_syntax::{Span, Syntax, Termination};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::commands::render::RenderOptions;
use crate::options::DialectOptions;
use crate::output::Output;
use crate::status::{Failure, Outcome, Status, complain};
use crate::text::input::{read_whole, without_mark};
use crate::text::json_error::no_json;
use crate::text::reading::{escaper, refused};
use crate::text::source::Counter;

pub(super) struct Writer {
    /// The dialect, for text that begins outside reasoning.
    dialect: Dialect,
    options: DialectOptions,
    /// The syntax that is written: asked for, or that of the first call.
    syntax: Option<Syntax>,
    tools: Option<ToolSet>,
    /// Whether the texts that documents come from are known to be whole.
    is_complete: bool,
    /// How many calls there have been.
    count: usize,
}

/// A call, read from any of the formats.
struct Given {
    name: String,
    id: Option<String>,
    dependencies: Vec<String>,
    arguments: Map<String, Value>,
    /// The syntax that it was written in, if it is known.
    syntax: Option<Syntax>,
}

/// A call as `parse` prints it in one of the syntaxes, or an OpenAI tool call.
#[derive(Deserialize)]
struct AnyCall {
    #[serde(rename = "gadgetName")]
    gadget: Option<String>,
    tool_name: Option<String>,
    function: Option<Function>,
    #[serde(alias = "invocationId")]
    id: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
    parameters: Option<Map<String, Value>>,
    #[serde(rename = "parseError")]
    parse_error: Option<String>,
    #[serde(default)]
    raw_args: String,
    #[serde(default)]
    body: String,
    error: Option<Value>,
    messages: Option<Value>,
}

/// The function of an OpenAI tool call.
#[derive(Deserialize)]
pub(super) struct Function {
    pub(super) name: String,
    /// A text, which may be no JSON, or the object itself.
    #[serde(default)]
    pub(super) arguments: Value,
}

/// A text that is being put together.
#[derive(Default)]
struct Draft {
    text: String,
    calls: Vec<Span>,
}

impl Writer {
    pub(super) fn new(options: &RenderOptions) -> Result<Self, Failure> {
        let dialect = options.dialect.outside_reasoning()?;
        Ok(Self {
            syntax: dialect.syntax(),
            dialect,
            options: options.dialect.clone(),
            tools: options.schema.load(Some(&options.files))?.0,
            is_complete: options.complete,
            count: 0,
        })
    }

    pub(super) fn file(&mut self, file: &Path, output: &mut Output) -> Outcome {
        let (name, bytes) = read_whole(file)?;
        let mut status = Status::Good;
        let mut count = 0;
        for value in
            serde_json::Deserializer::from_slice(without_mark(&bytes)).into_iter::<&RawValue>()
        {
            let text = value.map_err(|error| {
                let hint = if count == 0 {
                    "; render reads JSON, such as the output of `plaincall parse`"
                } else {
                    ""
                };
                Failure::Broken(format!("{name} is not JSON: {}{hint}", no_json(&error)))
            })?;
            count += 1;
            match parse_json(text.get()) {
                Ok(value) => status = status.and(self.value(value, output)?),
                Err(reason) => {
                    status = Status::Wrong;
                    complain(&format!("{name}, value {count} was skipped: {reason}"));
                }
            }
        }
        if count == 0 {
            return Err(Failure::Broken(format!("{name} is empty")));
        }
        Ok(status)
    }

    /// Writes one JSON value: a document as a whole, or the calls in it, each on lines of its own.
    fn value(&mut self, value: Value, output: &mut Output) -> Outcome {
        let escaper = escaper(&self.dialect)?;
        let (items, is_document) = items(value);
        let mut draft = Draft::default();
        let mut status = Status::Good;
        let mut is_behind_call = false;
        for (index, item) in items.into_iter().enumerate() {
            let kind = item.get("type").and_then(Value::as_str);
            let text = item.get("text").and_then(Value::as_str);
            match (kind.filter(|_| is_document), text) {
                (Some("text"), Some(text)) => draft.text.push_str(&escaped(escaper.as_ref(), text)),
                (Some("reasoning"), Some(text)) => {
                    if let Some([open, close]) = self.options.reasoning.as_deref() {
                        let is_begun = index == 0 && self.options.in_reasoning;
                        let open = if is_begun { "" } else { open.as_str() };
                        draft.text.push_str(&[open, text, close].concat());
                    } else {
                        status = Status::Wrong;
                        complain(
                            "reasoning was skipped; to write it, set its markers with `--reasoning OPEN CLOSE`",
                        );
                    }
                }
                _ => {
                    self.count += 1;
                    let name = named(&item).map(|name| format!(" ({})", name.escape_debug()));
                    match self.call(item) {
                        Ok(text) => {
                            if is_behind_call {
                                // There is no text between two calls if the start of the second ended the first.
                                draft.text.push('\n');
                            }
                            draft.call(text.trim_end_matches('\n'));
                            if !is_document {
                                draft.text.push('\n');
                            }
                        }
                        Err(reason) => {
                            status = Status::Wrong;
                            let name = name.unwrap_or_default();
                            complain(&format!("call {}{name} was skipped: {reason}", self.count));
                        }
                    }
                    is_behind_call = is_document;
                    continue;
                }
            }
            is_behind_call = false;
        }
        let dialect = match self.syntax {
            Some(syntax) => self.dialect.for_syntax(syntax),
            None => self.dialect.clone(),
        };
        if let Some((line, column)) = draft.misread(&self.options.begun(dialect))? {
            status = Status::Wrong;
            complain(&format!(
                "a document was skipped: line {line}, column {column} would not parse back to the same text; to escape it, use `--escaped`"
            ));
        } else {
            output.bytes(draft.text.as_bytes())?;
        }
        Ok(status)
    }

    /// The text of a call.
    fn call(&mut self, mut item: Value) -> Result<String, String> {
        let mut is_unclosed = false;
        if item.get("type").is_some_and(|kind| kind == "call")
            && let Some(call) = item.get_mut("call").map(Value::take)
        {
            let end = item.get("termination").and_then(Value::as_str);
            is_unclosed = end == Some(Termination::EndOfStream.name());
            item = call;
        }
        let given = given(item)?;
        if is_unclosed && !(self.is_complete && given.syntax == Some(Syntax::Block)) {
            let hint = match given.syntax {
                Some(Syntax::Block) => "; if its text is complete, use `--complete`",
                _ => "",
            };
            return Err(format!(
                "it is truncated or not closed, and an end marker would make it look complete{hint}"
            ));
        }
        let own = given.syntax.unwrap_or(Syntax::Block);
        let syntax = *self.syntax.get_or_insert(own);
        if given.syntax.is_some_and(|own| own != syntax) {
            return Err(format!(
                "it is a call of the other syntax; the output uses the {} syntax",
                syntax.name()
            ));
        }
        let tool = match &self.tools {
            None => None,
            Some(tools) => {
                let tool = tools.get(&given.name);
                Some(tool.ok_or_else(|| tools.unknown(&given.name))?)
            }
        };
        let call = JsonCall {
            name: &given.name,
            id: given.id.as_deref(),
            dependencies: given.dependencies.iter().map(String::as_str).collect(),
            arguments: &given.arguments,
        };
        let dialect = self.dialect.for_syntax(syntax);
        // The line and the body of an emoji call are already known.
        let is_emoji = given.syntax == Some(Syntax::Emoji);
        let text = render_call(&call, tool.filter(|_| !is_emoji), &dialect);
        let text = text.map_err(|error| error.to_string())?;
        if let Some(tool) = tool {
            let values = (!is_emoji).then_some(&given.arguments);
            read_back(tool, values, &text, &dialect)?;
        }
        Ok(text)
    }
}

/// Checks that the written call is valid for the tool and has the same values, if they are known.
fn read_back(
    tool: &ToolSpec,
    values: Option<&Map<String, Value>>,
    text: &str,
    dialect: &Dialect,
) -> Result<(), String> {
    const DIFFERENT: &str = "the written call would have another meaning for the tool";
    let document = Document::parse(text, dialect).map_err(|error| error.to_string())?;
    let call = document.calls().next().ok_or(DIFFERENT)?;
    let arguments = bind(tool, call).map_err(|problems| {
        let messages: Vec<String> = problems.iter().map(ToString::to_string).collect();
        messages.join("; ")
    })?;
    if values.is_none_or(|values| arguments.to_value().as_object() == Some(values)) {
        Ok(())
    } else {
        Err(DIFFERENT.to_owned())
    }
}

/// The parts of a JSON value: calls, or the segments of a whole document.
fn items(mut value: Value) -> (Vec<Value>, bool) {
    if let Some(Value::Array(segments)) = value.get_mut("segments").map(Value::take) {
        return (segments, true);
    }
    for place in ["/tool_calls", "/message/tool_calls"] {
        if let Some(Value::Array(calls)) = value.pointer_mut(place).map(Value::take) {
            return (calls, false);
        }
    }
    match value {
        Value::Array(calls) => (calls, false),
        other => (vec![other], false),
    }
}

/// The name of the tool, for messages.
fn named(item: &Value) -> Option<String> {
    let call = item.get("call").unwrap_or(item);
    let mut places = ["/gadgetName", "/tool_name", "/function/name"].into_iter();
    let name = places.find_map(|place| call.pointer(place)?.as_str());
    name.map(str::to_owned)
}

/// Reads a call in any of its forms.
fn given(value: Value) -> Result<Given, String> {
    const NO_CALL: &str = "missing key: expected one of `gadgetName`, `tool_name`, `function`, `tool_calls` and `segments`";
    if !value.is_object() {
        return Err(NO_CALL.to_owned());
    }
    let call: AnyCall = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok(match (call.gadget, call.tool_name, call.function) {
        (Some(name), ..) => Given {
            name,
            id: call.id,
            dependencies: call.dependencies,
            arguments: call.parameters.ok_or_else(|| match call.parse_error {
                Some(error) => format!("it has a parse error: {error}"),
                None => "it has no `parameters`".to_owned(),
            })?,
            syntax: Some(Syntax::Block),
        },
        (None, Some(name), _) => {
            let texts = [("raw_args", call.raw_args), ("body", call.body)];
            let texts = texts.map(|(key, text)| (key.to_owned(), text.into()));
            Given {
                name,
                id: None,
                dependencies: Vec::new(),
                arguments: texts.into_iter().collect(),
                syntax: Some(Syntax::Emoji),
            }
        }
        (None, None, Some(function)) => Given {
            name: function.name,
            id: call.id,
            dependencies: Vec::new(),
            arguments: arguments(function.arguments)?,
            syntax: None,
        },
        (None, None, None) => {
            return Err(match call.error.as_ref().and_then(Value::as_str) {
                Some(error) => format!("it could not be parsed: {error}"),
                None if call.messages.is_some() => {
                    "it is a conversation; use `--as messages`".to_owned()
                }
                None => NO_CALL.to_owned(),
            });
        }
    })
}

/// The arguments of an OpenAI tool call. Those of a function without parameters may be an empty text.
fn arguments(given: Value) -> Result<Map<String, Value>, String> {
    let given = match given {
        Value::Null => return Ok(Map::new()),
        Value::String(text) if text.trim().is_empty() => return Ok(Map::new()),
        Value::String(text) => parse_json(&text)
            .map_err(|reason| format!("`arguments` is not valid JSON: {reason}"))?,
        other => other,
    };
    match given {
        Value::Object(arguments) => Ok(arguments),
        _ => Err("`arguments` is not a JSON object".to_owned()),
    }
}

fn escaped(escaper: Option<&Escaper>, text: &str) -> String {
    escaper.map_or_else(
        || text.to_owned(),
        |escaper| escaper.escape(text).into_owned(),
    )
}

impl Draft {
    /// Adds a call, without the line end behind it.
    fn call(&mut self, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.calls.push(Span::new(start, self.text.len()));
    }

    /// Line and column of the first place that would be read as something else than what was put there.
    fn misread(&self, dialect: &Dialect) -> Result<Option<(usize, usize)>, Failure> {
        let document = Document::parse(&self.text, dialect).map_err(|error| refused(&error))?;
        let read: Vec<Span> = document.calls().map(|call| call.span).collect();
        let pairs = read.iter().zip(&self.calls);
        let same = pairs.take_while(|(a, b)| a == b).count();
        let starts = [read.get(same), self.calls.get(same)];
        let first = starts.into_iter().flatten().map(|span| span.start).min();
        Ok(first.map(|place| Counter::new(self.text.as_bytes()).position(place)))
    }
}
