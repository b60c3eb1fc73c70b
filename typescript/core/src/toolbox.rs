//! Tools in one dialect: prompts, replies, repair messages, history, results and grammars.

use std::collections::BTreeMap;
use std::num::NonZeroUsize;
use std::sync::Arc;

use plaincall_grammar::{Choice, Engine, GrammarOptions, grammar};
use plaincall_names::DialectOptions;
use plaincall_prompt::history::{
    PastCall, ResultMessage, Status, TurnPart, history, in_call_order, results,
};
use plaincall_prompt::render::{JsonCall, render_call};
use plaincall_prompt::repair::repair_document;
use plaincall_prompt::{PromptOptions, prompt};
use plaincall_reply::{
    Document, ModelText, PromptText, PromptTextBuilder, ReplyCheck, ReplyItem, ReplyReader, Stop,
    Unclosed, Untrusted, document::DocumentReader,
};
use plaincall_syntax::{Dialect, OpenContent};
use plaincall_tool::definitions::read_tool_definitions;
use plaincall_tool::{Effect, Limits, ToolSet};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::dialect::dialect;
use crate::document::{CallView, check_calls, write, write_document};
use crate::error::Error;
use crate::events;
use crate::operation::StopOption;
use crate::state::{Object, State};

/// Definitions of tools in one dialect.
pub(crate) struct Tools {
    pub(crate) set: Arc<ToolSet>,
    dialect: Dialect,
    // For cloning.
    pub(crate) check: ReplyCheck,
    documents: DocumentReader<Arc<ToolSet>>,
    replies: ReplyReader<Arc<ToolSet>>,
}

/// A reply that still arrives.
pub(crate) struct Reader {
    reader: ReplyReader<Arc<ToolSet>>,
}

/// An operation of tools.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum ToolsOperation {
    /// Reads definitions, which are the text of the operation.
    Create {
        effects: BTreeMap<String, String>,
        dialect: DialectOptions,
        unclosed: Unclosed,
    },
    /// Writes the system prompt.
    Prompt {
        object: u32,
        one_call: bool,
        without_dependencies: bool,
        description_length: Option<NonZeroUsize>,
    },
    /// Parses the text, and validates its calls.
    Parse { object: u32, stop: StopOption },
    /// Writes a message about the invalid calls of the text.
    Repair { object: u32, stop: StopOption },
    /// Creates a reader of a reply.
    Reader { object: u32 },
    /// Ends the reply of a reader, and writes its last events and calls.
    Finish { object: u32, stop: StopOption },
    /// Begins the next reply of the conversation of a reader.
    BeginReply { object: u32 },
    /// Writes an earlier turn of the model.
    History { object: u32, parts: Vec<Part> },
    /// Writes the results of calls.
    Results {
        object: u32,
        results: Vec<ToolResult>,
        calls: Option<Vec<(String, String)>>,
    },
    /// Writes a call.
    Render {
        object: u32,
        name: String,
        arguments: Map<String, Value>,
        id: Option<String>,
        dependencies: Vec<String>,
    },
    /// Escapes the text, so that it contains no call.
    Escape { object: u32 },
    /// Makes a grammar.
    Grammar {
        object: u32,
        engine: String,
        choice: ChoiceOption,
        only: Option<String>,
        one_call: bool,
        ids: bool,
    },
}

/// Which calls a grammar allows.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) enum ChoiceOption {
    Auto,
    Required,
    None,
}

/// A part of an earlier turn: a text, or the name of a call with its arguments as JSON.
#[derive(Deserialize)]
pub(crate) struct Part {
    text: String,
    id: Option<String>,
    #[serde(default)]
    dependencies: Vec<String>,
    arguments: Option<String>,
}

/// The result of a call.
#[derive(Deserialize)]
pub(crate) struct ToolResult {
    #[serde(default)]
    name: String,
    id: String,
    status: Option<String>,
    output: Option<String>,
    error: Option<String>,
}

#[derive(Serialize)]
struct Created<'t> {
    object: u32,
    tools: Vec<ToolView<'t>>,
    /// The markers around reasoning.
    reasoning: Option<[String; 2]>,
}

#[derive(Serialize)]
struct ToolView<'t> {
    name: &'t str,
    description: &'t str,
    parameters: Value,
    effect: &'static str,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct GrammarView {
    text: String,
    notes: Vec<String>,
    request_fields: Map<String, Value>,
}

/// An argument is none of the allowed words.
pub(crate) fn one_of(
    parameter: &str,
    given: &str,
    allowed: impl IntoIterator<Item = &'static str>,
) -> Error {
    let allowed: Vec<&str> = allowed.into_iter().collect();
    let allowed = allowed.join("`, `");
    Error::argument(format!(
        "unknown {parameter} `{given}`; possible values: `{allowed}`"
    ))
}

impl ToolsOperation {
    pub(crate) fn perform(self, state: &mut State, text: &[u8]) -> Result<(), Error> {
        if let Self::Create {
            effects,
            dialect,
            unclosed,
        } = self
        {
            return create(state, text, &effects, &dialect, unclosed);
        }
        let mut output = std::mem::take(&mut state.output);
        let written = match (state.get(self.object()), &self) {
            (Some(Object::Reader(reader)), Self::BeginReply { .. }) => {
                reader.reader.begin_reply();
                Ok(())
            }
            (Some(Object::Reader(reader)), Self::Finish { stop, .. }) => {
                reader.finish(&mut output, (*stop).into())
            }
            (Some(Object::Tools(tools)), Self::Reader { .. }) => {
                let reader = tools.replies.clone();
                let reader = Object::Reader(Box::new(Reader { reader }));
                write(&mut output, &state.add(reader))
            }
            (Some(Object::Tools(tools)), _) => tools.write(&self, text, &mut output),
            _ => Err(Error::argument("the tools or the reader were disposed of")),
        };
        state.output = output;
        written
    }

    const fn object(&self) -> u32 {
        match self {
            Self::Create { .. } => u32::MAX,
            Self::Prompt { object, .. }
            | Self::Parse { object, .. }
            | Self::Repair { object, .. }
            | Self::Reader { object }
            | Self::Finish { object, .. }
            | Self::BeginReply { object }
            | Self::History { object, .. }
            | Self::Results { object, .. }
            | Self::Render { object, .. }
            | Self::Escape { object }
            | Self::Grammar { object, .. } => *object,
        }
    }
}

fn create(
    state: &mut State,
    definitions: &[u8],
    effects: &BTreeMap<String, String>,
    options: &DialectOptions,
    unclosed: Unclosed,
) -> Result<(), Error> {
    let definition = |error: &dyn std::fmt::Display| Error::new("definition", error);
    let definitions = String::from_utf8_lossy(definitions);
    let mut specs = read_tool_definitions(&definitions).map_err(|error| definition(&error))?;
    for (name, effect) in effects {
        let known = Effect::from_name(effect);
        let names = Effect::ALL.map(Effect::name);
        let effect = known.ok_or_else(|| one_of("effect", effect, names))?;
        for tool in specs.iter_mut().filter(|tool| tool.name == *name) {
            tool.effect = effect;
        }
    }
    let tools = Arc::new(ToolSet::new(specs).map_err(|error| definition(&error))?);
    let dialect = dialect(options)?.for_reply();
    let check = ReplyCheck::new(&dialect, unclosed).map_err(Error::dialect)?;
    let reasoning = dialect.reasoning_markers();
    let reasoning = reasoning.map(|markers| markers.map(str::to_owned));
    let of = || (Arc::clone(&tools), check.clone());
    let (set, rule) = of();
    let documents = DocumentReader::new(&dialect, set, rule, Limits::for_reading());
    let (set, rule) = of();
    let replies = ReplyReader::new(&dialect, set, rule, Limits::for_running());
    let object = state.add(Object::Tools(Box::new(Tools {
        documents: documents.map_err(Error::dialect)?,
        replies: replies.map_err(Error::dialect)?.with_events(),
        set: Arc::clone(&tools),
        dialect,
        check,
    })));
    let views = tools.iter().map(|tool| ToolView {
        name: &tool.name,
        description: &tool.description,
        parameters: tool.to_schema(),
        effect: tool.effect.name(),
    });
    let created = Created {
        object,
        tools: views.collect(),
        reasoning,
    };
    write(&mut state.output, &created)
}

impl Tools {
    fn decided(&self, text: &[u8], stop: StopOption) -> Result<Document, Error> {
        check_calls(text, || Ok(self.dialect.clone()))?;
        Ok(self.documents.read(text, stop.into()))
    }

    fn write(
        &self,
        operation: &ToolsOperation,
        text: &[u8],
        output: &mut Vec<u8>,
    ) -> Result<(), Error> {
        match operation {
            ToolsOperation::Prompt {
                one_call,
                without_dependencies,
                description_length,
                ..
            } => {
                let mut options = PromptOptions::new();
                if *one_call {
                    options = options.one_call();
                }
                if *without_dependencies {
                    options = options.without_dependencies();
                }
                if let Some(most) = *description_length {
                    options = options.description_length(most);
                }
                let prompt = prompt(self.set.iter(), &self.dialect, &options);
                write(output, &prompt.map_err(Error::dialect)?.text())
            }
            ToolsOperation::Parse { stop, .. } => {
                write_document(output, &self.decided(text, *stop)?, text)
            }
            ToolsOperation::Repair { stop, .. } => {
                let source = ModelText::new(String::from_utf8_lossy(text));
                let document = self.decided(text, *stop)?;
                let message = repair_document(&document, &source, &self.set, &self.dialect)
                    .map_err(Error::dialect)?;
                write(output, &message.as_ref().map(PromptText::text))
            }
            ToolsOperation::History { parts, .. } => {
                let parts: Vec<TurnPart<'_>> = parts.iter().map(Part::turn_part).collect();
                let text = history(&parts, &self.dialect, |name| self.set.get(name));
                write(output, &text.map_err(Error::dialect)?.text())
            }
            ToolsOperation::Results { results, calls, .. } => {
                self.results(results, calls.as_deref(), output)
            }
            ToolsOperation::Render {
                name,
                arguments,
                id,
                dependencies,
                ..
            } => {
                let mut call = JsonCall::new(name, arguments);
                call.id = id.as_deref();
                call.dependencies = dependencies.iter().map(String::as_str).collect();
                let text = render_call(&call, self.set.get(name), &self.dialect);
                write(output, &text.map_err(|error| Error::new("render", error))?)
            }
            ToolsOperation::Escape { .. } => {
                let text = Untrusted::new(String::from_utf8_lossy(text));
                let dialect = std::slice::from_ref(&self.dialect);
                let mut built = PromptTextBuilder::new(dialect).map_err(Error::dialect)?;
                built.untrusted(&text);
                write(output, &built.finish().text())
            }
            ToolsOperation::Grammar {
                engine,
                choice,
                only,
                one_call,
                ids,
                ..
            } => {
                let known = Engine::from_name(engine);
                let engine =
                    known.ok_or_else(|| one_of("engine", engine, Engine::ALL.map(Engine::name)))?;
                let choice = match (only, choice) {
                    (Some(name), _) => Choice::Tool(name.clone()),
                    (None, ChoiceOption::Auto) => Choice::Auto,
                    (None, ChoiceOption::Required) => Choice::Required,
                    (None, ChoiceOption::None) => Choice::None,
                };
                let mut options = GrammarOptions::new().choice(choice);
                if *one_call {
                    options = options.one_call();
                }
                if *ids {
                    options = options.ids();
                }
                let made = grammar(self.set.iter(), &self.dialect, &options);
                let made = made.map_err(|error| Error::new("grammar", error))?;
                let unheld = made.unheld_by(engine);
                let view = GrammarView {
                    text: made.text(engine),
                    notes: unheld.iter().map(ToString::to_string).collect(),
                    request_fields: made.request_fields(engine),
                };
                write(output, &view)
            }
            ToolsOperation::Create { .. }
            | ToolsOperation::Reader { .. }
            | ToolsOperation::Finish { .. }
            | ToolsOperation::BeginReply { .. } => Ok(()),
        }
    }

    fn results(
        &self,
        given: &[ToolResult],
        calls: Option<&[(String, String)]>,
        output: &mut Vec<u8>,
    ) -> Result<(), Error> {
        let mut messages = Vec::new();
        for result in given {
            let (name, id) = (Untrusted::new(&*result.name), Untrusted::new(&*result.id));
            let mut message = ResultMessage::new(name, id);
            if let Some(name) = &result.status {
                let names = Status::ALL.map(Status::name);
                let status = Status::from_name(name);
                message = message.status(status.ok_or_else(|| one_of("status", name, names))?);
            }
            if let Some(output) = &result.output {
                message = message.output(Untrusted::new(&**output));
            }
            if let Some(error) = &result.error {
                message = message.error(Untrusted::new(&**error));
            }
            messages.push(message);
        }
        if let Some(calls) = calls {
            let calls = calls.iter();
            let calls = calls.map(|(name, id)| (Untrusted::new(&**name), Untrusted::new(&**id)));
            messages = in_call_order(calls, messages);
        }
        let text = results(&messages, &self.dialect).map_err(Error::dialect)?;
        write(output, &text.text())
    }
}

impl Part {
    fn turn_part(&self) -> TurnPart<'_> {
        let text = Untrusted::new(&*self.text);
        let Some(arguments) = &self.arguments else {
            return TurnPart::Claimed(text);
        };
        let mut call = PastCall::from_text(text, Untrusted::new(&**arguments));
        let dependencies = self.dependencies.iter();
        call = call.depends_on(dependencies.map(|id| Untrusted::new(&**id)));
        if let Some(id) = &self.id {
            call = call.id(Untrusted::new(&**id));
        }
        TurnPart::Called(call)
    }
}

impl Reader {
    /// Feeds a chunk. The host has made the events of `known` bytes at its beginning.
    pub(crate) fn feed(
        &mut self,
        output: &mut Vec<u8>,
        chunk: &[u8],
        known: usize,
    ) -> Result<(), Error> {
        let (known, chunk) = chunk.split_at_checked(known).unwrap_or((&[], chunk));
        if !known.is_empty() {
            self.reader.feed(known).for_each(drop);
        }
        write_items(output, self.reader.feed(chunk).collect())
    }

    pub(crate) fn open_content(&self) -> Option<OpenContent> {
        self.reader.open_content()
    }

    fn finish(&mut self, output: &mut Vec<u8>, stop: Stop) -> Result<(), Error> {
        write_items(output, self.reader.finish(stop).items)
    }
}

fn write_items(output: &mut Vec<u8>, mut items: Vec<ReplyItem<'_>>) -> Result<(), Error> {
    // Nothing of this chunk has been used yet.
    ReplyItem::reject_reasoning(&mut items);
    for item in items {
        match item {
            ReplyItem::Event(event) => events::write(output, &event)?,
            ReplyItem::Call(read) => {
                events::write_call(output, CallView::new(&read), read.call.span)?;
            }
            _ => {}
        }
    }
    Ok(())
}
