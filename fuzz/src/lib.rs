//! How the bytes of the fuzzer become dialects, texts, requests and replies.

mod drawn;
#[path = "../../crates/gateway/tests/replies/model.rs"]
#[allow(dead_code, reason = "tests use all of it")]
mod model;
mod reply;
mod request;
mod settings;

pub use drawn::{Drawn, cut_bytes};
pub use reply::check_reply;
pub use request::check_request;

use plaincall_call::untrusted::Origin;
use plaincall_syntax::Dialect;
use plaincall_testkit::untrusted::{FORMS, Text, dialect};

/// What the targets are about: made of the fuzzer's bytes.
pub struct Case {
    /// One to three dialects.
    pub dialects: Vec<Dialect>,
    /// The texts of a prompt text.
    pub texts: Vec<Text>,
    /// Sizes of chunks, in characters.
    pub sizes: Vec<usize>,
}

impl Case {
    /// Six bytes choose; the rest is text, cut at each NUL.
    pub fn new(data: &[u8]) -> Option<Self> {
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
