use std::sync::LazyLock;

use plaincall_testkit::digits::Readers;

static READERS: LazyLock<Readers> = LazyLock::new(Readers::new);

/// A number is exact or it stays a text, for every schema (`spec/block.md` 7.7 and 7.7.1).
pub fn coercion_loses_no_digit(data: &[u8]) {
    let text = String::from_utf8_lossy(data);
    if let Err(error) = READERS.check(&text) {
        panic!("{error}");
    }
}
