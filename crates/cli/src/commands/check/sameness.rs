//! A text read as a whole, and whether another way to read it says the same.

use std::io::{self, Write};

use plaincall_call::{DocumentBuilder, Limits, Span};
use plaincall_syntax::{ByteParser, Dialect, Event, EventKind};
use serde_json::{Value, json};

use crate::status::Failure;
use crate::text::event_line::EventLine;
use crate::text::reading::parser;

/// What a text is when it is read in one chunk.
pub(super) struct Whole {
    /// A parser that has read nothing yet; each reading begins with a copy of it.
    fresh: ByteParser,
    builder: DocumentBuilder,
    /// The events, neighbouring pieces of one kind put together.
    parts: Vec<Part>,
    /// The document as `parse` prints it.
    document: Vec<u8>,
}

/// An event, or what is delivered in pieces as if it had come in one.
#[derive(Clone, Debug, PartialEq)]
enum Part {
    Content {
        kind: Content,
        text: String,
        span: Span,
    },
    Event(Event<'static>),
}

/// What is delivered in pieces.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Content {
    Text,
    Reasoning,
    Value,
    Ignored,
}

/// Where two readings of one text part, and what each says there.
#[derive(Debug, PartialEq)]
pub(super) struct Difference {
    /// The first byte about which they do not agree.
    pub(super) place: usize,
    pub(super) whole: String,
    pub(super) cut: String,
}

impl Whole {
    pub(super) fn read(bytes: &[u8], dialect: &Dialect) -> Result<Self, Failure> {
        let mut whole = Self {
            fresh: parser(dialect)?,
            builder: DocumentBuilder::new(dialect, Limits::for_reading()),
            parts: Vec::new(),
            document: Vec::new(),
        };
        (whole.parts, whole.document) = whole.parts_of(&whole.fresh, [bytes])?;
        Ok(whole)
    }

    /// Whether the text says the same where it comes in these chunks.
    pub(super) fn is_said_by<'b>(&self, chunks: impl IntoIterator<Item = &'b [u8]>) -> bool {
        self.is_read_by(&self.fresh, chunks)
    }

    fn is_read_by<'b>(
        &self,
        fresh: &ByteParser,
        chunks: impl IntoIterator<Item = &'b [u8]>,
    ) -> bool {
        let mut parser = fresh.clone();
        let mut builder = self.builder.clone();
        let mut follower = Follower::new(&self.parts);
        for chunk in chunks {
            for event in parser.feed(chunk) {
                follower.follow(&event);
                builder.push(&event);
            }
            if !follower.agrees {
                return false;
            }
        }
        for event in parser.finish() {
            follower.follow(&event);
            builder.push(&event);
        }
        let same = Same(&self.document);
        follower.is_through() && serde_json::to_writer(same, &builder.finish()).is_ok()
    }

    /// Where the reading in these chunks, which does not say the same, parts from this one.
    pub(super) fn difference<'b>(
        &self,
        chunks: impl IntoIterator<Item = &'b [u8]>,
    ) -> Result<Difference, Failure> {
        let (parts, document) = self.parts_of(&self.fresh, chunks)?;
        Ok(self.difference_to(&parts, &document))
    }

    fn difference_to(&self, parts: &[Part], document: &[u8]) -> Difference {
        let same = self.parts.iter().zip(parts).take_while(|(a, b)| a == b);
        let same = same.count();
        let (whole, cut) = (self.parts.get(same), parts.get(same));
        if whole.is_none() && cut.is_none() {
            return difference_of_documents(&self.document, document);
        }
        let start = |part: Option<&Part>| part.map(Part::start);
        let ends = [start(whole), start(cut)];
        let place = ends.into_iter().flatten().min().unwrap_or_default();
        Difference {
            place: place + common_beginning(whole, cut),
            whole: told(whole),
            cut: told(cut),
        }
    }

    /// What a parser that has read nothing yet makes of these chunks.
    fn parts_of<'b>(
        &self,
        fresh: &ByteParser,
        chunks: impl IntoIterator<Item = &'b [u8]>,
    ) -> Result<(Vec<Part>, Vec<u8>), Failure> {
        let mut parser = fresh.clone();
        let mut builder = self.builder.clone();
        let mut parts = Vec::new();
        let mut take = |event: Event<'_>| {
            builder.push(&event);
            add(&mut parts, event);
        };
        for chunk in chunks {
            parser.feed(chunk).for_each(&mut take);
        }
        parser.finish().for_each(&mut take);
        let document = serde_json::to_vec(&builder.finish());
        let document = document.map_err(|error| Failure::output(&error.into()))?;
        Ok((parts, document))
    }
}

impl Part {
    fn start(&self) -> usize {
        match self {
            Self::Content { span, .. } => span.start,
            Self::Event(event) => event.span.start,
        }
    }

    /// The part as `parse --events` prints it.
    fn json(&self) -> Value {
        match self {
            Self::Content { kind, text, span } => {
                json!({"type": kind.name(), "span": [span.start, span.end], "text": text})
            }
            Self::Event(event) => serde_json::to_value(EventLine(event)).unwrap_or_default(),
        }
    }
}

impl Content {
    const fn name(self) -> &'static str {
        match self {
            Self::Text => "text",
            Self::Reasoning => "reasoning",
            Self::Value => "value_delta",
            Self::Ignored => "ignored",
        }
    }
}

fn told(part: Option<&Part>) -> String {
    part.map_or_else(|| "nothing".to_owned(), |part| part.json().to_string())
}

/// How far the texts of two parts of one kind are the same.
fn common_beginning(a: Option<&Part>, b: Option<&Part>) -> usize {
    match (a, b) {
        (
            Some(Part::Content { kind, text, span }),
            Some(Part::Content {
                kind: other_kind,
                text: other_text,
                span: other_span,
            }),
        ) if kind == other_kind && span.start == other_span.start => {
            let common = text.chars().zip(other_text.chars());
            let common = common.take_while(|(a, b)| a == b).map(|(a, _)| a);
            common.map(char::len_utf8).sum()
        }
        _ => 0,
    }
}

/// The events agree, so it is in what is made of them.
fn difference_of_documents(whole: &[u8], cut: &[u8]) -> Difference {
    let segments = |document: &[u8]| match serde_json::from_slice(document) {
        Ok(Value::Object(mut document)) => match document.remove("segments") {
            Some(Value::Array(segments)) => segments,
            _ => Vec::new(),
        },
        _ => Vec::new(),
    };
    let (whole, cut) = (segments(whole), segments(cut));
    let same = whole.iter().zip(&cut).take_while(|(a, b)| a == b).count();
    let told = |segments: &[Value]| segments.get(same).unwrap_or(&Value::Null).to_string();
    let place = whole.get(same).or(cut.get(same));
    let place = place.and_then(|segment| segment.pointer("/span/0")?.as_u64());
    Difference {
        place: place
            .and_then(|at| usize::try_from(at).ok())
            .unwrap_or_default(),
        whole: told(&whole),
        cut: told(&cut),
    }
}

/// What of an event may come in pieces.
fn content<'e>(event: &'e Event<'_>) -> Option<(Content, &'e str)> {
    match &event.kind {
        EventKind::Text(piece) => Some((Content::Text, piece)),
        EventKind::Reasoning(piece) => Some((Content::Reasoning, piece)),
        EventKind::ValueDelta(piece) => Some((Content::Value, piece)),
        EventKind::Ignored(piece) => Some((Content::Ignored, piece)),
        _ => None,
    }
}

fn add(parts: &mut Vec<Part>, event: Event<'_>) {
    let Some((kind, piece)) = content(&event) else {
        parts.push(Part::Event(event.into_owned()));
        return;
    };
    match parts.last_mut() {
        Some(Part::Content {
            kind: last,
            text,
            span,
        }) if *last == kind && span.end == event.span.start => {
            text.push_str(piece);
            span.end = event.span.end;
        }
        _ => parts.push(Part::Content {
            kind,
            text: piece.to_owned(),
            span: event.span,
        }),
    }
}

/// Holds the events of another reading against those of the whole, one after another, and keeps none of them.
struct Follower<'w> {
    parts: &'w [Part],
    next: usize,
    /// How much of the next part has come, if it comes in pieces: of its text, and its place in the input.
    text: usize,
    place: usize,
    agrees: bool,
}

impl<'w> Follower<'w> {
    fn new(parts: &'w [Part]) -> Self {
        Self {
            parts,
            next: 0,
            text: 0,
            place: 0,
            agrees: true,
        }
    }

    fn follow(&mut self, event: &Event<'_>) {
        self.agrees = self.agrees && self.is_next(event);
    }

    fn is_next(&mut self, event: &Event<'_>) -> bool {
        let Some((kind, piece)) = content(event) else {
            let is_same = match self.parts.get(self.next) {
                Some(Part::Event(expected)) => expected == event,
                _ => false,
            };
            self.next += 1;
            return is_same && self.text == 0;
        };
        let Some(Part::Content {
            kind: expected,
            text,
            span,
        }) = self.parts.get(self.next)
        else {
            return false;
        };
        let start = if self.text == 0 {
            span.start
        } else {
            self.place
        };
        let rest = text.get(self.text..).unwrap_or_default();
        if kind != *expected || event.span.start != start || !rest.starts_with(piece) {
            return false;
        }
        self.text += piece.len();
        self.place = event.span.end;
        if self.text < text.len() {
            return true;
        }
        self.text = 0;
        self.next += 1;
        self.place == span.end
    }

    /// Whether all that has come is all that there is.
    fn is_through(&self) -> bool {
        self.agrees && self.next == self.parts.len() && self.text == 0
    }
}

/// Takes exactly these bytes.
struct Same<'w>(&'w [u8]);

impl Write for Same<'_> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 = self
            .0
            .strip_prefix(bytes)
            .ok_or(io::ErrorKind::InvalidData)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use plaincall_syntax::Dialect;

    use super::{Difference, Whole};
    use crate::text::reading::parser;

    /// What a parser of another dialect reads is told apart, and the place where it parts from the whole, however it is cut.
    fn check(text: &str, other: &Dialect, expected: Option<(usize, &str, &str)>) {
        let whole = Whole::read(text.as_bytes(), &Dialect::auto()).unwrap();
        let fresh = parser(other).unwrap();
        for size in [1, 3, text.len().max(1)] {
            let chunks = || text.as_bytes().chunks(size);
            assert!(whole.is_said_by(chunks()), "{text:?}");
            let is_same = whole.is_read_by(&fresh, chunks());
            assert_eq!(is_same, expected.is_none(), "{text:?}");
            let Some((place, whole_says, cut_says)) = expected else {
                continue;
            };
            let (parts, document) = whole.parts_of(&fresh, chunks()).unwrap();
            let found = whole.difference_to(&parts, &document);
            let expected = Difference {
                place,
                whole: whole_says.to_owned(),
                cut: cut_says.to_owned(),
            };
            assert_eq!(found, expected, "{text:?}");
        }
    }

    #[test]
    fn another_reading_is_told_apart() {
        let call = "See.\n!!!GADGET_START:A\n!!!ARG:x\n\u{e9}1\n!!!GADGET_END\nDone.";
        check(call, &Dialect::auto(), None);
        check(call, &Dialect::block(), None);
        check("", &Dialect::emoji(), None);
        check(
            "a !!!ARG: \u{1f6e0}[b]",
            &Dialect::emoji(),
            Some((
                9,
                r#"{"type":"text","span":[0,9],"text":"a !!!ARG:"}"#,
                r#"{"type":"text","span":[0,10],"text":"a !!!ARG: "}"#,
            )),
        );
        // The text of a value.
        check(
            call,
            &Dialect::block().end("Done."),
            Some((
                35,
                r#"{"type":"value_delta","span":[32,35],"text":"é1"}"#,
                r#"{"type":"value_delta","span":[32,49],"text":"é1\n!!!GADGET_END"}"#,
            )),
        );
        // An event in the place of another.
        check(
            "!!!GADGET_START:A\n!!!GADGET_END",
            &Dialect::block().start("!!!GADGET_"),
            Some((
                0,
                r#"{"type":"call_start","span":[0,18],"syntax":"block","name":"A","id":null,"dependencies":[],"source":"!!!GADGET_START:A\n"}"#,
                r#"{"type":"call_start","span":[0,18],"syntax":"block","name":"START","id":"A","dependencies":[],"source":"!!!GADGET_START:A\n"}"#,
            )),
        );
        // One that is missing at the end.
        check(
            "\u{1f6e0}[a]b",
            &Dialect::block(),
            Some((
                0,
                r#"{"type":"call_start","span":[0,7],"syntax":"emoji","name":"a","raw_args":"","source":"🛠[a]"}"#,
                r#"{"type":"text","span":[0,8],"text":"🛠[a]b"}"#,
            )),
        );
    }

    /// The events may agree, and what is made of them not.
    #[test]
    fn another_document_is_told_apart() {
        let whole = Whole::read(b"ab", &Dialect::auto()).unwrap();
        let other = Whole::read(b"ac", &Dialect::auto()).unwrap();
        let found = whole.difference_to(&whole.parts, &other.document);
        assert_eq!(found.place, 0);
        assert_eq!(found.whole, r#"{"type":"text","span":[0,2],"text":"ab"}"#);
        assert_eq!(found.cut, r#"{"type":"text","span":[0,2],"text":"ac"}"#);
    }
}
