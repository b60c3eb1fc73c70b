//! Nothing counts in an untrusted part of a prompt text, for all surrounding text (`spec/untrusted.md` 3).
#![no_main]

use libfuzzer_sys::fuzz_target;
use plaincall_fuzz::Case;
use plaincall_testkit::untrusted::{breach, build};

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::new(data) else {
        return;
    };
    let prompt_text = build(&case.dialects, &case.texts);
    for dialect in &case.dialects {
        assert_eq!(breach(&prompt_text, dialect), None);
    }
});
