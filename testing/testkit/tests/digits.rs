//! No digit is lost, for every schema (`spec/block.md` 7.7).

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::sync::LazyLock;

use plaincall_testkit::digits::Readers;
use proptest::prelude::*;

static READERS: LazyLock<Readers> = LazyLock::new(Readers::new);

/// Every text of up to four of the characters that matter.
#[test]
fn short_texts() {
    let characters = ["0", "1", "-", "+", ".", "e", "E", " ", "\n", "n"];
    let mut texts = vec![String::new()];
    let mut count = 0;
    for _ in 0..=4 {
        for text in &texts {
            READERS
                .check(text)
                .unwrap_or_else(|error| panic!("{error}"));
            count += 1;
        }
        let longer = |text: &String| characters.map(|character| format!("{text}{character}"));
        texts = texts.iter().flat_map(longer).collect();
    }
    assert_eq!(count, 11_111);
}

fn decimals() -> impl Strategy<Value = String> {
    let sign = prop::sample::select(vec!["", "", "-", "+"]);
    let whole = prop_oneof!["[0-9]{1,4}", "0{0,3}[0-9]{15,22}", "[1-9]0{0,30}"];
    let fraction = prop_oneof![
        Just(String::new()),
        "\\.[0-9]{1,4}0{0,3}",
        "\\.0{0,20}[0-9]{1,20}"
    ];
    let power = prop_oneof![
        3 => Just(String::new()),
        1 => "[eE][+-]?[0-9]{1,2}",
        1 => "[eE][+-]?[123][0-9]{2}",
    ];
    let near = prop::sample::select(vec![
        "18446744073709551615",
        "18446744073709551616",
        "-9223372036854775808",
        "-9223372036854775809",
        "9007199254740993",
        "9007199254740993.0",
        "1.7976931348623157e308",
        "1.7976931348623159e308",
        "5e-324",
        "2e-324",
        "4.9e-324",
        "0.1000000000000000055511151231257827",
        "1e23",
        "100000000000000000000000",
        "0.30000000000000004",
        "600000000000000.2",
        "600000000000000.3",
    ]);
    let blank = prop::sample::select(vec!["", "", " ", "\t "]);
    let digits = (sign, whole, fraction, power)
        .prop_map(|(sign, whole, fraction, power)| format!("{sign}{whole}{fraction}{power}"));
    let text = prop_oneof![8 => digits, 1 => near.prop_map(str::to_owned)];
    let floats = any::<f64>().prop_filter_map("finite", |float| {
        float.is_finite().then(|| format!("{float:?}"))
    });
    (blank, prop_oneof![4 => text, 1 => floats], blank_end())
        .prop_map(|(before, text, behind)| format!("{before}{text}{behind}"))
}

fn blank_end() -> impl Strategy<Value = &'static str> {
    prop::sample::select(vec!["", "", " "])
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_number_is_exact_or_it_stays_a_text(text in decimals()) {
        let found = READERS.check(&text);
        prop_assert!(found.is_ok(), "{}", found.err().unwrap_or_default());
    }
}
