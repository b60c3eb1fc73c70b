//! Nothing counts in a foreign part of a passage, whatever stands around it (`spec/foreign.md` 3).
#![no_main]

use libfuzzer_sys::fuzz_target;
use plaincall_fuzz::Case;
use plaincall_testkit::foreign::{breach, build};

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::new(data) else {
        return;
    };
    let passage = build(&case.dialects, &case.texts);
    for dialect in &case.dialects {
        assert_eq!(breach(&passage, dialect), None);
    }
});
