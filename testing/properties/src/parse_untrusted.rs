use crate::case::Case;
use plaincall_testkit::untrusted::{breach, build};

/// Nothing counts in an untrusted part of a prompt text, for all surrounding text (`spec/untrusted.md` 3).
pub fn parse_untrusted(data: &[u8]) {
    let Some(case) = Case::new(data) else {
        return;
    };
    let prompt_text = build(&case.dialects, &case.texts);
    for dialect in &case.dialects {
        assert_eq!(breach(&prompt_text, dialect), None);
    }
}
