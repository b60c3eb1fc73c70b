//! The escape against the oracle's.

use plaincall_oracle::agreement::{Agreement, agrees};
use plaincall_oracle::arbitrary_texts::{self, Generator, Random};
use plaincall_oracle::effort::at_most;
use plaincall_oracle::merged::Kind;
use plaincall_oracle::oracle::{Options, Oracle};
use plaincall_syntax::{Dialect, Escaper, Parser};

use crate::oracle::accepted_options;

/// How many texts are made with the same options.
const TEXTS: u64 = 4;

/// Whether some marker begins in `before` and could continue with the first character of `after`.
fn may_join(dialect: &Dialect, before: &str, after: &str) -> bool {
    let markers = dialect.markers().unwrap();
    markers.iter().any(|marker| {
        let mut inner = marker.text.char_indices().skip(1);
        inner.any(|(at, next)| before.ends_with(&marker.text[..at]) && after.starts_with(next))
    })
}

/// Text that may continue across chunks is known.
fn check_cuts(random: &mut Random, text: &str, dialect: &Dialect, escaper: &Escaper) {
    for cut in arbitrary_texts::cuts(random, text) {
        let (before, after) = text.split_at(cut);
        let joins = may_join(dialect, before, after);
        assert_eq!(
            escaper.may_join(before, after),
            joins,
            "{before:?}, {after:?} with {dialect:?}"
        );
    }
}

#[test]
fn escaped_text_reads_back() {
    let mut random = Random::new(4);
    let count = at_most(200_000);
    let mut escaped_texts = 0;
    for _ in 0..count / TEXTS {
        let options = Options {
            escaped: true,
            in_reasoning: false,
            ..accepted_options(&mut random)
        };
        let generator = Generator::new(&options);
        let oracle = Oracle::new(&options);
        let dialect = options.dialect();
        let escaper = Escaper::new(&dialect).unwrap();
        let parser = Parser::new(&dialect).unwrap();
        for number in 0..TEXTS {
            let text = generator.text(&mut random);
            let written = oracle.escape(&text);
            let place = || format!("{text:?}, escaped {written:?}, with {}", options.words());
            escaped_texts += u64::from(written != text);
            assert_eq!(escaper.escape(&text), written, "{}", place());
            assert_eq!(oracle.unescape(&written), text, "{}", place());
            assert_eq!(escaper.unescape(&written), text, "{}", place());
            // One of each options, because they depend little on the options.
            if number == 0 {
                check_cuts(&mut random, &text, &dialect, &escaper);
            }
            let twice = || format!("unescaped without need, {}", place());
            assert_eq!(
                escaper.unescape(&text),
                oracle.unescape(&text),
                "{}",
                twice()
            );
            let read = oracle.read(&written);
            let content = read.iter().map(|event| match &event.kind {
                Kind::Text(text) => text.as_str(),
                Kind::Ignored(backslash) if backslash == "\\" => "",
                other => panic!("{other:?} in {}", place()),
            });
            assert_eq!(content.collect::<String>(), text, "{}", place());
            let agreement = Agreement::new(&read, &written);
            assert!(
                agrees(agreement, parser.clone(), [&*written]),
                "{}",
                place()
            );
        }
    }
    println!("{escaped_texts} of {count} texts needed the escape");
    assert!(escaped_texts > count / 2);
}
