//! The text of a reply before it is sent.

use std::sync::Arc;

use plaincall_reply::invented::InventedResults;
use plaincall_syntax::MARKER_LIMIT;

use crate::compiled::CompiledDialect;

/// The maximum length of held whitespace, in bytes.
const MAX_BLANK: usize = 1024;

/// Collects the text of a reply until it is sent. Removes white space around calls and stray markers; where the texts around
/// something removed could form a marker, a backslash is inserted.
#[derive(Debug)]
pub(super) struct Text {
    compiled: Arc<CompiledDialect>,
    /// Text that has not been sent yet.
    fresh: String,
    /// Removes results that the model invents.
    invented: InventedResults,
    blank: String,
    is_at_edge: bool,
    /// The end of the text that has been sent.
    tail: String,
    has_gap: bool,
}

impl Text {
    pub(super) fn new(compiled: Arc<CompiledDialect>) -> Self {
        Self {
            compiled,
            fresh: String::new(),
            invented: InventedResults::default(),
            blank: String::new(),
            is_at_edge: true,
            tail: String::new(),
            has_gap: false,
        }
    }

    pub(super) fn add(&mut self, text: &str) {
        if text.is_empty() {
            return;
        }
        if self.has_gap {
            if self.may_join(text) {
                self.fresh.push('\\');
            }
            self.has_gap = false;
        }
        self.fresh.push_str(text);
    }

    /// Returns whether this text and the text before it could form a marker.
    fn may_join(&self, text: &str) -> bool {
        // No marker is longer than this limit.
        let mut before = String::new();
        for piece in [
            &self.fresh,
            self.invented.waiting(),
            &self.blank,
            &self.tail,
        ] {
            let from = piece.len() + before.len();
            let from = from.saturating_sub(MARKER_LIMIT).min(piece.len());
            before.insert_str(
                0,
                piece
                    .get(piece.floor_char_boundary(from)..)
                    .unwrap_or_default(),
            );
        }
        self.compiled.escaper.may_join(&before, text)
    }

    /// Removes the last bytes, which are a marker, and returns them.
    pub(super) fn strike(&mut self, len: usize) -> String {
        let left = self.fresh.len().saturating_sub(len);
        let struck = self.fresh.split_off(self.fresh.floor_char_boundary(left));
        self.has_gap = true;
        struck
    }

    /// Returns whether there is only white space before the last bytes, from the beginning or a call.
    pub(super) fn is_blank_before(&self, len: usize) -> bool {
        let left = self.fresh.len().saturating_sub(len);
        let before = self.fresh.get(..left).unwrap_or_default();
        self.is_at_edge && before.trim().is_empty()
    }

    pub(super) fn take(&mut self) -> Option<String> {
        let fresh = std::mem::take(&mut self.fresh);
        let fresh = self.invented.text(&fresh).into_owned();
        self.pass(fresh)
    }

    /// Takes the text that can be sent before a call or the end of the reply.
    pub(super) fn take_rest(&mut self) -> Option<String> {
        let fresh = std::mem::take(&mut self.fresh);
        let mut fresh = self.invented.text(&fresh).into_owned();
        fresh.push_str(&self.invented.rest());
        self.pass(fresh)
    }

    pub(super) fn call(&mut self, tool: &str) {
        self.invented.call(tool);
        self.edge();
    }

    pub(super) fn invented(&self) -> u64 {
        self.invented.count()
    }

    fn pass(&mut self, fresh: String) -> Option<String> {
        if self.is_at_edge {
            self.blank.push_str(&fresh);
            if self.blank.len() <= MAX_BLANK && self.blank.trim().is_empty() {
                return None;
            }
            return self.take_blank();
        }
        self.left(fresh)
    }

    pub(super) fn take_blank(&mut self) -> Option<String> {
        self.is_at_edge = false;
        let blank = std::mem::take(&mut self.blank);
        self.left(blank)
    }

    /// Drops held whitespace, because a call begins or ends here.
    pub(super) fn edge(&mut self) {
        self.blank.clear();
        self.is_at_edge = true;
        self.has_gap = true;
    }

    /// Marks a gap: something was removed between the previous and the next text.
    pub(super) fn gap(&mut self) {
        self.has_gap = true;
    }

    fn left(&mut self, text: String) -> Option<String> {
        if text.is_empty() {
            return None;
        }
        self.tail.push_str(&text);
        let keep = self.tail.len().saturating_sub(MARKER_LIMIT);
        self.tail.drain(..self.tail.ceil_char_boundary(keep));
        Some(text)
    }
}
