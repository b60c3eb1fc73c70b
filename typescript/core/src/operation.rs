//! The operations that are not called often: each has JSON options, and some have a text.

use plaincall_call::decision::DecidedDocument;
use plaincall_call::{Document, ReplyCheck, Stop, Unclosed};
use plaincall_syntax::ByteParser;
use serde::{Deserialize, Serialize};

use crate::dialect::DialectOptions;
use crate::document::{write, write_document};
use crate::error::Error;
use crate::events;
#[cfg(feature = "gateway")]
use crate::exchange::ExchangeOperation;
use crate::state::{Object, State};
#[cfg(feature = "gateway")]
use crate::toolbox::ToolsOperation;

/// An operation.
#[derive(Deserialize)]
#[serde(
    tag = "operation",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
enum Operation {
    /// Creates a parser.
    Parser { dialect: DialectOptions },
    /// Ends a parser, and writes the last events.
    Finish { object: u32 },
    /// Parses the text.
    Parse {
        dialect: DialectOptions,
        stop: StopOption,
    },
    /// Finds text that looks like a marker.
    NearMisses { dialect: DialectOptions },
    /// An operation of tools.
    #[cfg(feature = "gateway")]
    Tools { of: ToolsOperation },
    /// An operation of requests and replies.
    #[cfg(feature = "gateway")]
    Exchange { of: ExchangeOperation },
}

/// How a text ended.
#[derive(Deserialize, Clone, Copy)]
#[serde(rename_all = "camelCase")]
pub(crate) enum StopOption {
    Natural,
    EndOfFile,
    Length,
    Broken,
}

impl From<StopOption> for Stop {
    fn from(stop: StopOption) -> Self {
        match stop {
            StopOption::Natural => Self::Natural,
            StopOption::EndOfFile => Self::EndOfFile,
            StopOption::Length => Self::Length,
            StopOption::Broken => Self::Broken,
        }
    }
}

/// Text that looks like a marker.
#[derive(Serialize)]
struct NearMissView<'t> {
    source: &'t str,
    suggestion: &'t str,
    start: usize,
    end: usize,
}

pub(crate) fn perform(state: &mut State, json: &[u8], text: &[u8]) -> Result<(), Error> {
    match serde_json::from_slice(json).map_err(Error::argument)? {
        Operation::Parser { dialect } => {
            let parser = ByteParser::new(&dialect.dialect()?).map_err(Error::dialect)?;
            let number = state.add(Object::Parser(Box::new(parser)));
            write(&mut state.output, &number)
        }
        Operation::Finish { object } => {
            let Some(Object::Parser(parser)) = state.remove(object) else {
                return Err(Error::finished());
            };
            for event in parser.finish() {
                events::write(&mut state.output, &event)?;
            }
            Ok(())
        }
        Operation::Parse { dialect, stop } => {
            let dialect = dialect.dialect()?;
            let check = ReplyCheck::new(&dialect, Unclosed::Reject).map_err(Error::dialect)?;
            let read = DecidedDocument::new(text, &dialect, check, stop.into());
            write_document(&mut state.output, &read.map_err(Error::dialect)?, text)
        }
        Operation::NearMisses { dialect } => {
            let dialect = dialect.dialect()?;
            let text = String::from_utf8_lossy(text);
            let found = Document::parse(&text, &dialect)
                .and_then(|document| document.near_misses(&text, &dialect));
            let found = found.map_err(Error::dialect)?;
            let views = found.iter().map(|miss| NearMissView {
                source: text.get(miss.span.range()).unwrap_or_default(),
                suggestion: &miss.suggestion,
                start: miss.span.start,
                end: miss.span.end,
            });
            write(&mut state.output, &views.collect::<Vec<_>>())
        }
        #[cfg(feature = "gateway")]
        Operation::Tools { of } => of.perform(state, text),
        #[cfg(feature = "gateway")]
        Operation::Exchange { of } => of.perform(state, text),
    }
}
