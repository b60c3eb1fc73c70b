//! The parser as a native addon for Node, as the guide of napi-rs shows it: its macros build an object for each event.
//!
//! The events have what those of the npm package have, except that the text of a value is only in `source`.

use napi::{Error, Result};
use napi_derive::napi;
use plaincall_syntax::{Dialect, EventKind, Slot};

/// An event. Members that its type does not have are undefined.
#[napi(object, object_from_js = false)]
#[derive(Default)]
pub struct Event {
    #[napi(js_name = "type")]
    pub kind: &'static str,
    pub start: u32,
    pub end: u32,
    pub source: String,
    pub syntax: Option<&'static str>,
    pub name: Option<String>,
    pub id: Option<String>,
    pub dependencies: Option<Vec<String>>,
    pub raw_args: Option<String>,
    pub pointer: Option<String>,
    pub termination: Option<&'static str>,
    pub code: Option<&'static str>,
    pub severity: Option<&'static str>,
    pub message: Option<String>,
}

/// Finds calls in a text while it arrives.
#[napi]
pub struct Parser(Option<plaincall_syntax::Parser>);

#[napi]
impl Parser {
    /// Creates a parser of the block syntax for one text.
    #[napi(constructor)]
    pub fn new() -> Result<Self> {
        let parser = plaincall_syntax::Parser::new(&Dialect::block());
        parser
            .map(|parser| Self(Some(parser)))
            .map_err(|error| Error::from_reason(error.to_string()))
    }

    /// Reads the next chunk, and returns its events.
    #[napi]
    pub fn feed(&mut self, chunk: String) -> Result<Vec<Event>> {
        let parser = self.0.as_mut().ok_or_else(finished)?;
        Ok(parser.feed(&chunk).map(|event| to_object(&event)).collect())
    }

    /// Ends the text, and returns its last events.
    #[napi]
    pub fn finish(&mut self) -> Result<Vec<Event>> {
        let parser = self.0.take().ok_or_else(finished)?;
        Ok(parser.finish().map(|event| to_object(&event)).collect())
    }
}

fn finished() -> Error {
    Error::from_reason("the parser is finished; create another one for the next text")
}

fn to_object(event: &plaincall_syntax::Event<'_>) -> Event {
    let number = |offset: usize| u32::try_from(offset).unwrap_or(u32::MAX);
    let with = |kind| Event {
        kind,
        start: number(event.span.start),
        end: number(event.span.end),
        source: event.source().to_owned(),
        ..Event::default()
    };
    match &event.kind {
        EventKind::Text(_) => with("text"),
        EventKind::Reasoning(_) => with("reasoning"),
        EventKind::ValueDelta(_) => with("value_delta"),
        EventKind::ValueEnd => with("value_end"),
        EventKind::CallStart(header) => Event {
            syntax: Some(header.syntax().name()),
            name: Some(header.name().to_owned()),
            id: header.id().map(str::to_owned),
            dependencies: Some(header.dependencies().map(str::to_owned).collect()),
            raw_args: header.raw_args().map(str::to_owned),
            ..with("call_start")
        },
        EventKind::ValueStart(slot) => Event {
            pointer: match slot {
                Slot::Argument(pointer) => Some(pointer.as_str().to_owned()),
                Slot::Body => None,
            },
            ..with("value_start")
        },
        EventKind::CallEnd(ending) => Event {
            termination: Some(ending.termination().name()),
            ..with("call_end")
        },
        EventKind::Diagnostic(found) => Event {
            code: Some(found.code.name()),
            severity: Some(found.severity().name()),
            message: Some(found.message()),
            ..with("diagnostic")
        },
        _ => with("ignored"),
    }
}
