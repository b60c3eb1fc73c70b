//! Calls as JSON in, text out.

use std::path::Path;

use plaincall_call::{Syntax, ToolLookup as _, ToolSet, flatten, parse_json};
use plaincall_syntax::{Call, Dialect};
use serde_json::Value;
use serde_json::value::RawValue;

use crate::commands::render::RenderOptions;
use crate::commands::render::forms::{Form, Item, NoCall, items};
use crate::commands::render::sink::Sink;
use crate::options::DialectOptions;
use crate::status::{Failure, Outcome, Status, complain};
use crate::text::draft::Draft;
use crate::text::input::{Input, without_mark};
use crate::text::json_place::no_json;
use crate::text::reading::escaper;
use crate::text::translate::{object_in_emoji, read_back};

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

impl Writer {
    pub(super) fn new(options: &RenderOptions) -> Result<Self, Failure> {
        let dialect = options.dialect.outside_reasoning()?;
        Ok(Self {
            syntax: dialect.syntax(),
            dialect,
            options: options.dialect.clone(),
            tools: options.schema.load(&options.files)?,
            is_complete: options.complete,
            count: 0,
        })
    }

    pub(super) fn file(&mut self, file: &Path, sink: &mut Sink<'_>) -> Outcome {
        let input = Input::open(file)?;
        let name = input.name.clone();
        let bytes = input.into_bytes()?;
        let mut status = Status::Good;
        let mut count = 0;
        for value in
            serde_json::Deserializer::from_slice(without_mark(&bytes)).into_iter::<&RawValue>()
        {
            let text = value.map_err(|error| {
                // What does not even begin as JSON is probably a text with calls.
                let hint = if count == 0 {
                    "; render reads JSON, and to rewrite a text there is `plaincall convert`"
                } else {
                    ""
                };
                Failure::Broken(format!("{name} is not JSON: {}{hint}", no_json(&error)))
            })?;
            count += 1;
            match parse_json(text.get()) {
                Ok(value) => status = status.and(self.value(&name, value, sink)?),
                Err(reason) => {
                    status = Status::Wrong;
                    complain(&format!("{name}, value {count} is not written: {reason}"));
                }
            }
        }
        if count == 0 {
            return Err(Failure::Broken(format!(
                "{name} is empty: there is no call to write"
            )));
        }
        Ok(status)
    }

    /// Writes one JSON value: a document as a whole, or the calls in it, each on lines of its own.
    fn value(&mut self, name: &str, value: Value, sink: &mut Sink<'_>) -> Outcome {
        let (items, is_document) = items(value);
        let escaper = escaper(&self.dialect)?;
        let mut draft = Draft::default();
        let mut status = Status::Good;
        let mut is_behind_call = false;
        for (index, item) in items.into_iter().enumerate() {
            let is_call = matches!(item, Item::Call { .. });
            match item {
                Item::Text(text) => match &escaper {
                    Some(escaper) => draft.text(escaper.escape(&text).as_bytes()),
                    None => draft.text(text.as_bytes()),
                },
                Item::Reasoning(text) => {
                    if let Some([open, close]) = self.options.reasoning.as_deref() {
                        let is_begun = index == 0 && self.options.in_reasoning;
                        let open = if is_begun { "" } else { open.as_str() };
                        for part in [open, &text, close] {
                            draft.text(part.as_bytes());
                        }
                    } else {
                        status = Status::Wrong;
                        complain(
                            "reasoning is left out: `--reasoning OPEN CLOSE` gives the markers to write it with",
                        );
                    }
                }
                Item::Call { call, is_unclosed } => {
                    self.count += 1;
                    let text = call.and_then(|form| {
                        self.is_whole(&form, is_unclosed)?;
                        self.call(&form)
                    });
                    match text {
                        Ok(text) => {
                            if is_behind_call {
                                // Nothing stands between two calls where one was ended by the start of the next.
                                draft.text(b"\n");
                            }
                            draft.call(text.trim_end_matches('\n').as_bytes());
                            if !is_document {
                                draft.text(b"\n");
                            }
                        }
                        Err(NoCall { name, reason }) => {
                            status = Status::Wrong;
                            let name = name.map(|name| format!(" ({})", name.escape_debug()));
                            let name = name.unwrap_or_default();
                            complain(&format!(
                                "call {}{name} is not written: {reason}",
                                self.count
                            ));
                        }
                    }
                }
            }
            is_behind_call = is_call && is_document;
        }
        let dialect = match self.syntax {
            Some(syntax) => self.dialect.for_syntax(syntax),
            None => self.dialect.clone(),
        };
        if let Some((line, column)) = draft.misread(&self.options.begun(dialect))? {
            status = Status::Wrong;
            complain(&format!(
                "a document is not written: line {line}, column {column} of it would be read as something else than it is; `--escaped` can write it"
            ));
        } else {
            sink.piece(name, &draft.bytes)?;
        }
        Ok(status)
    }

    /// Refuses a call that would be closed here and may be half a call.
    fn is_whole(&self, form: &Form, is_unclosed: bool) -> Result<(), NoCall> {
        let reason = match form {
            _ if !is_unclosed => return Ok(()),
            Form::Block { .. } if self.is_complete => return Ok(()),
            Form::Block { .. } => {
                "it was cut off or not closed, and an end marker would make it look whole; if its text is known to be whole, say so with `--complete`"
            }
            Form::Emoji { .. } | Form::OpenAi { .. } => {
                "it was cut off or not closed, and an end marker would make it look whole"
            }
        };
        Err(NoCall {
            name: Some(form.name().to_owned()),
            reason: reason.to_owned(),
        })
    }

    /// The text of a call.
    fn call(&mut self, form: &Form) -> Result<String, NoCall> {
        let wrong = |reason: String| NoCall {
            name: Some(form.name().to_owned()),
            reason,
        };
        let own = match form {
            Form::Block { .. } => Some(Syntax::Block),
            Form::Emoji { .. } => Some(Syntax::Emoji),
            Form::OpenAi { .. } => None,
        };
        let syntax = *self.syntax.get_or_insert(own.unwrap_or(Syntax::Block));
        let dialect = self.dialect.for_syntax(syntax);
        if own.is_some_and(|own| own != syntax) {
            return Err(wrong(format!(
                "it is a call of the other syntax, and the text is written in the {} syntax: write the text in its own syntax and rewrite that with `plaincall convert`",
                syntax.name()
            )));
        }
        let tool = match &self.tools {
            None => None,
            Some(tools) => {
                let tool = tools.get(form.name());
                Some(tool.ok_or_else(|| wrong(tools.unknown(form.name())))?)
            }
        };
        match form {
            Form::Emoji {
                name,
                raw_args,
                body,
            } => {
                let call = Call::Emoji {
                    name,
                    raw_args,
                    body,
                };
                let text = plaincall_syntax::render(&call, &dialect)
                    .map_err(|error| wrong(error.to_string()))?;
                if let Some(tool) = tool {
                    read_back(tool, None, &text, &dialect).map_err(wrong)?;
                }
                Ok(text)
            }
            Form::OpenAi { arguments, .. } if syntax == Syntax::Emoji => {
                let Some(tool) = tool else {
                    return Err(wrong(
                        "the emoji syntax has no named arguments: the definition of the tool says how they are written, and `--schema` gives it"
                            .to_owned(),
                    ));
                };
                object_in_emoji(tool, arguments, &dialect).map_err(wrong)
            }
            Form::Block {
                name,
                id,
                arguments,
                ..
            }
            | Form::OpenAi {
                id,
                name,
                arguments,
            } => {
                let pairs = flatten(arguments, tool).map_err(|error| wrong(error.to_string()))?;
                let dependencies = match form {
                    Form::Block { dependencies, .. } => dependencies.as_slice(),
                    _ => &[],
                };
                let call = Call::Block {
                    name,
                    id: id.as_deref(),
                    dependencies: dependencies.iter().map(String::as_str).collect(),
                    arguments: pairs
                        .iter()
                        .map(|(pointer, text)| (pointer.as_str(), text.as_str()))
                        .collect(),
                };
                let text = plaincall_syntax::render(&call, &dialect)
                    .map_err(|error| wrong(error.to_string()))?;
                if let Some(tool) = tool {
                    let values = Value::Object(arguments.clone());
                    read_back(tool, Some(&values), &text, &dialect).map_err(wrong)?;
                }
                Ok(text)
            }
        }
    }
}
