//! Errors of a call are sentences for the model, with the pointer and without names of types.

use std::collections::BTreeMap;
use std::fmt::Debug;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::path::PathBuf;

use plaincall_tool::Arguments;
use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::typed_tools::scene::{X, block, emoji, refused, refused_by_type, tool};

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Order {
    item: String,
    count: u8,
    unit: Unit,
    at: Option<Location>,
    #[serde(default)]
    tags: Vec<String>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Location {
    street: String,
    number: u16,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
enum Unit {
    Piece,
    Box,
}

#[test]
fn schema_errors_are_reported_before_deserialization() {
    let tool = tool::<Order>();
    let written = r#"{"count": 300, "unit": "Piece", "colour": "red"}"#;
    let pairs = [("count", "300"), ("unit", "Piece"), ("colour", "red")];
    let expected = |of_syntax: [&str; 2]| {
        [
            "`count`: expected an integer from 0 to 255, found `300`".to_owned(),
            format!(
                "`unit`: expected one of `piece` and `box`, found `{}`",
                of_syntax[0]
            ),
            "unknown parameter `colour`; t takes `item`, `count`, `unit`, `at` and `tags`"
                .to_owned(),
            format!("missing required parameter `item`{}", of_syntax[1]),
        ]
    };
    let problems = block(&tool, &pairs).expect_err("a call that is wrong");
    assert_eq!(problems, expected(["Piece", ""]));
    let problems = emoji(&tool, written).expect_err("a call that is wrong");
    assert_eq!(
        problems,
        expected(["\"Piece\"", "; usage: `t (body: one JSON object)`"])
    );

    // Validation reports errors inside it as well.
    let pairs = [
        ("item", "a"),
        ("count", "1"),
        ("unit", "box"),
        ("at/street", "x"),
        ("at/floor", "1"),
        ("tags", "red"),
    ];
    let problems = block(&tool, &pairs).expect_err("a call that is wrong");
    let found = [
        "`at/floor` is not allowed here; allowed: `street` and `number`",
        "`tags`: expected a list, found `red`",
    ];
    assert_eq!(problems[..2], found);
    if cfg!(feature = "jsonschema") {
        assert_eq!(problems[2..], ["`at/number` is missing"]);
    }
}

/// Aliases are for programs; a call must use the name in the prompt.
#[test]
fn aliases_of_a_field_are_neither_shown_nor_accepted() {
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Renamed {
        #[serde(alias = "file")]
        #[expect(dead_code, reason = "only its name matters")]
        path: String,
        #[expect(dead_code, reason = "with it, arguments stand in JSON")]
        list: Vec<u8>,
    }
    refused::<Renamed>(
        &[("file", "a"), ("list/0", "1")],
        r#"{"file": "a", "list": [1]}"#,
        &[
            "unknown parameter `file`; t takes `path` and `list`",
            "missing required parameter `path`",
        ],
    );
    #[derive(Debug, Deserialize, JsonSchema)]
    enum Kind {
        Known,
        #[serde(other)]
        Other,
    }
    refused::<X<Kind>>(
        &[("x", "new")],
        "new",
        &["`x`: expected one of `Known` and `Other`, found `new`"],
    );
}

/// The schema of numbers above 16 bits has no bounds: models do not reach them by mistake, and they would fill the prompt.
#[test]
fn bounds_of_large_numbers_are_those_of_the_type() {
    refused_by_type::<X<i32>>(
        &[("x", "2147483648")],
        "2147483648",
        "`x`: expected an integer from -2147483648 to 2147483647, found `2147483648`",
    );
    refused_by_type::<X<i64>>(
        &[("x", "9223372036854775808")],
        "9223372036854775808",
        "`x`: expected an integer from -9223372036854775808 to 9223372036854775807, found `9223372036854775808`",
    );
    // Numbers over 64 bits are rejected.
    refused::<X<i128>>(
        &[("x", "18446744073709551616")],
        "18446744073709551616",
        &["`x`: expected an integer of at most 64 bits, found `18446744073709551616`"],
    );
    #[derive(Debug, Deserialize, JsonSchema)]
    struct Flat {
        #[serde(flatten)]
        #[expect(dead_code, reason = "it is never made")]
        x: X<i32>,
    }
    refused_by_type::<Flat>(
        &[("x", "2147483648")],
        "2147483648",
        "expected an integer from -2147483648 to 2147483647, found `2147483648`",
    );
}

/// An even number, written as a text.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(try_from = "String")]
struct Even(u8);

impl TryFrom<String> for Even {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match text.parse() {
            Ok(number) if number % 2 == 0 => Ok(Self(number)),
            _ => Err(format!("{text} is not even")),
        }
    }
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
enum Tagged {
    Even {
        #[expect(dead_code, reason = "it is never made")]
        number: Even,
    },
}

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    #[expect(dead_code, reason = "it is never made")]
    Even(Even),
    #[expect(dead_code, reason = "it is never made")]
    Flag(bool),
}

/// The schema requires a string, the type more: its own message, with the pointer.
#[test]
fn errors_of_the_type_itself_have_their_pointer() {
    refused_by_type::<X<Even>>(&[("x", "3")], "3", "`x`: 3 is not even");
    refused_by_type::<X<Option<Even>>>(&[("x", "3")], "3", "`x`: 3 is not even");
    refused_by_type::<X<Vec<Even>>>(
        &[("x/0", "2"), ("x/1", "3")],
        r#"{"x": ["2", "3"]}"#,
        "`x/1`: 3 is not even",
    );
    refused_by_type::<X<BTreeMap<String, X<Even>>>>(
        &[("x/a~1b/x", "3")],
        r#"{"x": {"a/b": {"x": "3"}}}"#,
        "`x/a~1b/x`: 3 is not even",
    );
    refused_by_type::<X<IpAddr>>(&[("x", "1.2.3")], "1.2.3", "`x`: invalid IP address syntax");
    // If a value is parsed before its alternative is known, the error names the whole value.
    refused_by_type::<X<Tagged>>(
        &[("x/kind", "Even"), ("x/number", "3")],
        r#"{"x": {"kind": "Even", "number": "3"}}"#,
        "`x`: 3 is not even",
    );
    refused_by_type::<X<Untagged>>(
        &[("x", "3")],
        "3",
        "`x`: it matches none of the allowed forms",
    );
}

/// Without a schema the errors of the type itself name no types either.
#[test]
fn no_message_names_a_type() {
    fn check<T: DeserializeOwned + Debug>(pairs: &[(&str, &str)], expected: &str) {
        let arguments =
            Arguments::from_pairs(pairs.iter().copied()).expect("pairs that fit together");
        let error = arguments
            .to::<X<T>>()
            .expect_err("a type that does not fit");
        assert_eq!(error.to_string(), expected, "{pairs:?}");
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never made")]
    struct Pair(u8, u8);
    #[derive(Debug, Deserialize)]
    #[serde(tag = "t", content = "c")]
    #[expect(dead_code, reason = "it is never made")]
    enum Adjacent {
        Pair(u8, u8),
        Named { a: u8 },
    }
    #[derive(Debug, Deserialize)]
    struct Flat {
        #[serde(flatten)]
        #[expect(dead_code, reason = "it is never made")]
        pair: Plain,
    }
    #[derive(Debug, Deserialize)]
    #[expect(dead_code, reason = "it is never made")]
    enum Plain {
        Pair(u8, u8),
    }

    check::<PathBuf>(&[("x/a", "1")], "`x`: expected a string, found an object");
    check::<NonZeroU32>(
        &[("x", "0")],
        "`x`: expected an integer other than 0, found `0`",
    );
    check::<Pair>(
        &[("x/0", "1")],
        "`x`: expected a list of length 2, found length 1",
    );
    check::<Pair>(&[("x", "a")], "`x`: expected a list, found `a`");
    check::<(u8, u8)>(
        &[("x/0", "1")],
        "`x`: expected a list of length 2, found length 1",
    );
    check::<Tagged>(&[("x", "a")], "`x`: expected a tagged object, found `a`");
    check::<Tagged>(
        &[("x/kind", "Odd")],
        "`x/kind`: expected `Even`, found `Odd`",
    );
    check::<Tagged>(&[("x/number", "2")], "`x/kind`: missing");
    check::<Adjacent>(&[("x", "a")], "`x`: expected an object, found `a`");
    check::<Adjacent>(&[("x/c/a", "1")], "`x/t`: missing");
    check::<Adjacent>(
        &[("x/c/0", "1"), ("x/t", "Pair")],
        "`x`: expected a list of length 2, found length 1",
    );
    check::<Adjacent>(
        &[("x/c/a", "x"), ("x/t", "Named")],
        "`x`: expected an integer from 0 to 255, found `x`",
    );
    check::<Untagged>(&[("x/a", "1")], "`x`: it matches none of the allowed forms");
    check::<Flat>(&[("x/a", "1")], "`x`: none of the allowed names is present");
    check::<Plain>(&[("x/Pair", "1")], "`x/Pair`: expected a list, found `1`");
    check::<Flat>(&[("x/Pair", "1")], "`x`: expected a list, found `1`");
}
