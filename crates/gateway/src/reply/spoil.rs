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

#[cfg(test)]
mod tests {
    use super::Spoiler;

    /// The brackets of a text, read as a client does that closes what is open.
    fn has_mismatch(text: &str) -> bool {
        let (mut open, mut is_in_string, mut is_escaped) = (Vec::new(), false, false);
        for c in text.chars() {
            if is_in_string {
                is_in_string = c != '"' || is_escaped;
                is_escaped = c == '\\' && !is_escaped;
                continue;
            }
            match c {
                '"' => is_in_string = true,
                '{' => open.push('}'),
                '[' => open.push(']'),
                '}' | ']' if open.pop() != Some(c) => return true,
                _ => {}
            }
        }
        false
    }

    #[test]
    fn no_beginning_can_be_closed() {
        let whole = r#"{"a":"x\"}","b":[1,[{"c":"[\\"}],"d"],"e":{"f":null}}"#;
        for cut in 0..whole.len() {
            // A piece never ends inside an escape.
            if whole[..cut].ends_with('\\') && !whole[..cut].ends_with("\\\\") {
                continue;
            }
            for middle in 0..=cut {
                let mut spoiler = Spoiler::default();
                spoiler.follow(&whole[..middle]);
                spoiler.follow(&whole[middle..cut]);
                let text = format!("{}{}", &whole[..cut], spoiler.end());
                assert!(has_mismatch(&text), "{text}");
                assert!(serde_json::from_str::<serde_json::Value>(&text).is_err());
            }
        }
    }
}
