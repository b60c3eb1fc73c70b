//! A JSON text that nobody can take for whole.

/// Follows a JSON text that is written piece by piece, so that it can be made unreadable at its end.
///
/// A text that is not closed is no JSON. But some clients close what is open, to show it early, and then take it for the
/// arguments of the call. A bracket that closes what is not open stops these too.
#[derive(Clone, Debug, Default)]
pub(super) struct Spoiler {
    /// What is open, `{` or `[`, from the outside in.
    open: Vec<u8>,
    is_in_string: bool,
    is_escaped: bool,
}

impl Spoiler {
    pub(super) fn follow(&mut self, piece: &str) {
        for byte in piece.bytes() {
            match (self.is_in_string, byte) {
                (true, _) if self.is_escaped => self.is_escaped = false,
                (true, b'\\') => self.is_escaped = true,
                (true, b'"') => self.is_in_string = false,
                (false, b'"') => self.is_in_string = true,
                (false, b'{' | b'[') => self.open.push(byte),
                (false, b'}' | b']') => {
                    self.open.pop();
                }
                _ => {}
            }
        }
    }

    pub(super) fn end(&self) -> &'static str {
        match (self.open.last(), self.is_in_string) {
            (None, _) => "{]",
            (Some(b'['), true) => "\"}",
            (Some(_), true) => "\"]",
            (Some(b'['), false) => "}",
            (Some(_), false) => "]",
        }
    }
}
