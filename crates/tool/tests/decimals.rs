//! Numbers are exact or rejected, and written without an exponent.

#![allow(clippy::expect_used, reason = "a test fails by a panic")]

use std::collections::BTreeMap;

use plaincall_tool::{Arguments, flatten, json::coerce};
use serde_json::{Map, Value};

/// Checks a text as a number of a type, and without a schema.
fn check(text: &str, whole: Option<u128>, float: Option<f64>, is_plain: bool) {
    let arguments = Arguments::from_pairs([("a", text)]).expect("an argument");
    let found = arguments.to::<BTreeMap<String, u128>>().ok();
    assert_eq!(found.map(|found| found["a"]), whole, "{text}");
    let found = arguments.to::<BTreeMap<String, f64>>().ok();
    let found = found.map(|found| found["a"].to_bits());
    assert_eq!(found, float.map(f64::to_bits), "{text}");
    assert_eq!(coerce(text).is_number(), is_plain, "{text}");
}

#[test]
fn numbers_are_written_without_an_exponent() {
    for (number, plain) in [
        (0.0, "0.0"),
        (1e3, "1000.0"),
        (1.5, "1.5"),
        (-1.25, "-1.25"),
        (0.125, "0.125"),
        (5e-4, "0.0005"),
        (-12.5, "-12.5"),
    ] {
        let object = Map::from_iter([("a".to_owned(), Value::from(number))]);
        let pairs = flatten(&object, None).expect("a number that comes back");
        assert_eq!(pairs, [("a".to_owned(), plain.to_owned())]);
    }
}

#[test]
fn numbers_are_exact_or_nothing() {
    for (text, whole, float, is_plain) in [
        ("0", Some(0), Some(0.0), true),
        ("-0", Some(0), Some(-0.0), false),
        ("10", Some(10), Some(10.0), true),
        ("1.50", None, Some(1.5), true),
        ("0.000", Some(0), Some(0.0), true),
        ("0.1", None, Some(0.1), true),
        ("9007199254740993", Some(9_007_199_254_740_993), None, true),
        ("3.14159265358979323846", None, None, false),
        ("00", Some(0), Some(0.0), false),
        ("1e5", Some(100_000), Some(1e5), false),
        ("+1", Some(1), Some(1.0), false),
        ("", None, None, false),
        ("-", None, None, false),
        ("1.", Some(1), Some(1.0), false),
        (".5", None, Some(0.5), false),
        ("-.5", None, Some(-0.5), false),
        ("5.", Some(5), Some(5.0), false),
        ("+5.e1", Some(50), Some(50.0), false),
        (".0", Some(0), Some(0.0), false),
        (".", None, None, false),
        ("-.", None, None, false),
        (".e5", None, None, false),
        ("+0010", Some(10), Some(10.0), false),
        ("1e3", Some(1000), Some(1000.0), false),
        ("12.5E1", Some(125), Some(125.0), false),
        ("1e-3", None, Some(0.001), false),
        ("1e", None, None, false),
        ("1e+", None, None, false),
        ("e5", None, None, false),
        ("1e400", None, None, false),
        ("1e-400", None, None, false),
        ("0e99999999999999999999", Some(0), Some(0.0), false),
        ("1e99999999999999999999", None, None, false),
        // JSON uses one of the two shortest forms of a float.
        ("600000000000000.2", None, Some(6e14 + 0.25), true),
        ("600000000000000.3", None, Some(6e14 + 0.25), false),
        ("5e-324", None, Some(5e-324), false),
        ("4e-324", None, None, false),
        ("1.7976931348623157e308", None, Some(f64::MAX), false),
        ("1_000", None, None, false),
        ("0x10", None, None, false),
        ("NaN", None, None, false),
        ("++1", None, None, false),
        ("+-1", None, None, false),
        ("٣", None, None, false),
    ] {
        check(text, whole, float, is_plain);
    }
    check(&u128::MAX.to_string(), Some(u128::MAX), None, false);
    check(&format!("1{}", "0".repeat(300)), None, Some(1e300), false);
    check(&"9".repeat(100_000), None, None, false);
}
