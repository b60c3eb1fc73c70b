//! Bytes in, a document out.

use std::num::NonZeroUsize;

use plaincall_call::{Document, DocumentBuilder, Limits, ReplyCheck, Unclosed};
use plaincall_syntax::{ByteParser, Dialect, DialectError, Escaper};

use crate::status::Failure;
use crate::text::input::Input;

/// A text that is being read into a document.
pub(crate) struct Reading {
    parser: ByteParser,
    builder: DocumentBuilder,
}

impl Reading {
    pub(crate) fn new(dialect: &Dialect) -> Result<Self, Failure> {
        Ok(Self {
            parser: parser(dialect)?,
            builder: DocumentBuilder::new(dialect, Limits::for_reading()),
        })
    }

    pub(crate) fn feed(&mut self, bytes: &[u8]) {
        for event in self.parser.feed(bytes) {
            self.builder.push(&event);
        }
    }

    pub(crate) fn finish(mut self) -> Document {
        for event in self.parser.finish() {
            self.builder.push(&event);
        }
        self.builder.finish()
    }
}

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
    let mut reading = Reading::new(dialect)?;
    input.for_each_chunk(chunk, |bytes| {
        reading.feed(bytes);
        Ok(())
    })?;
    Ok(reading.finish())
}

/// The document of bytes that are there already.
pub(crate) fn read_bytes(
    bytes: &[u8],
    dialect: &Dialect,
    chunk: Option<NonZeroUsize>,
) -> Result<Document, Failure> {
    let mut reading = Reading::new(dialect)?;
    match chunk {
        None => reading.feed(bytes),
        Some(size) => bytes
            .chunks(size.get())
            .for_each(|bytes| reading.feed(bytes)),
    }
    Ok(reading.finish())
}
