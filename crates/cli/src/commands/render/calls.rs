//! `render --as calls`: JSON to text.

use std::path::Path;

use plaincall_prompt::render::{JsonCall, render_call};
use plaincall_reply::{Document, bind};
use plaincall_report::source::Counter;
use plaincall_syntax::{Dialect, Escaper};
use plaincall_syntax::{Span, Syntax, Termination};
use plaincall_tool::json::parse as parse_json;
use plaincall_tool::{ToolLookup as _, ToolSet, ToolSpec};
use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value};

use crate::commands::render::RenderOptions;
use crate::options::DialectOptions;
use crate::output::Output;
use crate::status::{Failure, Outcome, Status, print_error};
use crate::text::input::{read_input, without_bom};
use crate::text::json_error::describe;

/// Writes calls as text.
pub(super) struct Writer {
    /// The dialect for text that starts outside reasoning.
    dialect: Dialect,
    options: DialectOptions,
    /// The output syntax: the one of the options, else that of the first call.
    syntax: Option<Syntax>,
    tools: Option<ToolSet>,
    /// Whether the sources of documents are complete.
    is_complete: bool,
    /// The number of calls so far.
    count: usize,
}

/// A call from any of the input formats.
struct InputCall {
    name: String,
    id: Option<String>,
    dependencies: Vec<String>,
    arguments: Map<String, Value>,
    /// The syntax in which the call was written, if known.
    syntax: Option<Syntax>,
}

/// A call in the output format of `parse`, or an OpenAI tool call.
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
    /// An object, or a string that should be JSON.
    #[serde(default)]
    pub(super) arguments: Value,
}

/// Output text with the spans of its calls.
#[derive(Default)]
struct Draft {
    text: String,
    calls: Vec<Span>,
}

impl Writer {
    pub(super) fn new(options: &RenderOptions) -> Result<Self, Failure> {
        let dialect = options.dialect.dialect.outside_reasoning()?;
        Ok(Self {
            syntax: dialect.syntax(),
            dialect,
            options: options.dialect.dialect.clone(),
            tools: options.tools.load(Some(&options.files))?.0,
            is_complete: options.complete,
            count: 0,
        })
    }

    pub(super) fn file(&mut self, file: &Path, output: &mut Output) -> Outcome {
        let (name, bytes) = read_input(file)?;
        let mut status = Status::Success;
        let mut count = 0;
        for value in
            serde_json::Deserializer::from_slice(without_bom(&bytes)).into_iter::<&RawValue>()
        {
            let text = value.map_err(|error| {
                let hint = if count == 0 {
                    "; render reads JSON, such as the output of `plaincall parse`"
                } else {
                    ""
                };
                Failure::Runtime(format!("{name} is not JSON: {}{hint}", describe(&error)))
            })?;
            count += 1;
            match parse_json(text.get()) {
                Ok(value) => status = status.and(self.value(value, output)?),
                Err(reason) => {
                    status = Status::Failed;
                    print_error(&format!("{name}, value {count} was skipped: {reason}"));
                }
            }
        }
        if count == 0 {
            return Err(Failure::Runtime(format!("{name} is empty")));
        }
        Ok(status)
    }

    /// Writes one JSON value: a complete document, or calls, each on its own lines.
    fn value(&mut self, value: Value, output: &mut Output) -> Outcome {
        let escaper = self
            .dialect
            .is_escaped()
            .then(|| Escaper::new(&self.dialect));
        let escaper = escaper.transpose()?;
        let (items, is_document) = items(value);
        let mut draft = Draft::default();
        let mut status = Status::Success;
        let mut follows_call = false;
        for (index, item) in items.into_iter().enumerate() {
            let kind = item.get("type").and_then(Value::as_str);
            let text = item.get("text").and_then(Value::as_str);
            match (kind.filter(|_| is_document), text) {
                (Some("text"), Some(text)) => draft.text.push_str(&escaped(escaper.as_ref(), text)),
                (Some("reasoning"), Some(text)) => {
                    if let Some([open, close]) = self.options.reasoning.as_deref() {
                        let is_inside = index == 0 && self.options.in_reasoning;
                        let open = if is_inside { "" } else { open.as_str() };
                        draft.text.push_str(&[open, text, close].concat());
                    } else {
                        status = Status::Failed;
                        print_error(
                            "reasoning was skipped; to write it, set its markers with `--dialect reasoning=OPEN,CLOSE`",
                        );
                    }
                }
                _ => {
                    self.count += 1;
                    let name = tool_name(&item).map(|name| format!(" ({})", name.escape_debug()));
                    match self.call(item) {
                        Ok(text) => {
                            if follows_call {
                                // The start marker of the next call may have ended this one, without text between them.
                                draft.text.push('\n');
                            }
                            draft.call(text.trim_end_matches('\n'));
                            if !is_document {
                                draft.text.push('\n');
                            }
                        }
                        Err(reason) => {
                            status = Status::Failed;
                            let name = name.unwrap_or_default();
                            print_error(&format!(
                                "call {}{name} was skipped: {reason}",
                                self.count
                            ));
                        }
                    }
                    follows_call = is_document;
                    continue;
                }
            }
            follows_call = false;
        }
        let dialect = match self.syntax {
            Some(syntax) => self.dialect.for_syntax(syntax),
            None => self.dialect.clone(),
        };
        if let Some((line, column)) = draft.misread(&self.options.with_start(dialect))? {
            status = Status::Failed;
            print_error(&format!(
                "a document was skipped: line {line}, column {column} would not parse back to the same text; to escape it, use `--dialect escaped`"
            ));
        } else {
            output.bytes(draft.text.as_bytes())?;
        }
        Ok(status)
    }

    /// Renders a call.
    fn call(&mut self, mut item: Value) -> Result<String, String> {
        let mut is_unclosed = false;
        if item.get("type").is_some_and(|kind| kind == "call")
            && let Some(call) = item.get_mut("call").map(Value::take)
        {
            let end = item.get("termination").and_then(Value::as_str);
            is_unclosed = end == Some(Termination::EndOfStream.name());
            item = call;
        }
        let input = input(item)?;
        if is_unclosed && !(self.is_complete && input.syntax == Some(Syntax::Block)) {
            let hint = match input.syntax {
                Some(Syntax::Block) => "; if its text is complete, use `--complete`",
                _ => "",
            };
            return Err(format!(
                "it is truncated or not closed, and an end marker would make it look complete{hint}"
            ));
        }
        let own_syntax = input.syntax.unwrap_or(Syntax::Block);
        let syntax = *self.syntax.get_or_insert(own_syntax);
        if input.syntax.is_some_and(|own_syntax| own_syntax != syntax) {
            return Err(format!(
                "it uses the other syntax; the output uses the {} syntax",
                syntax.name()
            ));
        }
        let tool = match &self.tools {
            None => None,
            Some(tools) => {
                let tool = tools.get(&input.name);
                Some(tool.ok_or_else(|| tools.unknown(&input.name))?)
            }
        };
        let mut call = JsonCall::new(&input.name, &input.arguments);
        call.id = input.id.as_deref();
        call.dependencies = input.dependencies.iter().map(String::as_str).collect();
        let dialect = self.dialect.for_syntax(syntax);
        // Line and body of an emoji call are already text.
        let is_emoji = input.syntax == Some(Syntax::Emoji);
        let text = render_call(&call, tool.filter(|_| !is_emoji), &dialect);
        let text = text.map_err(|error| error.to_string())?;
        if let Some(tool) = tool {
            let values = (!is_emoji).then_some(&input.arguments);
            read_back(tool, values, &text, &dialect)?;
        }
        Ok(text)
    }
}

/// Checks that the written call is valid for the tool and, if `values` is set, has the same arguments.
fn read_back(
    tool: &ToolSpec,
    values: Option<&Map<String, Value>>,
    text: &str,
    dialect: &Dialect,
) -> Result<(), String> {
    const DIFFERENT: &str = "the written call would not parse back to the same arguments";
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

/// Splits a JSON value into calls, or into the segments of a document.
fn items(mut value: Value) -> (Vec<Value>, bool) {
    if let Some(Value::Array(segments)) = value.get_mut("segments").map(Value::take) {
        return (segments, true);
    }
    for path in ["/tool_calls", "/message/tool_calls"] {
        if let Some(Value::Array(calls)) = value.pointer_mut(path).map(Value::take) {
            return (calls, false);
        }
    }
    match value {
        Value::Array(calls) => (calls, false),
        other => (vec![other], false),
    }
}

/// Returns the name of a call's tool for messages.
fn tool_name(item: &Value) -> Option<String> {
    let call = item.get("call").unwrap_or(item);
    let mut paths = ["/gadgetName", "/tool_name", "/function/name"].into_iter();
    let name = paths.find_map(|path| call.pointer(path)?.as_str());
    name.map(str::to_owned)
}

/// Parses a call in any of the input formats.
fn input(value: Value) -> Result<InputCall, String> {
    const MISSING_CALL: &str = "missing key: expected one of `gadgetName`, `tool_name`, `function`, `tool_calls` and `segments`";
    if !value.is_object() {
        return Err(MISSING_CALL.to_owned());
    }
    let call: AnyCall = serde_json::from_value(value).map_err(|error| error.to_string())?;
    Ok(match (call.gadget, call.tool_name, call.function) {
        (Some(name), ..) => InputCall {
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
            InputCall {
                name,
                id: None,
                dependencies: Vec::new(),
                arguments: texts.into_iter().collect(),
                syntax: Some(Syntax::Emoji),
            }
        }
        (None, None, Some(function)) => InputCall {
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
                None => MISSING_CALL.to_owned(),
            });
        }
    })
}

/// Parses the arguments of an OpenAI tool call. An empty string means no arguments.
fn arguments(input: Value) -> Result<Map<String, Value>, String> {
    let input = match input {
        Value::Null => return Ok(Map::new()),
        Value::String(text) if text.trim().is_empty() => return Ok(Map::new()),
        Value::String(text) => parse_json(&text)
            .map_err(|reason| format!("`arguments` is not valid JSON: {reason}"))?,
        other => other,
    };
    match input {
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
    /// Appends a call, without a line end.
    fn call(&mut self, text: &str) {
        let start = self.text.len();
        self.text.push_str(text);
        self.calls.push(Span::new(start, self.text.len()));
    }

    /// Returns the line and column of the first position that would not parse back to the same calls.
    fn misread(&self, dialect: &Dialect) -> Result<Option<(usize, usize)>, Failure> {
        let document = Document::parse(&self.text, dialect)?;
        let parsed: Vec<Span> = document.calls().map(|call| call.span).collect();
        let pairs = parsed.iter().zip(&self.calls);
        let same = pairs.take_while(|(a, b)| a == b).count();
        let starts = [parsed.get(same), self.calls.get(same)];
        let first = starts.into_iter().flatten().map(|span| span.start).min();
        Ok(first.map(|position| Counter::new(self.text.as_bytes()).position(position)))
    }
}
