//! A dialect, compiled for writing prompts and reading replies.

use plaincall_call::{
    Limits, PromptTextBuilder, ReplyCheck, ReplyReader, ToolSpec, rescue::RescueReader,
    untrusted::EchoGuard,
};
use plaincall_syntax::{Dialect, DialectError, Escaper};

use crate::settings::{ModelSettings, ToolMode};

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
    /// In native mode: a reader of calls that arrive as text, without tools, for cloning.
    pub(crate) rescue: Option<RescueReader<&'static [&'static ToolSpec]>>,
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
            guard: match settings.mode {
                ToolMode::Text => EchoGuard::new(std::slice::from_ref(&prompt_dialect))?,
                ToolMode::Native => EchoGuard::new(&[Dialect::auto()])?,
            },
            rescue: match settings.mode {
                ToolMode::Text => None,
                ToolMode::Native => Some(rescue_reader(settings)?),
            },
            escaper: Escaper::new(&reply_dialect)?,
            prompt_dialect,
            reply_dialect,
        })
    }
}

fn rescue_reader(
    settings: &ModelSettings,
) -> Result<RescueReader<&'static [&'static ToolSpec]>, DialectError> {
    let Some(span) = &settings.reasoning else {
        return RescueReader::new(None);
    };
    let markers = [span.open.clone(), span.close.clone()];
    Ok(if span.is_started {
        RescueReader::in_reasoning(markers)?
    } else {
        RescueReader::new(Some(markers))?
    })
}
