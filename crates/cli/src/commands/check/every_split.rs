//! `check --every-split`: the text is read again in many ways of chunks, and each reading is held against that of the whole.

use std::fmt;

use plaincall_call::{DocumentBuilder, Limits, Span};
use plaincall_syntax::{Dialect, Event, EventKind};
use serde::Serialize;

use crate::status::Failure;
use crate::text::reading::parser;

/// Chunks of every size up to this are tried, in bytes.
const SIZES: usize = 64;
/// Up to this length every pair of places is tried, in bytes: there are half as many as its square.
const PAIRS: usize = 512;
/// How many bytes are read for the places of one split. Up to the root of it, every place is tried.
const SPLITS: usize = 1 << 28;

/// What came of it.
#[derive(Serialize)]
pub(super) struct Proof {
    pub(super) agrees: bool,
    /// How many ways to cut the text were read the same.
    pub(super) ways: usize,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(super) disagreement: Option<Disagreement>,
}

/// A way to cut the text that changes what it says.
#[derive(Debug, PartialEq, Serialize)]
pub(super) struct Disagreement {
    pub(super) way: String,
    /// The beginning of what is read differently, in bytes.
    pub(super) place: usize,
    pub(super) whole: String,
    pub(super) cut: String,
}

/// One way to cut a text.
enum Way {
    /// Into chunks of so many bytes.
    Chunks(usize),
    /// In front of these bytes, in order.
    At(Vec<usize>),
}

/// Reads the text in every way that is tried, up to the first that does not agree.
pub(super) fn prove(bytes: &[u8], dialect: &Dialect) -> Result<Proof, Failure> {
    let length = bytes.len();
    let whole = Reading::of([bytes], dialect)?;
    let step = length.saturating_mul(length).div_ceil(SPLITS).max(1);
    let pairs = if length <= PAIRS { 1..length } else { 0..0 };
    let sizes = (1..length.min(SIZES + 1)).map(Way::Chunks);
    let once = (1..length).step_by(step).map(|at| Way::At(vec![at]));
    let twice =
        pairs.flat_map(|first| (first + 1..length).map(move |next| Way::At(vec![first, next])));
    let mut ways = 0;
    let mut disagreement = None;
    for way in sizes.chain(once).chain(twice) {
        let cut = match &way {
            Way::Chunks(size) => Reading::of(bytes.chunks(*size), dialect)?,
            Way::At(places) => {
                let ends = places.iter().chain([&length]);
                let chunks = ends.scan(0, |from, &to| bytes.get(std::mem::replace(from, to)..to));
                Reading::of(chunks, dialect)?
            }
        };
        if cut != whole {
            disagreement = Some(whole.disagreement(&cut, &way));
            break;
        }
        ways += 1;
    }
    Ok(Proof {
        agrees: disagreement.is_none(),
        ways,
        disagreement,
    })
}

/// What a text says: its events, neighbouring pieces of one kind put together, and the document as `parse` prints it.
#[derive(PartialEq)]
struct Reading {
    parts: Vec<Part>,
    document: String,
}

#[derive(Debug, PartialEq)]
enum Part {
    Piece(&'static str, String, Span),
    Event(Event<'static>),
}

impl Reading {
    fn of<'b>(
        chunks: impl IntoIterator<Item = &'b [u8]>,
        dialect: &Dialect,
    ) -> Result<Self, Failure> {
        let mut parser = parser(dialect)?;
        let mut builder = DocumentBuilder::new(dialect, Limits::for_reading());
        let mut parts = Vec::new();
        let mut take = |event: Event<'_>| {
            builder.push(&event);
            add(&mut parts, event);
        };
        for chunk in chunks {
            parser.feed(chunk).for_each(&mut take);
        }
        parser.finish().for_each(&mut take);
        let document = serde_json::to_string(&builder.finish());
        let document = document.map_err(|error| Failure::output(&error.into()))?;
        Ok(Self { parts, document })
    }

    /// Where another reading parts from this one, and what each says there.
    fn disagreement(&self, cut: &Self, way: &Way) -> Disagreement {
        let same = self
            .parts
            .iter()
            .zip(&cut.parts)
            .take_while(|(a, b)| a == b);
        let same = same.count();
        let start = |part: &Part| match part {
            Part::Piece(_, _, span) => span.start,
            Part::Event(event) => event.span.start,
        };
        let said = |reading: &Self| match reading.parts.get(same) {
            Some(part) => format!("{part:?}"),
            // The events agree, so it is in what is made of them.
            None if self.parts.len() == cut.parts.len() => reading.document.clone(),
            None => "nothing".to_owned(),
        };
        Disagreement {
            way: way.to_string(),
            place: self
                .parts
                .get(same)
                .or(cut.parts.get(same))
                .map_or(0, start),
            whole: said(self),
            cut: said(cut),
        }
    }
}

fn add(parts: &mut Vec<Part>, event: Event<'_>) {
    let (kind, piece) = match &event.kind {
        EventKind::Text(piece) => ("text", piece),
        EventKind::Reasoning(piece) => ("reasoning", piece),
        EventKind::ValueDelta(piece) => ("value", piece),
        EventKind::Ignored(piece) => ("ignored", piece),
        _ => {
            parts.push(Part::Event(event.into_owned()));
            return;
        }
    };
    match parts.last_mut() {
        Some(Part::Piece(last, text, span)) if *last == kind && span.end == event.span.start => {
            text.push_str(piece);
            span.end = event.span.end;
        }
        _ => parts.push(Part::Piece(kind, piece.as_str().to_owned(), event.span)),
    }
}

impl fmt::Display for Way {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Chunks(size) => write!(formatter, "in chunks of {size} bytes"),
            Self::At(places) => {
                let places: Vec<String> = places.iter().map(ToString::to_string).collect();
                write!(formatter, "cut in front of byte {}", places.join(" and "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use plaincall_syntax::Dialect;

    use super::{Reading, Way, prove};

    #[test]
    fn another_reading_is_told_apart() {
        let read = |text: &str, dialect| Reading::of([text.as_bytes()], &dialect).unwrap();
        let whole = read("a !!!ARG: \u{1f6e0}[b]", Dialect::auto());
        let cut = read("a !!!ARG: \u{1f6e0}[b]", Dialect::emoji());
        assert!(whole != cut);
        let found = whole.disagreement(&cut, &Way::At(vec![1, 3]));
        assert_eq!(
            (found.place, &*found.way),
            (0, "cut in front of byte 1 and 3")
        );
        assert!(found.whole.contains("\"a !!!ARG:\"") && found.cut.contains("\"a !!!ARG: \""));
    }

    #[test]
    fn ways_are_bounded() {
        for (length, ways) in [(0, 0), (1, 0), (2, 2), (20, 19 + 19 + 171), (600, 64 + 599)] {
            let text: Vec<u8> = b"a !!!GADGET_\xff \\"
                .iter()
                .copied()
                .cycle()
                .take(length)
                .collect();
            let proof = prove(&text, &Dialect::auto()).unwrap();
            assert_eq!((proof.agrees, proof.ways), (true, ways), "{length}");
        }
    }
}
