//! Values of growing length, with every kind of markers: shows whether the speed depends on the length.

use std::hint::black_box;

use plaincall_syntax::{Dialect, DialectError, EventKind, MarkerUse, Parser, Syntax};

use crate::chunks::cut;
use crate::prose::Writer;

/// The lengths of the values, in bytes: from a line to a file. The last one is shorter in a quick run.
pub(crate) const LENGTHS: [usize; 5] = [200, 4 << 10, 64 << 10, 1 << 20, 64 << 20];
pub(crate) const QUICK_LENGTHS: [usize; 5] = [200, 4 << 10, 64 << 10, 1 << 20, 8 << 20];

/// The chunk sizes, in bytes.
pub(crate) const SIZES: [Option<usize>; 2] = [Some(64), Some(4)];

/// The part of a value that is stored; a longer value repeats it.
const PAGE: usize = 64 << 10;

/// The minimum number of bytes that are read at a time: short values are in several calls.
const TEXT: usize = 64 << 10;

/// The dialects, with their names in the table.
pub(crate) fn dialects() -> [(&'static str, Dialect, Syntax); 7] {
    let custom = Dialect::block()
        .start("<<<START:")
        .end("<<<END:")
        .arg("@param:");
    let key = "k3v9q2x8";
    [
        ("block", Dialect::block(), Syntax::Block),
        ("block, custom", custom, Syntax::Block),
        ("block, keyed", Dialect::block().keyed(key), Syntax::Block),
        ("block, escaped", Dialect::block().escaped(), Syntax::Block),
        ("emoji", Dialect::emoji(), Syntax::Emoji),
        ("emoji, keyed", Dialect::emoji().keyed(key), Syntax::Emoji),
        ("emoji, escaped", Dialect::emoji().escaped(), Syntax::Emoji),
    ]
}

/// Calls with one value each, all of the same length.
#[derive(Debug)]
pub(crate) struct Values {
    parser: Parser,
    opening: String,
    /// The value, or the part of it that is repeated.
    page: String,
    repeats: usize,
    closing: String,
    calls: usize,
}

impl Values {
    /// # Errors
    /// Returns an error if the dialect is invalid.
    pub(crate) fn new(
        dialect: &Dialect,
        syntax: Syntax,
        length: usize,
    ) -> Result<Self, DialectError> {
        let parser = Parser::new(dialect)?;
        let forms = dialect.markers()?;
        let marker = |usage: MarkerUse| {
            let form = forms.iter().find(|form| form.usage == usage);
            form.map(|form| form.text.clone()).unwrap_or_default()
        };
        let start = marker(MarkerUse::Start(syntax));
        let end = marker(MarkerUse::End(syntax));
        let (opening, closing) = match syntax {
            Syntax::Block => (
                format!("{start}WriteFile\n{}content\n", marker(MarkerUse::Argument)),
                format!("\n{end}\n"),
            ),
            Syntax::Emoji => (format!("{start}create-file a.txt]\n"), format!("{end}\n")),
        };
        let mut page = String::new();
        Writer::plain(7).code(&mut page, length.min(PAGE));
        page.truncate(page.floor_char_boundary(length.min(PAGE)));
        Ok(Self {
            parser,
            opening,
            repeats: length.div_ceil(PAGE),
            page,
            closing,
            calls: TEXT.div_ceil(length),
        })
    }

    /// Returns the number of bytes.
    pub(crate) fn len(&self) -> usize {
        let markers = self.opening.len() + self.closing.len();
        self.calls * (markers + self.page.len() * self.repeats)
    }

    /// Returns the parts of a call, in chunks of `size`.
    pub(crate) fn chunks(&self, size: Option<usize>) -> [Vec<&str>; 3] {
        [&self.opening, &self.page, &self.closing].map(|text| cut(text, size))
    }

    /// Reads all calls. Returns whether the lengths of their values are correct.
    pub(crate) fn read(&self, [opening, page, closing]: &[Vec<&str>; 3]) -> bool {
        let mut parser = self.parser.clone();
        let (mut bytes, mut ends) = (0, 0);
        let mut feed = |chunks: &[&str]| {
            for chunk in chunks {
                parser.feed(chunk).for_each(|event| match &event.kind {
                    EventKind::ValueDelta(text) => bytes += black_box(&**text).len(),
                    EventKind::CallEnd(_) => ends += 1,
                    _ => {}
                });
            }
        };
        for _ in 0..self.calls {
            feed(opening);
            for _ in 0..self.repeats {
                feed(page);
            }
            feed(closing);
        }
        bytes == self.calls * self.repeats * self.page.len() && ends == self.calls
    }
}

#[cfg(test)]
mod tests {
    use super::{SIZES, Values, dialects};

    #[test]
    fn values_come_back() {
        for (name, dialect, syntax) in dialects() {
            for length in [200, 4 << 10, 200_000] {
                let values = Values::new(&dialect, syntax, length).expect(name);
                assert!(values.len() > 65_000);
                for size in SIZES {
                    assert!(values.read(&values.chunks(size)), "{name}, {length} bytes");
                }
            }
        }
    }
}
