use crate::case::Case;
use plaincall_testkit::merged::{merged, merged_of_chunks};
use plaincall_testkit::untrusted::chunks;

/// Chunk boundaries make no difference to the parser (`spec/common.md` 2.3).
pub fn chunking_does_not_matter(data: &[u8]) {
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
}
