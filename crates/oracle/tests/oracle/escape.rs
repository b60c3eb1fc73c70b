//! The escape against the oracle's.

use plaincall_oracle::effort::at_most;
use plaincall_oracle::merged::{Kind, merged};
use plaincall_oracle::oracle::{Options, escape, unescape};
use plaincall_oracle::soup::{Kitchen, Random};

use crate::accepted_options;

#[test]
fn what_was_escaped_is_read_again() {
    let mut random = Random::new(4);
    let count = at_most(200_000);
    let mut escaped_texts = 0;
    for _ in 0..count {
        let mut options = accepted_options(&mut random);
        options.in_reasoning = false;
        let text = Kitchen::new(&options).text(&mut random);
        let dialect = options.dialect();
        let written = escape(&text, &options);
        let place = || format!("{text:?}, escaped {written:?}, with {}", options.words());
        escaped_texts += u64::from(written != text);
        assert_eq!(
            plaincall_syntax::escape(&text, &dialect).unwrap(),
            written,
            "{}",
            place()
        );
        assert_eq!(unescape(&written, &options), text, "{}", place());
        assert_eq!(
            plaincall_syntax::unescape(&written, &dialect).unwrap(),
            text,
            "{}",
            place()
        );
        assert_eq!(
            plaincall_syntax::unescape(&text, &dialect).unwrap(),
            unescape(&text, &options),
            "unescaped without need, {}",
            place()
        );
        let escaped = Options {
            escaped: true,
            ..options.clone()
        };
        let mut read = String::new();
        for event in merged(&written, &escaped.dialect()).unwrap() {
            match event.kind {
                Kind::Text(text) => read.push_str(&text),
                Kind::Ignored(backslash) => assert_eq!(backslash, "\\", "{}", place()),
                other => panic!("{other:?} in {}", place()),
            }
        }
        assert_eq!(read, text, "{}", place());
    }
    println!("{escaped_texts} of {count} texts needed the escape");
    assert!(escaped_texts > count / 2);
}
