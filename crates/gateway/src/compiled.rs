//! A dialect, compiled for writing prompts and reading replies.

use plaincall_reply::rescue::RescueReader;
use plaincall_reply::untrusted::EchoGuard;
use plaincall_reply::{PromptTextBuilder, ReplyCheck, ReplyReader};
use plaincall_syntax::{Dialect, DialectError, Escaper};
use plaincall_tool::{Limits, ToolSpec};

use crate::settings::{ModelSettings, ToolMode};

/// The parts derived from a model's settings and a marker key, compiled once and cloned for each request.
#[derive(Debug)]
pub(crate) struct CompiledDialect {
    pub(crate) dialect: Dialect,
    /// An empty builder, for cloning.
    pub(crate) prompt_text: PromptTextBuilder,
    /// A reader without tools, for cloning.
    pub(crate) reader: ReplyReader<&'static [&'static ToolSpec]>,
    /// A guard without texts, for cloning.
    pub(crate) guard: EchoGuard,
    pub(crate) escaper: Escaper,
    /// In native mode: a reader of calls that arrive as text, without tools, for cloning.
    pub(crate) rescue: Option<RescueReader<&'static [&'static ToolSpec]>>,
}

impl CompiledDialect {
    pub(crate) fn new(settings: &ModelSettings, key: Option<&str>) -> Result<Self, DialectError> {
        let dialect = settings.dialect(key);
        let check = ReplyCheck::new(&dialect, settings.unclosed)?
            .without_gate()
            .without_dependencies();
        let reader = ReplyReader::new(&dialect, &[][..], check, Limits::for_running())?;
        Ok(Self {
            prompt_text: PromptTextBuilder::new(std::slice::from_ref(&dialect))?,
            reader: reader.with_events(),
            guard: match settings.mode {
                ToolMode::Text => EchoGuard::new(std::slice::from_ref(&dialect))?,
                ToolMode::Native => EchoGuard::new(&[Dialect::auto()])?,
            },
            rescue: match settings.mode {
                ToolMode::Text => None,
                ToolMode::Native => Some(rescue_reader(&dialect)?),
            },
            escaper: Escaper::new(&dialect)?,
            dialect,
        })
    }
}

fn rescue_reader(
    dialect: &Dialect,
) -> Result<RescueReader<&'static [&'static ToolSpec]>, DialectError> {
    match dialect.reasoning_markers().map(|it| it.map(str::to_owned)) {
        Some(markers) if dialect.is_in_reasoning() => RescueReader::in_reasoning(markers),
        markers => RescueReader::new(markers),
    }
}
