//! Each kind of type: a call, and the deserialized value.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::Debug;
use std::num::NonZeroU8;
use std::path::PathBuf;
use std::time::Duration;

use schemars::JsonSchema;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

use crate::typed_tools::scene::{X, block, check, emoji, tool};

/// One argument of a type: its text, its JSON and its value.
fn value<T>(text: &str, json: &Value, expected: T)
where
    T: DeserializeOwned + JsonSchema + PartialEq + Debug,
{
    value_at(&[("x", text)], json, expected);
}

/// The same for a value with parts.
fn value_at<T>(pairs: &[(&str, &str)], json: &Value, expected: T)
where
    T: DeserializeOwned + JsonSchema + PartialEq + Debug,
{
    // Alone, a scalar is on the line; beside a list it is in JSON.
    let tool = tool::<X<T>>();
    let is_json = tool.usage().body == plaincall_tool::usage::UsageBody::Json;
    let text = pairs.first().map_or("", |(_, text)| text);
    let written = if is_json {
        json!({"x": json}).to_string()
    } else {
        text.to_owned()
    };
    let expected = X { x: expected };
    check(pairs, &written, &expected);
    let mut pairs = pairs.to_vec();
    pairs.push(("list/0", "1"));
    let expected = Beside {
        x: expected.x,
        list: vec![1],
    };
    check(
        &pairs,
        &json!({"x": json, "list": [1]}).to_string(),
        &expected,
    );
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Beside<T> {
    x: T,
    list: Vec<u8>,
}

#[test]
fn scalars() {
    value("02134", &json!("02134"), "02134".to_owned());
    value("true", &json!("true"), "true".to_owned());
    value("true", &json!(true), true);
    value("255", &json!(255), 255_u8);
    value("+007", &json!(7), 7_i16);
    value("-128", &json!(-128), i8::MIN);
    value("1e3", &json!(1000), 1000_u32);
    value("18446744073709551615", &json!(u64::MAX), u64::MAX);
    value("-9223372036854775808", &json!(i64::MIN), i64::MIN);
    value("12", &json!(12), 12_i128);
    value("12", &json!(12), 12_usize);
    value("0.5", &json!(0.5), 0.5_f64);
    value("5", &json!(5), 5.0_f64);
    value("0.25", &json!(0.25), 0.25_f32);
    value("7", &json!(7), NonZeroU8::MIN.saturating_add(6));
    value("ü", &json!("ü"), 'ü');
    value("5", &json!("5"), '5');
    value("a/b.txt", &json!("a/b.txt"), PathBuf::from("a/b.txt"));
    value("null", &json!(null), ());
    value("5", &json!(5), json!(5));
    value("a", &json!("a"), json!("a"));
    value("05", &json!("05"), Box::new("05".to_owned()));
}

/// Serde reads `()` from null; a call has no arguments.
#[test]
fn nothing() {
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Unit;
    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Fields {}

    for tool in [tool::<()>(), tool::<Unit>(), tool::<Fields>()] {
        for arguments in [block(&tool, &[]), emoji(&tool, "")] {
            let arguments = arguments.expect("a call without arguments");
            assert_eq!(arguments.to(), Ok(()));
            assert_eq!(arguments.to(), Ok(Unit));
            assert_eq!(arguments.to(), Ok(Fields {}));
        }
        let problems = block(&tool, &[("a", "1")]).expect_err("an argument");
        assert_eq!(problems, ["unknown parameter `a`; t takes no parameters"]);
    }
}

#[test]
fn options_and_defaults() {
    value("null", &json!(null), None::<u8>);
    value("5", &json!(5), Some(5_u8));
    value("5", &json!("5"), Some("5".to_owned()));
    value("null", &json!(null), None::<String>);
    value("[1, 2]", &json!([1, 2]), Some(vec![1_u8, 2]));
    value_at(&[("x/x", "5")], &json!({"x": 5}), Some(X { x: 5_u8 }));
    value("null", &json!(null), None::<X<u8>>);

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    struct Defaults {
        #[serde(default)]
        count: u8,
        #[serde(default = "seven")]
        seven: i64,
        option: Option<String>,
        #[serde(default)]
        list: Vec<String>,
        #[serde(skip)]
        hidden: bool,
    }
    fn seven() -> i64 {
        7
    }
    let nothing = Defaults {
        count: 0,
        seven: 7,
        option: None,
        list: Vec::new(),
        hidden: false,
    };
    check(&[], "{}", &nothing);
    let some = Defaults {
        count: 3,
        option: Some("3".to_owned()),
        ..nothing
    };
    check(
        &[("count", "3"), ("option", "3")],
        r#"{"count": 3, "option": "3"}"#,
        &some,
    );

    #[derive(Debug, PartialEq, Deserialize, JsonSchema)]
    #[serde(default)]
    struct AllDefault {
        width: u8,
        name: String,
        list: Vec<String>,
    }
    impl Default for AllDefault {
        fn default() -> Self {
            Self {
                width: 9,
                name: "none".to_owned(),
                list: Vec::new(),
            }
        }
    }
    check(
        &[("name", "9")],
        r#"{"name": "9"}"#,
        &AllDefault {
            width: 9,
            name: "9".to_owned(),
            list: Vec::new(),
        },
    );
}

#[test]
fn lists_maps_and_tuples() {
    value_at(
        &[("x/0", "1"), ("x/1", "02")],
        &json!([1, 2]),
        vec![1_u8, 2],
    );
    value("[]", &json!([]), Vec::<String>::new());
    value_at(
        &[("x/0", "5"), ("x/1", "null")],
        &json!(["5", null]),
        vec![Some("5".to_owned()), None],
    );
    value_at(
        &[("x/0", "b"), ("x/1", "a")],
        &json!(["b", "a"]),
        BTreeSet::from(["a".to_owned(), "b".to_owned()]),
    );
    value_at(
        &[("x/0", "1"), ("x/1", "2")],
        &json!([1, "2"]),
        (1_u8, "2".to_owned()),
    );
    value_at(
        &[("x/0", "0.5"), ("x/1", "2")],
        &json!([0.5, 2]),
        [0.5_f32, 2.0],
    );
    value_at(
        &[("x/a", "1"), ("x/b", "02")],
        &json!({"a": 1, "b": 2}),
        HashMap::from([("a".to_owned(), 1_i64), ("b".to_owned(), 2)]),
    );
    value("{}", &json!({}), BTreeMap::<String, u8>::new());
    value_at(
        &[("x/0", "a"), ("x/7", "b")],
        &json!({"0": "a", "7": "b"}),
        BTreeMap::from([(0_u32, 'a'), (7, 'b')]),
    );
    value_at(
        &[("x/a~1b", "1")],
        &json!({"a/b": "1"}),
        BTreeMap::from([("a/b".to_owned(), "1".to_owned())]),
    );
    value_at(
        &[("x/inch", "1")],
        &json!({"inch": 1}),
        BTreeMap::from([(Unit::Inch, 1_u8)]),
    );
    value_at(
        &[("x/0/x", "1"), ("x/1/x", "2")],
        &json!([{"x": "1"}, {"x": "2"}]),
        vec![X { x: "1".to_owned() }, X { x: "2".to_owned() }],
    );
    value_at(
        &[("x/secs", "5"), ("x/nanos", "0")],
        &json!({"secs": 5, "nanos": 0}),
        Duration::from_secs(5),
    );

    let map = HashMap::from([("a".to_owned(), 1_u8), ("b".to_owned(), 2)]);
    check(&[("a", "1"), ("b", "2")], r#"{"a": 1, "b": 2}"#, &map);
    check(
        &[("a", "1"), ("b", "x")],
        r#"{"a": 1, "b": "x"}"#,
        &json!({"a": 1, "b": "x"}),
    );
}

#[derive(Debug, PartialEq, Eq, PartialOrd, Ord, Deserialize, JsonSchema)]
#[serde(rename_all = "kebab-case")]
enum Unit {
    MilliMeter,
    Inch,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum Documented {
    /// The first.
    First,
    /// The second.
    #[serde(rename = "2")]
    Second,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
enum External {
    Empty,
    Circle(f64),
    Pair(u8, String),
    Box { width: u8, name: String },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(
    tag = "kind",
    rename_all = "snake_case",
    rename_all_fields = "camelCase"
)]
enum Internal {
    Empty,
    NamedBox { the_width: u8, name: String },
    Label { name: u8 },
    Inner(X<String>),
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(tag = "t", content = "c")]
enum Adjacent {
    Empty,
    Number(u8),
    Text(String),
    Box { width: u8 },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Untagged {
    Number(i64),
    Box { width: u8 },
    Label { name: String },
    List(Vec<u8>),
    Flag(bool),
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum NumberOrText {
    Number(i64),
    Text(String),
}

#[test]
fn enums() {
    value("milli-meter", &json!("milli-meter"), Unit::MilliMeter);
    value("First", &json!("First"), Documented::First);
    value("2", &json!("2"), Documented::Second);
    value("2", &json!("2"), Some(Documented::Second));
    value("null", &json!(null), None::<Documented>);

    value("Empty", &json!("Empty"), External::Empty);
    value_at(
        &[("x/Circle", "1.5")],
        &json!({"Circle": 1.5}),
        External::Circle(1.5),
    );
    value_at(
        &[("x/Pair/0", "1"), ("x/Pair/1", "2")],
        &json!({"Pair": [1, "2"]}),
        External::Pair(1, "2".to_owned()),
    );
    value_at(
        &[("x/Box/width", "1"), ("x/Box/name", "02")],
        &json!({"Box": {"width": 1, "name": "02"}}),
        External::Box {
            width: 1,
            name: "02".to_owned(),
        },
    );

    value_at(
        &[("x/kind", "empty")],
        &json!({"kind": "empty"}),
        Internal::Empty,
    );
    value_at(
        &[
            ("x/kind", "named_box"),
            ("x/theWidth", "1"),
            ("x/name", "02"),
        ],
        &json!({"kind": "named_box", "theWidth": 1, "name": "02"}),
        Internal::NamedBox {
            the_width: 1,
            name: "02".to_owned(),
        },
    );
    value_at(
        &[("x/name", "02"), ("x/kind", "label")],
        &json!({"kind": "label", "name": 2}),
        Internal::Label { name: 2 },
    );
    value_at(
        &[("x/kind", "inner"), ("x/x", "5")],
        &json!({"kind": "inner", "x": "5"}),
        Internal::Inner(X { x: "5".to_owned() }),
    );

    value_at(&[("x/t", "Empty")], &json!({"t": "Empty"}), Adjacent::Empty);
    value_at(
        &[("x/t", "Number"), ("x/c", "5")],
        &json!({"t": "Number", "c": 5}),
        Adjacent::Number(5),
    );
    value_at(
        &[("x/c", "5"), ("x/t", "Text")],
        &json!({"t": "Text", "c": "5"}),
        Adjacent::Text("5".to_owned()),
    );
    value_at(
        &[("x/t", "Box"), ("x/c/width", "5")],
        &json!({"t": "Box", "c": {"width": 5}}),
        Adjacent::Box { width: 5 },
    );

    value("-5", &json!(-5), Untagged::Number(-5));
    value("true", &json!(true), Untagged::Flag(true));
    value_at(&[("x/0", "5")], &json!([5]), Untagged::List(vec![5]));
    value_at(
        &[("x/width", "5")],
        &json!({"width": 5}),
        Untagged::Box { width: 5 },
    );
    value_at(
        &[("x/name", "5")],
        &json!({"name": "5"}),
        Untagged::Label {
            name: "5".to_owned(),
        },
    );
    // Beside a string, only the JSON notation of a number is a number.
    value("5", &json!(5), NumberOrText::Number(5));
    value("05", &json!("05"), NumberOrText::Text("05".to_owned()));

    // The arguments as a whole may have several alternatives.
    check(
        &[("kind", "label"), ("name", "7")],
        r#"{"kind": "label", "name": 7}"#,
        &Internal::Label { name: 7 },
    );
    check(
        &[("width", "7")],
        r#"{"width": 7}"#,
        &FormOfUntagged::Box { width: 7 },
    );
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(untagged)]
enum FormOfUntagged {
    Box { width: u8 },
    Label { name: String, list: Vec<u8> },
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Newtype(String);

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(transparent)]
struct Transparent {
    inner: u16,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Node {
    value: String,
    #[serde(default)]
    next: Option<Box<Node>>,
    #[serde(default)]
    more: Vec<Node>,
}

impl Node {
    fn of(value: &str) -> Self {
        Self {
            value: value.to_owned(),
            next: None,
            more: Vec::new(),
        }
    }
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Nested {
    first_name: String,
    #[serde(rename = "type")]
    kind: u8,
    inner_part: X<X<bool>>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Page {
    #[serde(default)]
    limit: u8,
    after: Option<String>,
    sign: char,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Flat {
    id: String,
    #[serde(flatten)]
    page: Page,
    #[serde(flatten)]
    shape: Option<Internal>,
}

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct Rest {
    id: u8,
    #[serde(flatten)]
    rest: BTreeMap<String, i64>,
}

#[test]
fn structs_in_structs() {
    value("05", &json!("05"), Newtype("05".to_owned()));
    value("05", &json!(5), Transparent { inner: 5 });
    let nested = || Nested {
        first_name: "7".to_owned(),
        kind: 7,
        inner_part: X { x: X { x: true } },
    };
    let pairs = [("firstName", "7"), ("type", "7"), ("innerPart/x/x", "true")];
    let json = json!({"firstName": "7", "type": 7, "innerPart": {"x": {"x": true}}});
    check(&pairs, &json.to_string(), &nested());
    let pairs = [
        ("x/0/firstName", "7"),
        ("x/0/type", "7"),
        ("x/0/innerPart/x/x", "true"),
    ];
    value_at(&pairs, &json!([json]), vec![nested()]);
    value(&json.to_string(), &json, nested());

    let node = Node {
        next: Some(Box::new(Node {
            more: vec![Node::of("3"), Node::of("04")],
            ..Node::of("2")
        })),
        ..Node::of("1")
    };
    let pairs = [
        ("value", "1"),
        ("next/value", "2"),
        ("next/more/0/value", "3"),
        ("next/more/1/value", "04"),
    ];
    let json =
        json!({"value": "1", "next": {"value": "2", "more": [{"value": "3"}, {"value": "04"}]}});
    check(&pairs, &json.to_string(), &node);
    let pairs = pairs.map(|(pointer, text)| (format!("x/{pointer}"), text));
    let pairs: Vec<(&str, &str)> = pairs
        .iter()
        .map(|(pointer, text)| (&**pointer, *text))
        .collect();
    value_at(&pairs, &json, node);
}

#[test]
fn flattened_fields() {
    let page = |limit, after: Option<&str>| Page {
        limit,
        after: after.map(str::to_owned),
        sign: '5',
    };
    let flat = Flat {
        id: "1".to_owned(),
        page: page(5, Some("5")),
        shape: None,
    };
    check(
        &[("id", "1"), ("limit", "5"), ("after", "5"), ("sign", "5")],
        r#"{"id": "1", "limit": 5, "after": "5", "sign": "5"}"#,
        &flat,
    );
    let flat = Flat {
        page: page(0, None),
        shape: Some(Internal::Label { name: 3 }),
        ..flat
    };
    check(
        &[
            ("sign", "5"),
            ("id", "1"),
            ("after", "null"),
            ("kind", "label"),
            ("name", "3"),
        ],
        r#"{"id": "1", "after": null, "sign": "5", "kind": "label", "name": 3}"#,
        &flat,
    );
    let rest = BTreeMap::from([("a".to_owned(), 1), ("b".to_owned(), -2)]);
    check(
        &[("a", "1"), ("id", "07"), ("b", "-2")],
        r#"{"a": 1, "id": 7, "b": -2}"#,
        &Rest { id: 7, rest },
    );
}

/// A field with a deserializer of its own, and a schema that defines its format.
#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
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

#[derive(Debug, PartialEq, Deserialize, JsonSchema)]
struct WithFunction {
    #[serde(deserialize_with = "in_halves")]
    #[schemars(with = "f64")]
    halves: u8,
}

fn in_halves<'de, D: serde::Deserializer<'de>>(deserializer: D) -> Result<u8, D::Error> {
    let number = f64::deserialize(deserializer)?;
    let halves = (number * 2.0).to_string();
    halves.parse().map_err(serde::de::Error::custom)
}

#[test]
fn types_with_their_own_deserializer() {
    value("04", &json!("04"), Even(4));
    check(&[("halves", "2.5")], "2.5", &WithFunction { halves: 5 });
}
