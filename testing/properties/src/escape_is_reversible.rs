use crate::case::Case;
use plaincall_syntax::Escaper;
use plaincall_testkit::untrusted::{markers_in, naive_escape};

/// `unescape` undoes `escape`, and the escape is the one of `spec/common.md` 6.2
/// (`spec/untrusted.md` 2).
pub fn escape_is_reversible(data: &[u8]) {
    let Some(case) = Case::new(data) else {
        return;
    };
    let escape = Escaper::for_all(&case.dialects).expect("dialects that work");
    for text in case.texts.iter().map(|text| text.text.as_str()) {
        let escaped = escape.escape(text);
        assert_eq!(escape.unescape(&escaped), text);
        // The naive one is slow.
        if text.len() < 500 {
            assert_eq!(escaped, naive_escape(text, &case.dialects));
        }
        for dialect in &case.dialects {
            assert!(markers_in(&escaped, dialect).is_empty());
        }
    }
}
