//! A dialect, ready to be written and read.

use plaincall_call::{EchoGuard, PassageBuilder, ReplyCheck, Unclosed};
use plaincall_syntax::{Dialect, DialectError, Escaper, Parser};

/// What is made of a dialect once and used in each request in it: searches for markers and the like.
#[derive(Debug)]
pub(crate) struct Spoken {
    /// The dialect in which the conversation is told.
    pub(crate) told: Dialect,
    /// The dialect in which the reply is read.
    pub(crate) read: Dialect,
    /// A passage without anything, to be copied.
    pub(crate) passage: PassageBuilder,
    /// A parser that has read nothing, to be copied.
    pub(crate) parser: Parser,
    /// What decides which calls of a reply may run, to be copied.
    pub(crate) check: ReplyCheck,
    /// A guard that has heard nothing, to be copied.
    pub(crate) guard: EchoGuard,
    /// The escape of what is read.
    pub(crate) escaper: Escaper,
}

impl Spoken {
    /// # Errors
    /// Refuses a dialect that cannot work.
    pub(crate) fn new(told: Dialect, read: Dialect) -> Result<Self, DialectError> {
        Ok(Self {
            passage: PassageBuilder::new(std::slice::from_ref(&told))?,
            parser: Parser::new(&read)?,
            check: ReplyCheck::new(&read, Unclosed::Reject)?
                .without_gate()
                .without_dependencies(),
            guard: EchoGuard::new(std::slice::from_ref(&told))?,
            escaper: Escaper::new(&read)?,
            told,
            read,
        })
    }
}
