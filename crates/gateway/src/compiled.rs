//! A dialect, compiled for writing prompts and reading replies.

use plaincall_call::{
    Limits, PromptTextBuilder, ReplyCheck, ReplyReader, ToolSpec, untrusted::EchoGuard,
};
use plaincall_syntax::{Dialect, DialectError, Escaper};

use crate::settings::ModelSettings;

/// The parts derived from a model's settings and a marker key, compiled once and cloned for each request.
#[derive(Debug)]
pub(crate) struct CompiledDialect {
    pub(crate) prompt_dialect: Dialect,
    pub(crate) reply_dialect: Dialect,
    /// An empty builder, for cloning.
    pub(crate) prompt_text: PromptTextBuilder,
    /// A reader without tools, for cloning.
    pub(crate) reader: ReplyReader<&'static [&'static ToolSpec]>,
    /// A guard without texts, for cloning.
    pub(crate) guard: EchoGuard,
    pub(crate) escaper: Escaper,
}

impl CompiledDialect {
    pub(crate) fn new(settings: &ModelSettings, key: Option<&str>) -> Result<Self, DialectError> {
        let prompt_dialect = settings.prompt_dialect(key);
        let reply_dialect = settings.reply_dialect(key);
        let check = ReplyCheck::new(&reply_dialect, settings.unclosed)?
            .without_gate()
            .without_dependencies();
        let reader = ReplyReader::new(&reply_dialect, &[][..], check, Limits::for_running())?;
        Ok(Self {
            prompt_text: PromptTextBuilder::new(std::slice::from_ref(&prompt_dialect))?,
            reader: reader.with_events(),
            guard: EchoGuard::new(std::slice::from_ref(&prompt_dialect))?,
            escaper: Escaper::new(&reply_dialect)?,
            prompt_dialect,
            reply_dialect,
        })
    }
}
