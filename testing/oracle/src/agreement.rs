//! Compares a parser's events with the expected ones, one by one, without storing them.
//!
//! [`merge`](crate::merged::merge) returns the merged events; this returns only whether they are equal, which takes a
//! fraction of the time. Millions of texts are read this way, and the few that fail once more with `merge`.

use plaincall_syntax::{ByteParser, Event, EventKind, Parser, Slot};

use crate::merged::{Kind, Merged};

/// The progress of a comparison.
#[derive(Clone, Debug)]
pub struct Agreement<'e> {
    expected: &'e [Merged],
    /// The text that was read; `None` where invalid bytes were replaced, so that no source can be compared.
    source: Option<&'e str>,
    /// How many of the expected events are behind us. A run of content stays before us until another event comes.
    index: usize,
    /// How much text of the current run has matched.
    matched: usize,
    /// Where the next event begins.
    place: usize,
}

impl<'e> Agreement<'e> {
    /// Nothing has been matched yet of this text, of which these events are expected.
    pub fn new(expected: &'e [Merged], text: &'e str) -> Self {
        Self {
            source: Some(text),
            ..Self::of_bytes(expected)
        }
    }

    /// The same for bytes that are not all UTF-8.
    pub fn of_bytes(expected: &'e [Merged]) -> Self {
        Self {
            expected,
            source: None,
            index: 0,
            matched: 0,
            place: 0,
        }
    }

    /// The same after these merged events, if they were expected. The last may be the beginning of a run.
    pub fn after(expected: &'e [Merged], text: &'e str, begun: &[Merged]) -> Option<Self> {
        let mut agreement = Self::new(expected, text);
        let Some((last, whole)) = begun.split_last() else {
            return Some(agreement);
        };
        let found = expected.get(whole.len())?;
        if expected.get(..whole.len())? != whole {
            return None;
        }
        agreement.index = whole.len();
        if let Some((matched, run)) = last.content().zip(found.content()) {
            let is_begun = last.kind.is_alike(&found.kind) && run.starts_with(matched);
            if !is_begun || last.span.start != found.span.start {
                return None;
            }
            agreement.matched = matched.len();
        } else if last == found {
            agreement.index += 1;
        } else {
            return None;
        }
        let ends = begun.iter().rev();
        let last_wide = ends
            .clone()
            .find(|event| !matches!(event.kind, Kind::Diagnostic(_)));
        agreement.place = last_wide.map_or(0, |event| event.span.end);
        Some(agreement)
    }

    /// Whether this event is what comes next. Its span is to begin where the last one ended, and its source to be
    /// the input there.
    pub fn takes(&mut self, event: &Event<'_>) -> bool {
        let span = event.span.range();
        if let EventKind::Diagnostic(diagnostic) = &event.kind {
            if span.end != self.place || diagnostic.span != event.span {
                return false;
            }
        } else {
            let source = self.source.map(|text| text.get(span.clone()));
            if span.start != self.place || source.is_some_and(|text| text != Some(event.source())) {
                return false;
            }
            self.place = span.end;
        }
        let Some(mut expected) = self.expected.get(self.index) else {
            return false;
        };
        if self.matched > 0
            && expected
                .content()
                .is_some_and(|run| run.len() == self.matched)
        {
            self.matched = 0;
            self.index += 1;
            match self.expected.get(self.index) {
                Some(next) => expected = next,
                None => return false,
            }
        }
        let run = match (&event.kind, &expected.kind) {
            (EventKind::Text(piece), Kind::Text(run))
            | (EventKind::Reasoning(piece), Kind::Reasoning(run))
            | (EventKind::ValueDelta(piece), Kind::Value(run))
            | (EventKind::Ignored(piece), Kind::Ignored(run)) => Some((piece.as_str(), run)),
            _ => None,
        };
        let Some((piece, run)) = run else {
            self.index += 1;
            return self.matched == 0
                && expected.span == span
                && is_same(&event.kind, &expected.kind);
        };
        let begins = self.matched > 0 || span.start == expected.span.start;
        let continues = run.as_bytes()[self.matched..].starts_with(piece.as_bytes());
        self.matched += piece.len();
        let ends = self.matched < run.len() || span.end == expected.span.end;
        // A piece of content is never empty.
        !piece.is_empty() && begins && continues && ends
    }

    /// Whether all that was expected has been matched.
    pub fn is_complete(&self) -> bool {
        let left = self.expected.get(self.index..).unwrap_or_default();
        match left {
            [] => true,
            [last] => {
                self.matched > 0 && last.content().is_some_and(|run| run.len() == self.matched)
            }
            _ => false,
        }
    }
}

/// Returns whether an event without content is of this kind.
fn is_same(event: &EventKind<'_>, expected: &Kind) -> bool {
    match (event, expected) {
        (
            EventKind::CallStart(header),
            Kind::BlockCall {
                name,
                id,
                dependencies,
            },
        ) => {
            header.raw_args().is_none()
                && header.name() == name
                && header.id() == id.as_deref()
                && header.dependencies().eq(dependencies)
        }
        (EventKind::CallStart(header), Kind::EmojiCall { name, raw_args }) => {
            header.raw_args() == Some(raw_args) && header.name() == name
        }
        (EventKind::ValueStart(Slot::Argument(pointer)), Kind::Argument(expected)) => {
            pointer.as_str() == expected
        }
        (EventKind::ValueStart(Slot::Body), Kind::Body) | (EventKind::ValueEnd, Kind::ValueEnd) => {
            true
        }
        (EventKind::CallEnd(ending), Kind::CallEnd(name)) => ending.termination().name() == *name,
        (EventKind::Diagnostic(diagnostic), Kind::Diagnostic(code)) => {
            diagnostic.code.name() == *code
        }
        _ => false,
    }
}

/// Returns whether the parser's events for these chunks, and at their end, are the remaining expected ones. The events of a chunk are taken
/// all at once, as `for_each` does it.
pub fn agrees<'t>(
    mut agreement: Agreement<'_>,
    mut parser: Parser,
    chunks: impl IntoIterator<Item = &'t str>,
) -> bool {
    for chunk in chunks {
        let mut agrees = true;
        parser
            .feed(chunk)
            .for_each(|event| agrees = agrees && agreement.takes(&event));
        if !agrees {
            return false;
        }
    }
    parser.finish().all(|event| agreement.takes(&event)) && agreement.is_complete()
}

/// The same through the byte entry, where the events are taken one by one.
pub fn bytes_agree<'t>(
    mut agreement: Agreement<'_>,
    mut parser: ByteParser,
    chunks: impl IntoIterator<Item = &'t [u8]>,
) -> bool {
    for chunk in chunks {
        if !parser.feed(chunk).all(|event| agreement.takes(&event)) {
            return false;
        }
    }
    parser.finish().all(|event| agreement.takes(&event)) && agreement.is_complete()
}
