//! Tools in one dialect: prompts, replies, repair messages, history and results.

use std::sync::Arc;

use plaincall_names::{Effect, Unclosed};
use plaincall_prompt::history::{
    PastCall, ResultMessage, Status, TurnPart, history, in_call_order, results,
};
use plaincall_prompt::render::{JsonCall, render_call};
use plaincall_prompt::{PromptOptions, prompt};
use plaincall_reply::document::DocumentReader;
use plaincall_reply::extract::Extractor;
use plaincall_reply::{PromptTextBuilder, ReplyCheck, ReplyReader, Stop, Untrusted};
use plaincall_syntax::DialectError;
use plaincall_tool::Limits;
use plaincall_tool::definitions::read_tool_definitions;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::dialect::Dialect;
use crate::document::{Document, Source};
use crate::error;
use crate::error::RenderError;
use crate::grammar::{self, Grammar};
use crate::input::{Lossy, count, dialect_of, wrong_type};
use crate::json;
use crate::reader::Reader;
use crate::settings::{stop_from, unclosed_from};

/// Definitions of tools in one dialect. `plaincall.Toolbox` is this class with Python functions.
#[pyclass(frozen, module = "plaincall._plaincall")]
pub(crate) struct ToolSet {
    pub(crate) tools: Arc<plaincall_tool::ToolSet>,
    pub(crate) dialect: plaincall_syntax::Dialect,
    /// The dialect for Python.
    shown: Dialect,
    unclosed: Unclosed,
    /// For cloning.
    pub(crate) check: ReplyCheck,
    document: DocumentReader<Arc<plaincall_tool::ToolSet>>,
    reply: ReplyReader<Arc<plaincall_tool::ToolSet>>,
    /// For pickles.
    definitions: String,
    effects: Effects,
}

/// The effects of tools, by name.
type Effects = Vec<(String, String)>;

/// The class and its arguments, which create an object again.
type Reduced<'py> = (Bound<'py, PyType>, (String, Effects, Dialect, &'static str));

/// A part of an earlier turn: `(text, None)`, or `(name, (id, dependencies, arguments as JSON))`.
type Part = (Lossy, Option<(Option<Lossy>, Vec<Lossy>, Lossy)>);

/// A result: `(name, id, status, output, error)`.
type ToolResult = (Lossy, Lossy, Option<String>, Option<Lossy>, Option<Lossy>);

impl ToolSet {
    /// Returns an extractor of rows of a table.
    pub(crate) fn extractor(&self, stop: Stop) -> Result<Extractor, DialectError> {
        let tools = Some(Arc::clone(&self.tools));
        Extractor::new(&self.dialect, self.unclosed, tools, stop)
    }
}

#[pymethods]
impl ToolSet {
    /// Reads definitions of tools from JSON. `effects` has the effect of each tool for which it is known.
    ///
    /// Raises `DefinitionError` with all problems, each with a JSON Pointer to its place.
    #[new]
    fn new(
        definitions: String,
        effects: Effects,
        dialect: &Bound<'_, PyAny>,
        unclosed: &Bound<'_, PyAny>,
    ) -> PyResult<Self> {
        let mut specs = read_tool_definitions(&definitions).map_err(error::definition)?;
        for (name, effect) in &effects {
            let names = Effect::ALL.map(Effect::name);
            let known = Effect::from_name(effect);
            let effect = known.ok_or_else(|| error::one_of("effect", effect, &names))?;
            for tool in specs.iter_mut().filter(|tool| tool.name == *name) {
                tool.effect = effect;
            }
        }
        let tools = Arc::new(plaincall_tool::ToolSet::new(specs).map_err(error::definition)?);
        let dialect = Dialect::or_auto(dialect_of(Some(dialect))?).for_reply();
        let unclosed = unclosed_from(unclosed)?;
        let inner = dialect.inner.clone();
        let check = ReplyCheck::new(&inner, unclosed).map_err(error::dialect)?;
        let own = || (Arc::clone(&tools), check.clone());
        let (for_document, for_reply) = (own(), own());
        let limits = Limits::for_reading();
        let document = DocumentReader::new(&inner, for_document.0, for_document.1, limits);
        let limits = Limits::for_running();
        let reply = ReplyReader::new(&inner, for_reply.0, for_reply.1, limits);
        Ok(Self {
            document: document.map_err(error::dialect)?,
            reply: reply.map_err(error::dialect)?,
            tools,
            dialect: inner,
            shown: dialect,
            unclosed,
            check,
            definitions,
            effects,
        })
    }

    /// What pickles contain.
    fn __reduce__<'py>(&self, py: Python<'py>) -> Reduced<'py> {
        let arguments = (
            self.definitions.clone(),
            self.effects.clone(),
            self.shown.clone(),
            self.unclosed.name(),
        );
        (py.get_type::<Self>(), arguments)
    }

    /// Returns the tools by name, in order: the description, the JSON Schema of the arguments and the effect.
    fn tools<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let tools = PyDict::new(py);
        for tool in self.tools.iter() {
            let schema = tool.to_schema().to_string();
            let effect = tool.effect.name();
            tools.set_item(&tool.name, (&tool.description, schema, effect))?;
        }
        Ok(tools)
    }

    /// The dialect.
    #[getter]
    fn dialect(&self) -> Dialect {
        self.shown.clone()
    }

    /// Returns the system prompt that teaches a model to call the tools.
    ///
    /// Raises `DialectError` for the automatic dialect: a prompt teaches one syntax.
    #[pyo3(signature = (*, one_call=false, without_dependencies=false, description_length=None))]
    fn prompt(
        &self,
        one_call: bool,
        without_dependencies: bool,
        description_length: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<String> {
        let mut options = PromptOptions::new();
        if one_call {
            options = options.one_call();
        }
        if without_dependencies {
            options = options.without_dependencies();
        }
        if let Some(most) = description_length {
            options = options.description_length(count("description_length", most)?);
        }
        let prompt = prompt(self.tools.iter(), &self.dialect, &options);
        Ok(prompt.map_err(error::dialect)?.text().to_owned())
    }

    /// Reads a complete reply, and validates its calls. `stop` states how it ended, as in `plaincall.parse`.
    #[pyo3(signature = (text, *, stop=None))]
    pub(crate) fn parse(
        this: &Bound<'_, Self>,
        text: &Bound<'_, PyAny>,
        stop: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<Document> {
        let tools = this.get();
        let source = Source::new(text, Some(this.clone().into_any()), stop_from(stop)?);
        let own = Some(Arc::clone(&tools.tools));
        source.read(this.py(), &tools.document, own)
    }

    /// Returns a reader of replies that still arrive.
    fn reader(&self) -> Reader {
        Reader::new(self.reply.clone())
    }

    /// Returns a message to the model about the rejected calls of a document, or `None` if there is none. If a reply has no
    /// call, but text like one, the message is about that.
    fn repair(&self, document: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
        let expected = "a Document, which `parse` returns";
        let read = document.cast::<Document>();
        let read = read.map_err(|_| wrong_type("document", expected, document))?;
        let message = read
            .get()
            .repair(document.py(), &self.tools, &self.dialect)?;
        Ok(message.map(|message| message.text().to_owned()))
    }

    /// Writes an earlier turn of the model.
    fn history(&self, parts: Vec<Part>) -> PyResult<String> {
        let parts = parts.into_iter().map(|(text, call)| {
            let text = Untrusted::new(text.0);
            let Some((id, dependencies, arguments)) = call else {
                return TurnPart::Claimed(text);
            };
            let mut call = PastCall::from_text(text, Untrusted::new(arguments.0));
            call = call.depends_on(dependencies.into_iter().map(|id| Untrusted::new(id.0)));
            if let Some(id) = id {
                call = call.id(Untrusted::new(id.0));
            }
            TurnPart::Called(call)
        });
        let parts: Vec<TurnPart<'_>> = parts.collect();
        let text = history(&parts, &self.dialect, |name| self.tools.get(name));
        Ok(text.map_err(error::dialect)?.into_text())
    }

    /// Writes the results of calls, in the order of `calls` (names and ids). Without `calls`, in their own.
    #[pyo3(signature = (given, calls=None))]
    fn results(
        &self,
        given: Vec<ToolResult>,
        calls: Option<Vec<(Lossy, Lossy)>>,
    ) -> PyResult<String> {
        let mut messages = Vec::new();
        for (name, id, status, output, error) in given {
            let mut message = ResultMessage::new(Untrusted::new(name.0), Untrusted::new(id.0));
            if let Some(name) = status {
                let names = Status::ALL.map(Status::name);
                let status = Status::from_name(&name);
                message =
                    message.status(status.ok_or_else(|| error::one_of("status", &name, &names))?);
            }
            if let Some(output) = output {
                message = message.output(Untrusted::new(output.0));
            }
            if let Some(error) = error {
                message = message.error(Untrusted::new(error.0));
            }
            messages.push(message);
        }
        if let Some(calls) = calls {
            let calls = calls.into_iter();
            let calls = calls.map(|(name, id)| (Untrusted::new(name.0), Untrusted::new(id.0)));
            messages = in_call_order(calls, messages);
        }
        let text = results(&messages, &self.dialect).map_err(error::dialect)?;
        Ok(text.into_text())
    }

    /// Writes a call with JSON arguments in the syntax of the dialect.
    ///
    /// Raises `RenderError` if the syntax cannot express it.
    fn render(
        &self,
        name: &str,
        arguments: &str,
        id: Option<&str>,
        dependencies: Vec<String>,
    ) -> PyResult<String> {
        let arguments = json::object("arguments", arguments)?;
        let mut call = JsonCall::new(name, &arguments);
        call.id = id;
        call.dependencies = dependencies.iter().map(String::as_str).collect();
        let text = render_call(&call, self.tools.get(name), &self.dialect);
        text.map_err(|error| RenderError::new_err(error.to_string()))
    }

    /// Escapes untrusted text, so that it contains no call.
    fn escape(&self, text: Lossy) -> PyResult<String> {
        let dialect = std::slice::from_ref(&self.dialect);
        let mut built = PromptTextBuilder::new(dialect).map_err(error::dialect)?;
        built.untrusted(&Untrusted::new(text.0));
        Ok(built.finish().into_text())
    }

    /// Returns a grammar for constrained decoding.
    ///
    /// Raises `GrammarError` if the tools have none.
    #[pyo3(signature = (engine, *, choice="auto", only=None, one_call=false, ids=false))]
    fn grammar(
        &self,
        engine: &str,
        choice: &str,
        only: Option<String>,
        one_call: bool,
        ids: bool,
    ) -> PyResult<Grammar> {
        let options = grammar::Options {
            engine,
            choice,
            only,
            one_call,
            ids,
        };
        grammar::new(&self.tools, &self.dialect, options)
    }
}
