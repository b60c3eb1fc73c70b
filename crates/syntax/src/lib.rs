//! The two text syntaxes for tool calls: a streaming parser, a renderer and escaping.
//!
//! A model without native tool calls writes calls as text, in the block syntax or in the emoji-bracket syntax. This
//! crate converts such text to events while it arrives, and calls back to text. It does no I/O, keeps no ids and
//! runs nothing. `plaincall-reply` assembles calls from events, and `plaincall` runs them.
//!
//! - [`Parser`] converts text to events; [`parse`] does so for a complete text, [`ByteParser`] for bytes.
//! - [`Dialect`] selects the syntax, its markers and options.
//! - [`Diagnostic`] reports a problem, with a stable [`Code`] and a [`Span`].
//!
//! The rules are in the project's `spec/` folder.

#![cfg_attr(
    not(test),
    deny(
        clippy::indexing_slicing,
        clippy::unwrap_used,
        clippy::expect_used,
        clippy::panic
    )
)]

mod block;
mod bytes;
mod diagnostic;
mod dialect;
mod emoji;
mod escape;
mod event;
mod fast;
mod fence;
mod invisible;
mod machine;
mod markers;
mod near;
mod near_forms;
mod open_content;
mod parser;
mod piece;
mod render;
mod scan;
mod section;
mod simple_line;
mod span;

pub use bytes::{ByteEvents, ByteParser};
pub use diagnostic::{Code, Diagnostic, Severity};
pub use dialect::{Dialect, DialectError, MARKER_LIMIT, MarkerForm, MarkerUse};
pub use escape::Escaper;
pub use event::{Ending, Event, EventKind, Header, Pointer, Slot, Syntax, Termination};
pub use invisible::is_invisible;
pub use near::{NearMiss, NearMisses, near_misses};
pub use near_forms::CallFormat;
#[doc(hidden)]
pub use near_forms::{Begins, CALL_ARGUMENT_KEYS, CALL_NAME_KEYS, CALL_TAGS, begins_python};
pub use parser::{Events, Parser, parse};
pub use piece::Piece;
pub use render::{Call, RenderError, render};
pub use section::Section;
pub use span::Span;
#[doc(hidden)]
pub use {fence::closes_nothing, open_content::OpenContent};

/// The maximum length of a header or pointer line, in bytes between its marker and its end (`spec/block.md` 2.4 and 4.3,
/// `spec/emoji.md` 2.3).
pub const LINE_LIMIT: usize = 4096;

/// Returns whether `c` is a blank: a space or a tab. Trimming removes only blanks.
#[doc(hidden)]
pub const fn is_blank(c: char) -> bool {
    matches!(c, ' ' | '\t')
}

/// Returns the last character boundary at or before `at`, as [`str`] does since Rust 1.91.
#[doc(hidden)]
#[inline]
pub fn floor_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at -= 1;
    }
    at
}

/// Returns the first character boundary at or after `at`.
#[doc(hidden)]
#[inline]
pub fn ceil_char_boundary(text: &str, at: usize) -> usize {
    let mut at = at.min(text.len());
    while !text.is_char_boundary(at) {
        at += 1;
    }
    at
}
