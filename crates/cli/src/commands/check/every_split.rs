//! `check --every-split`: checks that the result does not depend on chunk boundaries.

use std::mem;

use plaincall_call::{Limits, document::DocumentBuilder};
use plaincall_syntax::{ByteParser, Dialect};

use crate::status::Failure;

/// The largest chunk size tried, in bytes. Every smaller size is tried too.
const MAX_CHUNK: usize = 64;
/// The maximum length of a text for which every pair of splits is tried, in bytes.
const MAX_PAIRED: usize = 512;
/// The maximum number of bytes parsed for single splits. If the square of the length is larger, splits are sampled.
const MAX_PARSED: usize = 1 << 28;

/// Parses the text with many splits. Returns how many were tried, or the first that changes the document.
pub(super) fn try_splits(
    bytes: &[u8],
    dialect: &Dialect,
) -> Result<Result<usize, String>, Failure> {
    let length = bytes.len();
    let whole = document(bytes, &[], dialect)?;
    let step = length.saturating_mul(length).div_ceil(MAX_PARSED).max(1);
    let pairs = if length <= MAX_PAIRED {
        1..length
    } else {
        0..0
    };
    let sizes = (1..length.min(MAX_CHUNK + 1)).map(|size| (size..length).step_by(size).collect());
    let once = (1..length).step_by(step).map(|at| vec![at]);
    let twice = pairs.flat_map(|first| (first + 1..length).map(move |next| vec![first, next]));
    let mut count = 0;
    for splits in sizes.chain(once).chain(twice) {
        let split = document(bytes, &splits, dialect)?;
        if split != whole {
            return Ok(Err(format!(
                "split at the bytes {splits:?}, the result is {split} instead of {whole}"
            )));
        }
        count += 1;
    }
    Ok(Ok(count))
}

/// Parses a text that arrives in chunks and returns its document as JSON.
fn document(bytes: &[u8], splits: &[usize], dialect: &Dialect) -> Result<String, Failure> {
    let mut parser = ByteParser::new(dialect)?;
    let mut builder = DocumentBuilder::new(dialect, Limits::for_reading());
    let mut from = 0;
    for &to in splits.iter().chain([&bytes.len()]) {
        let chunk = bytes.get(mem::replace(&mut from, to)..to);
        let events = parser.feed(chunk.unwrap_or_default());
        events.for_each(|event| builder.push(&event));
    }
    parser.finish().for_each(|event| builder.push(&event));
    serde_json::to_string(&builder.finish()).map_err(|error| Failure::output(&error.into()))
}
