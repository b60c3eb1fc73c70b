//! Parsing of inputs.

use std::num::NonZeroUsize;

use plaincall_call::{Document, Limits, ReplyCheck, Unclosed, document::DocumentBuilder};
use plaincall_syntax::{ByteParser, Dialect, DialectError, Escaper};

use crate::status::Failure;
use crate::text::input::Input;

/// A parser for `dialect`, which the command line has already accepted.
pub(crate) fn parser(dialect: &Dialect) -> Result<ByteParser, Failure> {
    ByteParser::new(dialect).map_err(|error| refused(&error))
}

/// The check for a text in `dialect`: which of its calls could run.
pub(crate) fn reply_check(dialect: &Dialect) -> Result<ReplyCheck, Failure> {
    ReplyCheck::new(dialect, Unclosed::Reject).map_err(|error| refused(&error))
}

/// The escape of `dialect`, if it has one.
pub(crate) fn escaper(dialect: &Dialect) -> Result<Option<Escaper>, Failure> {
    let escaper = dialect.is_escaped().then(|| Escaper::new(dialect));
    escaper.transpose().map_err(|error| refused(&error))
}

/// A dialect that cannot work is wrong usage.
pub(crate) fn refused(error: &DialectError) -> Failure {
    Failure::Usage(error.to_string())
}

/// The document of an input.
pub(crate) fn read(
    input: Input,
    dialect: &Dialect,
    chunk: Option<NonZeroUsize>,
) -> Result<Document, Failure> {
    let mut parser = parser(dialect)?;
    let mut builder = DocumentBuilder::new(dialect, Limits::for_reading());
    input.for_each_chunk(chunk, |bytes| {
        let events = parser.feed(bytes);
        events.for_each(|event| builder.push(&event));
        Ok(())
    })?;
    parser.finish().for_each(|event| builder.push(&event));
    Ok(builder.finish())
}
