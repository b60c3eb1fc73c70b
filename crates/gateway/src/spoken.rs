//! A dialect, ready to be written and read.

use plaincall_call::{
    EchoGuard, Limits, PassageBuilder, ReplyCheck, ReplyReader, ToolSpec, Unclosed,
};
use plaincall_syntax::{Dialect, DialectError, Escaper};

/// What is made of a dialect once and used in each request in it: searches for markers and the like.
#[derive(Debug)]
pub(crate) struct Spoken {
    pub(crate) told: Dialect,
    pub(crate) read: Dialect,
    /// A passage without anything, to be copied.
    pub(crate) passage: PassageBuilder,
    /// What happens to calls without an end marker.
    pub(crate) unclosed: Unclosed,
    /// A reader that has read nothing and knows no tools, to be copied.
    pub(crate) reader: ReplyReader<&'static [&'static ToolSpec]>,
    /// A guard that has heard nothing, to be copied.
    pub(crate) guard: EchoGuard,
    pub(crate) escaper: Escaper,
}

impl Spoken {
    /// # Errors
    /// Refuses a dialect that cannot work.
    pub(crate) fn new(
        told: Dialect,
        read: Dialect,
        unclosed: Unclosed,
    ) -> Result<Self, DialectError> {
        let check = ReplyCheck::new(&read, unclosed)?
            .without_gate()
            .without_dependencies();
        let reader = ReplyReader::new(&read, &[][..], check, Limits::for_running())?;
        Ok(Self {
            passage: PassageBuilder::new(std::slice::from_ref(&told))?,
            reader: reader.with_events(),
            unclosed,
            guard: EchoGuard::new(std::slice::from_ref(&told))?,
            escaper: Escaper::new(&read)?,
            told,
            read,
        })
    }
}
