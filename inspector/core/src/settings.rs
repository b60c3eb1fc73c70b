//! The input of the page: a text, its dialect and its tools.

use plaincall_config::DialectOptions;
use plaincall_reply::{Document, ReplyCheck, Stop, Unclosed};
use plaincall_report::diagnostics::RunSettings;
use plaincall_report::source::Source;
use plaincall_syntax::{Dialect, Syntax};
use plaincall_tool::{ToolSet, definitions::read_tool_definitions};
use serde::Deserialize;

/// The choices of the page. They are the options of `plaincall check`.
#[derive(Deserialize)]
#[serde(deny_unknown_fields, default)]
pub(crate) struct Settings {
    dialect: DialectOptions,
    no_reasoning: bool,
    stop: Stop,
    unclosed: Unclosed,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            dialect: DialectOptions::default(),
            no_reasoning: false,
            stop: Stop::Broken,
            unclosed: Unclosed::default(),
        }
    }
}

/// A text with its dialect and tools.
pub(crate) struct Inspected {
    pub(crate) source: Source,
    /// The dialect as it is set.
    pub(crate) given: Dialect,
    /// The dialect of a reply: reasoning may come first.
    pub(crate) dialect: Dialect,
    pub(crate) tools: Option<ToolSet>,
    pub(crate) stop: Stop,
    unclosed: Unclosed,
}

impl Inspected {
    pub(crate) fn new(settings: Settings, tools: &[u8], text: &[u8]) -> Result<Self, String> {
        let options = settings.dialect;
        let dialect = options.of_reply(settings.no_reasoning);
        let dialect = dialect.map_err(|error| error.to_string())?;
        // Reasoning that has begun has the markers of a reply.
        let given = if options.in_reasoning && options.reasoning.is_none() {
            dialect.clone()
        } else {
            options.dialect().map_err(|error| error.to_string())?
        };
        Ok(Self {
            source: Source::new("reply".to_owned(), text.to_vec()),
            given,
            dialect,
            tools: read_tools(tools)?,
            stop: settings.stop,
            unclosed: settings.unclosed,
        })
    }

    pub(crate) fn run(&self) -> RunSettings<'_> {
        RunSettings {
            dialect: &self.dialect,
            tools: self.tools.as_ref(),
            unclosed: self.unclosed,
            stop: self.stop,
        }
    }

    pub(crate) fn check(&self) -> Result<ReplyCheck, String> {
        ReplyCheck::new(&self.dialect, self.unclosed).map_err(|error| error.to_string())
    }

    pub(crate) fn decided(&self) -> Result<Document, String> {
        self.decided_by(self.check()?)
    }

    pub(crate) fn decided_by(&self, check: ReplyCheck) -> Result<Document, String> {
        let (text, tools) = (&self.source.text, self.tools.as_ref());
        let read = Document::read(text, &self.dialect, tools, check, self.stop);
        read.map_err(|error| error.to_string())
    }

    /// Returns the dialect of texts for the model: that of the first call, or else of blocks.
    pub(crate) fn one_syntax(&self) -> Result<Dialect, String> {
        let syntax = self.decided()?.syntax.unwrap_or(Syntax::Block);
        Ok(self.dialect.for_syntax(syntax))
    }

    /// Returns the tools, or an error that asks for them.
    pub(crate) fn needs_tools(&self) -> Result<&ToolSet, String> {
        let missing = "paste the definitions of the tools: this text is about them";
        self.tools.as_ref().ok_or_else(|| missing.to_owned())
    }
}

/// Reads definitions, if there are any. Nothing runs here, so the effect of a tool is that of its annotations.
fn read_tools(text: &[u8]) -> Result<Option<ToolSet>, String> {
    let text = String::from_utf8_lossy(text);
    if text.trim().is_empty() {
        return Ok(None);
    }
    let mut tools = read_tool_definitions(&text).map_err(|error| error.to_string())?;
    for tool in &mut tools {
        tool.effect = tool.hinted_effect.unwrap_or(tool.effect);
    }
    let tools = ToolSet::new(tools).map_err(|error| error.to_string())?;
    Ok(Some(tools))
}
