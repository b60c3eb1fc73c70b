//! A dialect, ready to be written and read.

use plaincall_call::{EchoGuard, Limits, PromptTextBuilder, ReplyCheck, ReplyReader, ToolSpec};
use plaincall_syntax::{Dialect, DialectError, Escaper};

use crate::settings::ModelSettings;

/// What is made of the settings of a model and a key once, and used in each request with them.
#[derive(Debug)]
pub(crate) struct Spoken {
    pub(crate) told: Dialect,
    pub(crate) read: Dialect,
    /// An empty prompt text, to be copied.
    pub(crate) prompt_text: PromptTextBuilder,
    /// A reader that has read nothing and knows no tools, to be copied.
    pub(crate) reader: ReplyReader<&'static [&'static ToolSpec]>,
    /// A guard that has heard nothing, to be copied.
    pub(crate) guard: EchoGuard,
    pub(crate) escaper: Escaper,
}

impl Spoken {
    pub(crate) fn new(settings: &ModelSettings, key: Option<&str>) -> Result<Self, DialectError> {
        let told = settings.told_dialect(key);
        let read = settings.read_dialect(key);
        let check = ReplyCheck::new(&read, settings.unclosed)?
            .without_gate()
            .without_dependencies();
        let reader = ReplyReader::new(&read, &[][..], check, Limits::for_running())?;
        Ok(Self {
            prompt_text: PromptTextBuilder::new(std::slice::from_ref(&told))?,
            reader: reader.with_events(),
            guard: EchoGuard::new(std::slice::from_ref(&told))?,
            escaper: Escaper::new(&read)?,
            told,
            read,
        })
    }
}
