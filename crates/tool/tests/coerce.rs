//! Conversion of values without a schema.

use plaincall_tool::json::coerce;
use serde_json::Value;

/// `expected` is JSON; a number must have the same notation.
fn check(text: &str, expected: &str) {
    assert_eq!(coerce(text).to_string(), expected, "{text:?}");
}

#[test]
fn scalars() {
    for (text, expected) in [
        ("true", "true"),
        ("false", "false"),
        (" true\t", "true"),
        ("42", "42"),
        ("3.14", "3.14"),
        ("-17", "-17"),
        ("-5", "-5"),
        ("  5 ", "5"),
        ("1.50", "1.5"),
        ("0", "0"),
        ("0.0", "0.0"),
        ("1.0", "1.0"),
        ("-0.5", "-0.5"),
        ("0.30000000000000004", "0.30000000000000004"),
        ("18446744073709551615", "18446744073709551615"),
        ("-9223372036854775808", "-9223372036854775808"),
    ] {
        check(text, expected);
    }
}

#[test]
fn strings() {
    for text in [
        "hello",
        "007",
        "+5",
        "1e5",
        ".5",
        "5.",
        "null",
        "",
        " ",
        "-0",
        "-0.00",
        "True",
        " a ",
        "0x10",
        "1_000",
        "NaN",
        "--5",
        "[]",
        "{}",
        "\"5\"",
        "3.14159265358979323846",
        "18446744073709551616",
        "-9223372036854775809",
        "٣",
        "5\n",
        "\n5",
        "1\n2",
        "5\r",
        "true\n",
        "\u{a0}5",
        "-",
        "1.2.3",
        "inf",
        "9007199254740993.0",
        "00",
        "-01",
        "1.",
        "00.5",
        "-00",
        "+1.5",
        "+007",
        "++5",
        "+",
        "-1.5E+3",
        "01e-3",
        "1e",
        "e5",
        "1e5e6",
        "1e1.5",
        " null ",
        "Null",
        "\t ",
        "FALSE",
        " {}",
        "[1",
        "\n",
        "true\r\n",
    ] {
        check(text, &Value::from(text).to_string());
    }
}
