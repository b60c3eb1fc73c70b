//! Compares the parser with other parsers of streamed tool calls; see `README.md`.

pub mod formats;
pub mod kept;
pub mod logical;
pub mod measure;
pub mod readers;
pub mod table;

// The payloads, the chunks and the clock are those of the parser's own table.
#[path = "../../src/chunks.rs"]
mod chunks;
#[path = "../../src/clock.rs"]
mod clock;
#[expect(dead_code, reason = "only some of its payloads are read here")]
#[path = "../../src/payload.rs"]
mod payload;
#[path = "../../src/prose.rs"]
mod prose;

/// The chunk sizes, in bytes; `None` is the whole text.
pub const SIZES: [Option<usize>; 4] = chunks::SIZES;

/// Splits `text` into chunks of at most `size` bytes, at character boundaries.
pub fn cut(text: &str, size: Option<usize>) -> Vec<&str> {
    chunks::cut(text, size)
}
