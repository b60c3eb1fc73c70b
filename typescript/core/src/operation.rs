//! The operations that are not called often: each has JSON options, and some have a text.

use plaincall_names::DialectOptions;
use plaincall_reply::{Document, ReplyCheck, Stop, Unclosed, document::DocumentReader};
use plaincall_syntax::{ByteParser, Dialect};
use plaincall_tool::{Limits, NoTools};
use serde::{Deserialize, Serialize};
use serde_path_to_error::{Path, Segment};

use crate::dialect::dialect;
use crate::document::{check_calls, write, write_document};
use crate::error::Error;
use crate::events;
#[cfg(feature = "gateway")]
use crate::exchange::ExchangeOperation;
#[cfg(feature = "gateway")]
use crate::plan::PlanOperation;
use crate::state::{Object, State};
#[cfg(feature = "gateway")]
use crate::toolbox::ToolsOperation;

/// An operation.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
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
    Tools(ToolsOperation),
    /// An operation of requests and replies.
    #[cfg(feature = "gateway")]
    Exchange(ExchangeOperation),
    /// An operation of the calls of a reply.
    #[cfg(feature = "gateway")]
    Plan(PlanOperation),
}

/// How a text ended: a word of this package, or the finish reason of any API.
#[derive(Deserialize, Clone, Copy)]
#[serde(from = "Option<String>")]
pub(crate) struct StopOption(Stop);

impl From<Option<String>> for StopOption {
    fn from(word: Option<String>) -> Self {
        let word = word.unwrap_or_default();
        let own = match word.as_str() {
            "endOfFile" => Some(Stop::EndOfFile),
            other => Stop::from_name(other),
        };
        Self(own.unwrap_or_else(|| Stop::from_finish_reason(&word)))
    }
}

impl From<StopOption> for Stop {
    fn from(stop: StopOption) -> Self {
        stop.0
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

/// Returns an operation. Errors name the option of the host.
fn read(json: &[u8]) -> Result<Operation, Error> {
    let mut json = serde_json::Deserializer::from_slice(json);
    serde_path_to_error::deserialize(&mut json).map_err(|error| {
        let (option, message) = (option(error.path()), in_words(&error.inner().to_string()));
        if option.is_empty() {
            return Error::argument(message);
        }
        Error::argument(format!("`{option}`: {message}"))
    })
}

/// The words of derived code, and those of JavaScript.
const WORDS: [(&str, &str); 14] = [
    ("unknown variant ", "found "),
    ("unknown field ", "unknown option "),
    ("missing field ", "missing option "),
    ("invalid type: ", "found "),
    ("invalid value: ", "found "),
    ("found map, ", "found an object, "),
    ("found sequence, ", "found a list, "),
    ("expected a sequence", "expected a list"),
    ("expected a map", "expected an object"),
    ("expected a boolean", "expected true or false"),
    ("a nonzero usize", "a whole number of at least 1"),
    ("a nonzero u32", "a whole number of at least 1"),
    ("expected usize", "expected a whole number of at least 0"),
    ("expected u32", "expected a whole number of at least 0"),
];

/// Returns a message without the words of derived code.
fn in_words(message: &str) -> String {
    // The host writes the JSON, so a place in it means nothing.
    let message = message.split(" at line ").next().unwrap_or_default();
    let mut message = WORDS.iter().fold(message.to_owned(), |text, (from, to)| {
        text.replace(from, to)
    });
    for kind in ["struct ", "variant of enum ", "enum "] {
        if let Some((before, _)) = message.split_once(&format!("expected {kind}")) {
            message = format!("{before}expected an object");
        }
    }
    message
}

/// Returns the name of an option, such as `dialect.key`. The settings of a model are options themselves.
fn option(path: &Path) -> String {
    let mut option = String::new();
    for segment in path {
        match segment {
            Segment::Map { key } if option.is_empty() && key == "settings" => {}
            Segment::Map { key } if option.is_empty() => option.clone_from(key),
            Segment::Map { key } => option = format!("{option}.{key}"),
            Segment::Seq { index } => option = format!("{option}[{index}]"),
            Segment::Enum { .. } | Segment::Unknown => {}
        }
    }
    option
}

/// Returns a reader of complete texts without tools.
fn documents(dialect: &Dialect) -> Result<DocumentReader<NoTools>, Error> {
    let check = ReplyCheck::new(dialect, Unclosed::Reject).map_err(Error::dialect)?;
    DocumentReader::new(dialect, NoTools, check, Limits::for_reading()).map_err(Error::dialect)
}

pub(crate) fn perform(state: &mut State, json: &[u8], text: &[u8]) -> Result<(), Error> {
    match read(json)? {
        Operation::Parser { dialect: options } => {
            let parser = ByteParser::new(&dialect(&options)?).map_err(Error::dialect)?;
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
        Operation::Parse {
            dialect: options,
            stop,
        } => {
            check_calls(text, || dialect(&options))?;
            let (_, reader) = match state.documents.take() {
                Some(known) if known.0 == options => state.documents.insert(known),
                _ => {
                    let reader = documents(&dialect(&options)?)?;
                    state.documents.insert((options, reader))
                }
            };
            let document = reader.read(text, stop.into());
            write_document(&mut state.output, &document, text)
        }
        Operation::NearMisses { dialect: options } => {
            let dialect = dialect(&options)?;
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
        Operation::Tools(of) => of.perform(state, text),
        #[cfg(feature = "gateway")]
        Operation::Exchange(of) => of.perform(state, text),
        #[cfg(feature = "gateway")]
        Operation::Plan(of) => of.perform(state),
    }
}
