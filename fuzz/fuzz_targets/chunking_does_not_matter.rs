//! Chunk boundaries make no difference to the parser (`spec/common.md` 2.3).
#![no_main]

use libfuzzer_sys::fuzz_target;
use plaincall_fuzz::Case;
use plaincall_testkit::untrusted::chunks;
use plaincall_testkit::merged::{merged, merged_of_chunks};

fuzz_target!(|data: &[u8]| {
    let Some(case) = Case::new(data) else {
        return;
    };
    for text in case.texts.iter().map(|text| text.text.as_str()) {
        let cut = chunks(text, &case.sizes);
        for dialect in &case.dialects {
            let read =
                merged_of_chunks(cut.iter().copied(), dialect).expect("a dialect that works");
            assert_eq!(read, merged(text, dialect).expect("a dialect that works"));
        }
    }
});
