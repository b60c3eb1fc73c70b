//! Whether the result depends on chunk boundaries.

use std::mem;

use plaincall_call::{Limits, document::DocumentBuilder};
use plaincall_syntax::{ByteParser, Dialect, DialectError};

/// The largest chunk size tried, in bytes. Every smaller size is tried too.
const MAX_CHUNK: usize = 64;
/// The maximum length of a text for which every pair of splits is tried, in bytes.
const MAX_PAIRED: usize = 512;
/// The maximum number of bytes parsed for single splits. If the square of the length is larger, splits are sampled.
const MAX_PARSED: usize = 1 << 28;

/// Returns the splits to try for a text of this many bytes: chunks of every size up to 64 bytes, a split at every byte, and for
/// short texts at every pair of bytes. Each is a list of positions. For long texts, they are evenly spaced samples.
pub fn splits(length: usize) -> impl Iterator<Item = Vec<usize>> {
    let step = length.saturating_mul(length).div_ceil(MAX_PARSED).max(1);
    let pairs = if length <= MAX_PAIRED {
        1..length
    } else {
        0..0
    };
    let sizes =
        (1..length.min(MAX_CHUNK + 1)).map(move |size| (size..length).step_by(size).collect());
    let once = (1..length).step_by(step).map(|at| vec![at]);
    let twice = pairs.flat_map(move |first| (first + 1..length).map(move |next| vec![first, next]));
    sizes.chain(once).chain(twice)
}

/// A text and its result without a split.
pub struct SplitCheck<'t> {
    bytes: &'t [u8],
    dialect: &'t Dialect,
    whole: String,
}

impl<'t> SplitCheck<'t> {
    /// Parses the text.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn new(bytes: &'t [u8], dialect: &'t Dialect) -> Result<Self, DialectError> {
        Ok(Self {
            bytes,
            dialect,
            whole: document(bytes, &[], dialect)?,
        })
    }

    /// Parses the text with this split. If the result differs, returns a sentence about the difference.
    ///
    /// # Errors
    /// Returns an error for an invalid dialect.
    pub fn difference(&self, splits: &[usize]) -> Result<Option<String>, DialectError> {
        let split = document(self.bytes, splits, self.dialect)?;
        let whole = &self.whole;
        Ok((split != *whole).then(|| {
            format!("split at the bytes {splits:?}, the result is {split} instead of {whole}")
        }))
    }
}

/// Parses a text that arrives in chunks and returns its document as JSON.
fn document(bytes: &[u8], splits: &[usize], dialect: &Dialect) -> Result<String, DialectError> {
    let mut parser = ByteParser::new(dialect)?;
    let mut builder = DocumentBuilder::new(dialect, Limits::for_reading());
    let mut from = 0;
    for &to in splits.iter().chain([&bytes.len()]) {
        let chunk = bytes.get(mem::replace(&mut from, to)..to);
        let events = parser.feed(chunk.unwrap_or_default());
        events.for_each(|event| builder.push(&event));
    }
    parser.finish().for_each(|event| builder.push(&event));
    // All keys of a document are strings.
    Ok(serde_json::to_string(&builder.finish()).unwrap_or_default())
}
