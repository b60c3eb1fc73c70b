//! Random schemas: one keyword changed anywhere changes the list of tools.
//!
//! Schemas are generated without redundant keywords, such as `minItems` beside an unrestricted `contains` or a type
//! beside an `enum` of that type, so that every change matters.

use plaincall_syntax::Dialect;
use proptest::prelude::*;
use proptest::sample::{Index, select, subsequence};
use serde_json::{Map, Value, json};

use crate::prompt::{listed, tool_of};

const TYPES: [&str; 7] = [
    "string", "number", "integer", "boolean", "array", "object", "null",
];
/// Schemas that others may refer to.
const DEFINITIONS: [&str; 3] = ["One", "two", "the third"];

fn types() -> impl Strategy<Value = Value> {
    subsequence(TYPES.to_vec(), 1..=3).prop_map(|names| match names.as_slice() {
        [only] => json!(only),
        names => json!(names),
    })
}

fn number() -> impl Strategy<Value = Value> {
    select(vec![json!(0), json!(1), json!(2.5), json!(-7), json!(1e30)])
}

fn count() -> impl Strategy<Value = Value> {
    (0_u32..4).prop_map(Value::from)
}

fn text() -> impl Strategy<Value = Value> {
    let texts = [
        "a",
        "b",
        "a | b",
        "date",
        "date-time",
        "",
        "a/b",
        "\"",
        "\n",
        "\u{2028}",
        "a, b",
        "x // y",
        "})] & {",
        "null",
        "1",
        "only these",
        "string",
    ];
    select(texts.to_vec()).prop_map(Value::from)
}

/// A description; two different ones are shown differently.
fn words() -> impl Strategy<Value = Value> {
    select(vec![
        "A text.",
        "Another // text.",
        "path: string",
        "(\"x\")",
    ])
    .prop_map(Value::from)
}

fn constant() -> impl Strategy<Value = Value> {
    let constants = vec![
        json!(true),
        json!([]),
        json!({}),
        json!([1]),
        json!({"a": "b"}),
    ];
    prop_oneof![2 => text(), 1 => number(), 1 => select(constants)]
}

fn keyword(schema: BoxedStrategy<Value>) -> impl Strategy<Value = (String, Value)> {
    fn all<S: Strategy<Value = Value> + Clone + 'static>(
        names: &[&'static str],
        value: S,
    ) -> BoxedStrategy<(String, Value)> {
        (select(names.to_vec()), value)
            .prop_map(|(name, value)| (name.to_owned(), value))
            .boxed()
    }
    let some = prop::collection::vec(schema.clone(), 2..4)
        .prop_map(Value::from)
        .boxed();
    let members = prop::collection::vec((text(), schema.clone()), 1..3)
        .prop_map(|members| {
            let spelled = |name: Value| name.as_str().unwrap_or_default().to_owned();
            let members = members.into_iter();
            Value::Object(
                members
                    .map(|(name, value)| (spelled(name), value))
                    .collect(),
            )
        })
        .boxed();
    let names = subsequence(vec!["a", "b", "1"], 1..3)
        .prop_map(|names| json!(names))
        .boxed();
    let or_false = prop_oneof![4 => schema.clone(), 1 => Just(json!(false))].boxed();
    prop_oneof![
        3 => all(&["properties"], members.clone()),
        2 => all(&["required"], names.clone()),
        2 => all(&["additionalProperties", "items", "additionalItems"], or_false),
        2 => all(&["items", "contains", "not", "if", "then", "else", "propertyNames", "unevaluatedProperties"], schema),
        2 => all(&["anyOf", "oneOf", "allOf", "prefixItems"], some),
        1 => all(&["patternProperties", "dependentSchemas"], members),
        1 => all(&["dependentRequired"], names.prop_map(|names| json!({"a": names})).boxed()),
        2 => all(&["minLength", "maxLength", "minItems", "maxItems", "minProperties", "maxProperties", "minContains"], count().boxed()),
        2 => all(&["minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "multipleOf"], number().boxed()),
        2 => all(&["pattern", "format", "contentEncoding", "another"], text().boxed()),
        1 => all(&["uniqueItems", "nullable", "deprecated"], Just(json!(true)).boxed()),
        1 => all(&["const", "default"], constant().boxed()),
        1 => all(&["description"], words().boxed()),
        1 => all(&["enum", "examples"], prop::collection::vec(constant(), 1..8).prop_map(Value::from).boxed()),
        1 => all(&["$ref"], select(DEFINITIONS.to_vec()).prop_map(|name| json!(format!("#/$defs/{name}"))).boxed()),
    ]
}

fn schema() -> BoxedStrategy<Value> {
    let leaf = types().prop_map(|kind| json!({"type": kind}));
    leaf.prop_recursive(4, 24, 4, |inner| {
        let keywords = prop::collection::vec(keyword(inner.boxed()), 0..4);
        (prop::option::weighted(0.8, types()), keywords).prop_map(|(kind, keywords)| {
            let mut schema = Map::from_iter(keywords);
            if schema.is_empty() || kind.is_some() {
                schema.insert("type".to_owned(), kind.unwrap_or_else(|| json!("string")));
            }
            Value::Object(schema)
        })
    })
    .boxed()
}

/// A complete schema. Definitions are used more than once, so that they keep their names.
fn whole() -> impl Strategy<Value = Value> {
    let definitions = prop::collection::vec(schema(), DEFINITIONS.len());
    (schema(), definitions).prop_map(|(schema, definitions)| {
        let definitions: Map<String, Value> = DEFINITIONS
            .iter()
            .map(|name| (*name).to_owned())
            .zip(definitions)
            .collect();
        let mut properties = Map::from_iter([("p".to_owned(), schema)]);
        for (at, name) in DEFINITIONS
            .iter()
            .cycle()
            .take(2 * DEFINITIONS.len())
            .enumerate()
        {
            properties.insert(format!("p{at}"), json!({"$ref": format!("#/$defs/{name}")}));
        }
        json!({"type": "object", "properties": properties, "$defs": definitions})
    })
}

/// Collects pointers to all schemas in a schema, including itself.
fn places(schema: &Value, at: &str, found: &mut Vec<String>) {
    let Some(keywords) = schema.as_object() else {
        return;
    };
    found.push(at.to_owned());
    for (name, value) in keywords {
        let at = format!("{at}/{name}");
        match (name.as_str(), value) {
            ("const" | "default" | "enum" | "examples" | "dependentRequired", _) => {}
            (
                "properties" | "patternProperties" | "dependentSchemas" | "$defs",
                Value::Object(named),
            ) => {
                for (name, value) in named {
                    let name = name.replace('~', "~0").replace('/', "~1");
                    places(value, &format!("{at}/{name}"), found);
                }
            }
            (_, Value::Array(list)) => {
                for (index, value) in list.iter().enumerate() {
                    places(value, &format!("{at}/{index}"), found);
                }
            }
            (_, value) => places(value, &at, found),
        }
    }
}

/// Returns `true` if setting or removing the keyword changes the constraints.
fn is_change(schema: &Map<String, Value>, name: &str, value: Option<&Value>) -> bool {
    if schema.get(name) == value {
        return false;
    }
    // The values of `enum` and the parts of objects and lists imply a type too.
    name != "type"
        || (value.is_some()
            && schema.contains_key("type")
            && !schema.contains_key("enum")
            && !schema.contains_key("const"))
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 256, max_global_rejects: 100_000, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn one_keyword_changed_changes_the_list(
        before in whole(),
        donor in prop_oneof![3 => keyword(schema()).boxed(), 1 => types().prop_map(|kind| ("type".to_owned(), kind)).boxed()],
        takes_away in any::<bool>(),
        place in any::<Index>(),
        which in any::<Index>(),
    ) {
        let mut found = Vec::new();
        places(&before, "", &mut found);
        // The root names the definitions of the others; it is not changed.
        found.retain(|place| !place.is_empty());
        let place = place.get(&found);
        let mut after = before.clone();
        let keywords = after.pointer_mut(place).and_then(Value::as_object_mut).expect("a schema");
        let (name, value) = if takes_away {
            let names: Vec<String> = keywords.keys().cloned().collect();
            (which.get(&names).clone(), None)
        } else {
            (donor.0, Some(donor.1))
        };
        prop_assume!(is_change(keywords, &name, value.as_ref()));
        match value {
            None => drop(keywords.remove(&name)),
            Some(value) => drop(keywords.insert(name.clone(), value)),
        }
        let tools = tool_of(&before).zip(tool_of(&after));
        prop_assume!(tools.is_some());
        let (before_tool, after_tool) = tools.expect("two tools");
        for dialect in [Dialect::block(), Dialect::emoji()] {
            let texts = [listed([&before_tool], &dialect), listed([&after_tool], &dialect)];
            prop_assert!(texts[0] != texts[1], "{name} at {place}\n{before}\n{after}\n{}", texts[0]);
        }
    }
}
