use crate::drawn::Drawn;
use plaincall_testkit::merged::merged_of_chunks;
use plaincall_testkit::oracle::oracle;
use plaincall_testkit::untrusted::chunks;

/// The parser reads what the naive oracle reads, in any dialect and for any chunks (`spec/README.md`).
pub fn agrees_with_oracle(data: &[u8]) {
    let Some(drawn) = Drawn::new(data) else {
        return;
    };
    let (text, dialect) = (drawn.text(), drawn.options.dialect());
    let expected = oracle(&text, &drawn.options);
    for sizes in [&[usize::MAX][..], &drawn.sizes, &drawn.sizes[1..]] {
        let read = merged_of_chunks(chunks(&text, sizes), &dialect).expect("a dialect that works");
        let words = drawn.options.words();
        assert_eq!(
            read, expected,
            "{text:?} in pieces of {sizes:?} with {words}"
        );
    }
}
