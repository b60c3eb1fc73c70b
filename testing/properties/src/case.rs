//! Dialects and texts of a prompt text, made of the fuzzer's bytes.

use plaincall_reply::untrusted::Origin;
use plaincall_syntax::Dialect;
use plaincall_testkit::untrusted::{FORMS, Text, dialect};

/// The input of a target.
pub(crate) struct Case {
    /// One to three dialects.
    pub(crate) dialects: Vec<Dialect>,
    /// The texts of a prompt text.
    pub(crate) texts: Vec<Text>,
    /// Sizes of chunks, in characters.
    pub(crate) sizes: Vec<usize>,
}

impl Case {
    /// Reads six bytes as choices, and the rest as texts, separated by NUL.
    pub(crate) fn new(data: &[u8]) -> Option<Self> {
        let (choice, text) = data.split_first_chunk::<6>()?;
        let [first, second, third, origins, one, two] = choice.map(usize::from);
        let form = |byte: usize| FORMS.get(byte % FORMS.len()).copied().map(dialect);
        let wanted = [Some(first), second.checked_sub(128), third.checked_sub(128)];
        let texts = String::from_utf8_lossy(text);
        let texts = texts.split('\0').enumerate().map(|(index, text)| Text {
            // Untrusted at least every second time.
            origin: match (index % 2 == 0, origins >> (index % 8) & 1) {
                (true, _) => Origin::Untrusted,
                (false, 0) => Origin::Trusted,
                (false, _) => Origin::Model,
            },
            text: text.to_owned(),
        });
        Some(Self {
            dialects: wanted.into_iter().flatten().filter_map(form).collect(),
            texts: texts.collect(),
            sizes: vec![one % 7 + 1, two % 5 + 1],
        })
    }
}
