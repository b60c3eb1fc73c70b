//! Arguments as types: the requested type decides how each value is parsed.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::collections::{BTreeMap, HashMap};
use std::fmt::Debug;

use plaincall_reply::Document;
use plaincall_syntax::Dialect;
use plaincall_tool::Arguments;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

fn arguments(pairs: &[(&str, &str)]) -> Arguments {
    Arguments::from_pairs(pairs.iter().copied()).expect("pairs that fit together")
}

fn check<T: DeserializeOwned + PartialEq + Debug>(pairs: &[(&str, &str)], expected: &T) {
    let found = arguments(pairs).to::<T>();
    assert_eq!(found.as_ref(), Ok(expected), "{pairs:?}");
}

fn check_error<T: DeserializeOwned + Debug>(pairs: &[(&str, &str)], expected: &str) {
    let error = arguments(pairs)
        .to::<T>()
        .expect_err("a type that does not fit");
    assert_eq!(error.to_string(), expected, "{pairs:?}");
}

#[derive(Debug, PartialEq, Deserialize)]
struct X<T> {
    x: T,
}

/// One value, read as `T`.
fn value<T: DeserializeOwned + PartialEq + Debug>(text: &str, expected: T) {
    check(&[("x", text)], &X { x: expected });
}

fn value_error<T: DeserializeOwned + Debug>(text: &str, expected: &str) {
    check_error::<X<T>>(&[("x", text)], expected);
}

#[test]
fn scalars() {
    value("02134", "02134".to_owned());
    value("02134", 2134_u32);
    value(" a \n", " a \n".to_owned());
    value("true", "true".to_owned());
    value(" true ", true);
    value("+5", 5_i8);
    value(" -5\t", -5_i64);
    value("-0", 0_u8);
    value("1e3", 1000_u16);
    value("5.0", 5_usize);
    value("255", 255_u8);
    value("340282366920938463463374607431768211455", u128::MAX);
    value("-170141183460469231731687303715884105728", i128::MIN);
    value("1e2", 100.0_f64);
    value("0.1", 0.1_f32);
    value("007", 7.0_f64);
    value(".5", 0.5_f64);
    value("5.\n\n", 5_u8);
    value("False \r\n", false);
    value("ü", 'ü');
    value("", String::new());
    value("null", ());
}

#[test]
fn scalars_that_do_not_fit() {
    value_error::<bool>("yes", "`x`: expected true or false, found `yes`");
    value_error::<bool>("TRUE", "`x`: expected true or false, found `TRUE`");
    value_error::<u8>("256", "`x`: expected an integer from 0 to 255, found `256`");
    value_error::<u8>("-1", "`x`: expected an integer from 0 to 255, found `-1`");
    value_error::<i32>("1.5", "`x`: expected an integer, found `1.5`");
    value_error::<i32>("", "`x`: expected an integer, found nothing");
    value_error::<i32>("5\n6", "`x`: expected an integer, found `5…`");
    value_error::<i32>("0x10", "`x`: expected an integer, found `0x10`");
    value_error::<f64>("NaN", "`x`: expected a number, found `NaN`");
    value_error::<f64>(
        "0.12345678901234567890",
        "`x`: expected a number that fits into 64 bits, found `0.12345678901234567890`",
    );
    value_error::<f64>(".", "`x`: expected a number, found `.`");
    value_error::<char>("ab", "`x`: expected a character, found `ab`");
    value_error::<Vec<u8>>("5", "`x`: expected a list, found `5`");
    check_error::<X<String>>(&[("x/a", "1")], "`x`: expected a string, found an object");
    check_error::<X<u8>>(&[("x/0", "1")], "`x`: expected an integer, found a list");
    check_error::<X<u8>>(&[("y", "1")], "`x`: missing");
    check_error::<X<X<u8>>>(&[("x/y", "1")], "`x/x`: missing");
}

#[test]
fn options() {
    value("null", None::<String>);
    value("null", None::<u8>);
    value(" 5 ", Some(5_u8));
    value("None", Some("None".to_owned()));
    value("None\n", ());
    value("nothing", Some("nothing".to_owned()));
    check(&[], &X { x: None::<u8> });
    value_error::<Option<u8>>("nil", "`x`: expected an integer, found `nil`");
}

#[test]
fn containers() {
    check(&[("x/0", "1"), ("x/1", "02")], &X { x: vec![1_u8, 2] });
    check(
        &[("x/0", "1"), ("x/1", "a")],
        &X {
            x: (1_u8, "a".to_owned()),
        },
    );
    check(
        &[("x/0", "5"), ("x/1", "true")],
        &X {
            x: vec!["5".to_owned(), "true".to_owned()],
        },
    );
    check(
        &[("x/a", "1"), ("x/b", "2")],
        &X {
            x: BTreeMap::from([("a".to_owned(), 1_i16), ("b".to_owned(), 2)]),
        },
    );
    check(
        &[("x/1", "a")].map(|(_, text)| ("x/k", text)),
        &X {
            x: HashMap::from([("k".to_owned(), 'a')]),
        },
    );
    // A map may have numeric keys.
    check(
        &[("x/0", "a"), ("x/1", "b")],
        &X {
            x: BTreeMap::from([(0_u32, 'a'), (1, 'b')]),
        },
    );
    check(
        &[("x/a~1b", "1")],
        &X {
            x: BTreeMap::from([("a/b".to_owned(), 1_u8)]),
        },
    );
    check(
        &[("x/0/x", "1"), ("x/1/x", "2")],
        &X {
            x: vec![X { x: 1_u8 }, X { x: 2 }],
        },
    );
    check(&[("a", "1")], &BTreeMap::from([("a".to_owned(), 1_u8)]));
    check(&[], &());
    check_error::<X<Vec<u8>>>(
        &[("x/0", "1"), ("x/1", "b")],
        "`x/1`: expected an integer, found `b`",
    );
    check_error::<X<(u8, u8)>>(
        &[("x/0", "1")],
        "`x`: expected a list of length 2, found length 1",
    );
    check_error::<X<(u8, u8)>>(
        &[("x/0", "1"), ("x/1", "1"), ("x/2", "1")],
        "`x`: the list is too long by 1",
    );
    check_error::<X<BTreeMap<u32, u8>>>(
        &[("x/a", "1")],
        "`x`: expected keys that are integers from 0 to 4294967295, found `a`",
    );
    check_error::<X<X<u8>>>(&[("x/0", "1")], "`x`: expected an object, found a list");
}

#[test]
fn json_text() {
    value("[1, 2]", vec![1_u8, 2]);
    value(" [\n1,\n2\n] ", vec![1_u8, 2]);
    value("[]", Vec::<u8>::new());
    value("{}", BTreeMap::<String, u8>::new());
    value(
        r#"{"x": ["a", "null", "5"]}"#,
        X {
            x: vec!["a".to_owned(), "null".to_owned(), "5".to_owned()],
        },
    );
    value(r#"{"x": null}"#, X { x: None::<u8> });
    value("[[1], []]", vec![vec![1_u8], vec![]]);
    // A string keeps the text.
    value("[1, 2]", "[1, 2]".to_owned());
    value_error::<Vec<u8>>("[1, \"b\"]", "`x/1`: expected an integer, found `b`");
    value_error::<Vec<u8>>(
        "[1, 300]",
        "`x/1`: expected an integer from 0 to 255, found `300`",
    );
    value_error::<X<u8>>(r#"{"y": 1}"#, "`x/x`: missing");
    value_error::<X<X<u8>>>(r#"{"x": {}}"#, "`x/x/x`: missing");
    value_error::<BTreeMap<String, u8>>(
        r#"{"a": 1, "a": 2}"#,
        "`x`: invalid JSON: duplicate key \"a\" (line 1, column 16)",
    );
    value_error::<Vec<f64>>(
        "[1.00000000000000000001]",
        "`x`: invalid JSON: the number 1.00000000000000000001 has too many digits",
    );
    value_error::<Vec<u8>>(
        "[1,",
        "`x`: invalid JSON: it ends inside a value (line 1, column 3)",
    );
    value_error::<Vec<u8>>("{\"a\": 1}", "`x`: expected a list, found `{\"a\": 1}`");
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Celsius,
    Kelvin,
}

#[derive(Debug, PartialEq, Deserialize)]
enum Shape {
    Empty,
    Circle(f64),
    Box { width: u8, name: String },
    Pair(u8, String),
}

#[test]
fn enums() {
    value("kelvin", Unit::Kelvin);
    value("Empty", Shape::Empty);
    check(
        &[("x/Circle", "1.5")],
        &X {
            x: Shape::Circle(1.5),
        },
    );
    check(
        &[("x/Box/width", "1"), ("x/Box/name", "02")],
        &X {
            x: Shape::Box {
                width: 1,
                name: "02".to_owned(),
            },
        },
    );
    check(
        &[("x/Pair/0", "1"), ("x/Pair/1", "2")],
        &X {
            x: Shape::Pair(1, "2".to_owned()),
        },
    );
    value(r#"{"Circle": 2}"#, Shape::Circle(2.0));
    value(r#"{"Pair": [1, "2"]}"#, Shape::Pair(1, "2".to_owned()));
    check(
        &[("x/celsius", "1")].map(|_| ("x/0", "celsius")),
        &X {
            x: vec![Unit::Celsius],
        },
    );
    check(
        &[("x/celsius", "1")],
        &X {
            x: BTreeMap::from([("celsius".to_owned(), 1_u8)]),
        },
    );
    value_error::<Unit>(
        "Kelvin",
        "`x`: expected one of `celsius` and `kelvin`, found `Kelvin`",
    );
    value_error::<Shape>("Circle", "`x`: this name requires a value");
    check_error::<X<Shape>>(
        &[("x/Circle", "wide")],
        "`x/Circle`: expected a number, found `wide`",
    );
    check_error::<X<Shape>>(
        &[("x/A", "1"), ("x/B", "2")],
        "`x`: expected an object with one member, found an object",
    );
}

#[derive(Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
struct Strict {
    #[serde(default)]
    limit: Option<u32>,
}

#[derive(Debug, PartialEq, Deserialize)]
struct Newtype(String);

#[test]
fn attributes_of_structs() {
    check(&[], &Strict { limit: None });
    check_error::<Strict>(
        &[("limits", "1")],
        "`limits`: not expected here; expected `limit`",
    );
    value("5", Newtype("5".to_owned()));
}

#[test]
fn untyped_values_are_coerced() {
    check(
        &[
            ("a", "5"),
            ("b", "05"),
            ("c/0", "true"),
            ("d", "[1]"),
            ("e", "null"),
        ],
        &json!({"a": 5, "b": "05", "c": [true], "d": "[1]", "e": "null"}),
    );
    value(" 1.50 ", Value::from(1.5));
}

#[derive(Debug, Deserialize)]
struct Y {
    #[serde(rename = "y")]
    _y: u8,
}

#[test]
fn errors_say_where_in_the_input() {
    let text = "!!!GADGET_START:A\n!!!ARG:x/0\n1\n!!!ARG:x/1\nabc\n!!!GADGET_END";
    let document = Document::parse(text, &Dialect::block()).expect("a dialect that works");
    let arguments = &document.calls().next().expect("a call").arguments;
    let place = |error: plaincall_tool::ArgumentError| {
        let span = error
            .span
            .map(|span| text.get(span.range()).unwrap_or_default());
        (error.pointer.clone(), span)
    };
    let error = arguments.to::<X<Vec<u8>>>().expect_err("no number");
    assert_eq!(place(error), ("x/1".to_owned(), Some("abc")));
    let error = arguments.to::<X<String>>().expect_err("no text");
    assert_eq!(place(error), ("x".to_owned(), Some("!!!ARG:x/0\n")));
    let error = arguments
        .to::<HashMap<String, Vec<Newtype>>>()
        .map(|map| map.len());
    assert_eq!(error, Ok(1));
    let error = arguments.to::<Y>().expect_err("nothing there");
    assert_eq!(place(error), ("y".to_owned(), None));
}
