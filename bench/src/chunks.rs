//! A text in chunks, as a model server sends it.

/// The chunk sizes of the table, in bytes; `None` is the whole text.
pub(crate) const SIZES: [Option<usize>; 4] = [None, Some(4096), Some(64), Some(4)];

/// Splits `text` into chunks of at most `size` bytes, at character boundaries. A chunk has at least one character.
pub(crate) fn cut(text: &str, size: Option<usize>) -> Vec<&str> {
    let Some(size) = size else {
        return vec![text];
    };
    let mut chunks = Vec::with_capacity(text.len() / size.max(1) + 1);
    let mut rest = text;
    while let Some(first) = rest.chars().next() {
        let (chunk, behind) = rest.split_at(rest.floor_char_boundary(size).max(first.len_utf8()));
        chunks.push(chunk);
        rest = behind;
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::cut;

    fn check(text: &str, size: Option<usize>, expected: &[&str]) {
        assert_eq!(cut(text, size), expected, "{text:?} in chunks of {size:?}");
    }

    #[test]
    fn chunks_end_at_characters() {
        check("abcdefg", None, &["abcdefg"]);
        check("abcdefg", Some(4), &["abcd", "efg"]);
        check("abé🛠️[", Some(4), &["abé", "🛠", "\u{FE0F}["]);
        check("é🛠", Some(1), &["é", "🛠"]);
        check("", Some(4), &[]);
    }
}
