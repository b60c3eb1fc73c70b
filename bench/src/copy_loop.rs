//! The baseline of all speeds: a loop that searches for one byte and copies.

use std::hint::black_box;

/// The copy is cleared after this many bytes, so that it stays in the processor's cache.
const FULL: usize = 64 * 1024;

/// For each chunk: searches for `byte` with `memchr`, and appends the chunk to a string.
///
/// `memchr` stops at the first `byte` of a chunk; the rest of that chunk is copied but not searched. So the loop is
/// faster, and harder to match, than a loop that finds every occurrence.
pub(crate) fn read(chunks: &[&str], byte: u8) {
    let mut copy = String::with_capacity(2 * FULL);
    let mut hits = 0_usize;
    for chunk in chunks {
        hits += usize::from(memchr::memchr(byte, chunk.as_bytes()).is_some());
        copy.push_str(chunk);
        if copy.len() >= FULL {
            black_box(&copy);
            copy.clear();
        }
    }
    black_box((&copy, hits));
}
