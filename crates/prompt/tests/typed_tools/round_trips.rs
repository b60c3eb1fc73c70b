//! Every value of a type round-trips: rendered by its schema, parsed by it, and deserialized.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use plaincall_prompt::render::spell_emoji;
use plaincall_tool::{ToolSpec, flatten};
use proptest::collection::{btree_map, vec};
use proptest::option::of;
use proptest::prelude::*;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::typed_tools::scene::{block, emoji, tool};

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "camelCase")]
struct Whole {
    plain_text: String,
    small: u8,
    large: u64,
    signed: i64,
    ratio: f64,
    flag: bool,
    sign: char,
    option: Option<String>,
    number: Option<i32>,
    list: Vec<String>,
    lists: Vec<Vec<i8>>,
    tuple: (bool, String),
    by_name: BTreeMap<String, i16>,
    by_number: BTreeMap<u16, String>,
    unit: Unit,
    shapes: Vec<Shape>,
    tagged: Tagged,
    either: Either,
    node: Option<Node>,
    #[serde(flatten)]
    flat: Flat,
}

#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Unit {
    Inch,
    #[serde(rename = "2")]
    Two,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
enum Shape {
    Point,
    Circle(f64),
    Label { text: String },
    Pair(u8, String),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(tag = "kind")]
enum Tagged {
    Number { value: i64 },
    Text { value: String },
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(untagged)]
enum Either {
    Number(i64),
    Named { name: String },
    Many(Vec<String>),
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Node {
    value: String,
    next: Option<Box<Node>>,
}

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize, JsonSchema)]
struct Flat {
    flat_text: String,
    flat_number: Option<u8>,
}

/// Texts that some parser reads as another type.
fn texts() -> impl Strategy<Value = String> {
    let words = [
        "", " ", "null", "true", "5", "007", "1.50", "[]", "{}", "[1]", "a\nb", "\n", "\"5\"",
        "$ref",
    ];
    prop_oneof![
        prop::sample::select(words.to_vec()).prop_map(str::to_owned),
        "[ -~]{0,6}"
    ]
}

/// A text other than `null`.
fn some_text() -> impl Strategy<Value = Option<String>> {
    of(texts().prop_filter("null", |text| text.trim_matches([' ', '\t']) != "null"))
}

fn numbers() -> impl Strategy<Value = f64> {
    prop_oneof![any::<i32>().prop_map(f64::from), -1e3..1e3_f64, Just(1e300)]
}

fn shapes() -> impl Strategy<Value = Shape> {
    prop_oneof![
        Just(Shape::Point),
        numbers().prop_map(Shape::Circle),
        texts().prop_map(|text| Shape::Label { text }),
        (any::<u8>(), texts()).prop_map(|(one, two)| Shape::Pair(one, two)),
    ]
}

fn nodes() -> impl Strategy<Value = Node> {
    vec(texts(), 1..4).prop_map(|texts| {
        let fold = |next: Option<Box<Node>>, value| Some(Box::new(Node { value, next }));
        let node = texts.into_iter().fold(None, fold);
        node.map_or_else(|| unreachable!("there is one"), |node| *node)
    })
}

fn wholes() -> impl Strategy<Value = Whole> {
    let scalars = (
        texts(),
        any::<u8>(),
        any::<u64>(),
        any::<i64>(),
        numbers(),
        any::<bool>(),
        any::<char>().prop_filter("of a line end", |sign| *sign != '\r'),
    );
    let lists = (
        some_text(),
        of(any::<i32>()),
        vec(texts(), 0..3),
        vec(vec(any::<i8>(), 0..3), 0..3),
        (any::<bool>(), texts()),
        btree_map("[a-z/~]{1,3}|[0-9]{1,2}", any::<i16>(), 0..3),
        btree_map(any::<u16>(), texts(), 0..3),
    );
    let enums = (
        prop::sample::select(&[Unit::Inch, Unit::Two][..]),
        vec(shapes(), 0..3),
        prop_oneof![
            any::<i64>().prop_map(|value| Tagged::Number { value }),
            texts().prop_map(|value| Tagged::Text { value }),
        ],
        prop_oneof![
            any::<i64>().prop_map(Either::Number),
            texts().prop_map(|name| Either::Named { name }),
            vec(texts(), 0..3).prop_map(Either::Many),
        ],
        of(nodes()),
        (texts(), of(any::<u8>())),
    );
    (scalars, lists, enums).prop_map(
        |(
            (plain_text, small, large, signed, ratio, flag, sign),
            (option, number, list, lists, tuple, by_name, by_number),
            (unit, shapes, tagged, either, node, (flat_text, flat_number)),
        )| Whole {
            plain_text,
            small,
            large,
            signed,
            ratio,
            flag,
            sign,
            option,
            number,
            list,
            lists,
            tuple,
            by_name,
            by_number,
            unit,
            shapes,
            tagged,
            either,
            node,
            flat: Flat {
                flat_text,
                flat_number,
            },
        },
    )
}

static TOOL: LazyLock<ToolSpec> = LazyLock::new(tool::<Whole>);

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_value_comes_back(whole in wholes()) {
        let tool = &*TOOL;
        let value = serde_json::to_value(&whole).expect("JSON");
        let object = value.as_object().expect("an object");
        let pairs = flatten(object, Some(tool)).expect("what its schema can write");
        let pairs: Vec<(&str, &str)> = pairs.iter().map(|(pointer, text)| (&**pointer, &**text)).collect();
        let arguments = block(tool, &pairs).expect("arguments that are right");
        prop_assert_eq!(arguments.to::<Whole>(), Ok(whole.clone()));
        prop_assert_eq!(&arguments.to_value(), &value);

        let written = spell_emoji(tool, &arguments).expect("one JSON object");
        let arguments = emoji(tool, &written.body).expect("arguments that are right");
        prop_assert_eq!(arguments.to::<Whole>(), Ok(whole.clone()));
    }
}
