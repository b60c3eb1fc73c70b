//! A table of hostile schemas: each keyword that nests, repeats or compares, alone and in turn, with values.

#![allow(
    clippy::cast_precision_loss,
    clippy::format_collect,
    clippy::needless_pass_by_value,
    reason = "a table is shortest so"
)]

use serde_json::{Map, Value, json};

/// A kind of schema that grows with a number.
pub(crate) struct Hostile {
    pub(crate) name: &'static str,
    /// The parameters of a tool with one parameter, `x`, whose schema grows with the number.
    pub(crate) parameters: fn(usize) -> Value,
    /// Values of the parameter, valid and invalid.
    pub(crate) values: fn(usize) -> Vec<Value>,
    /// The numbers to try: one that is already hostile, and one that fills a tool definition.
    pub(crate) sizes: [usize; 2],
}

/// The definition of a tool `t` with this schema of its parameters, as JSON.
pub(crate) fn definition(parameters: &Value) -> String {
    json!({"name": "t", "description": "A tool.", "parameters": parameters}).to_string()
}

fn of(x: Value) -> Value {
    json!({"type": "object", "properties": {"x": x}, "required": ["x"]})
}

fn with(x: Value, definitions: Map<String, Value>) -> Value {
    let mut parameters = of(x);
    parameters["$defs"] = definitions.into();
    parameters
}

fn to(name: impl std::fmt::Display) -> Value {
    json!({"$ref": format!("#/$defs/{name}")})
}

/// Definitions `d0` to `dn`, each made of a reference to the one before.
fn chain(n: usize, first: Value, next: impl Fn(usize, Value) -> Value) -> Value {
    let mut definitions = Map::from_iter([("d0".to_owned(), first)]);
    for level in 1..=n {
        let below = to(format!("d{}", level - 1));
        definitions.insert(format!("d{level}"), next(level, below));
    }
    with(to(format!("d{n}")), definitions)
}

/// Definitions `d0` to `dn`, each with references to all of them.
fn mutual(n: usize, each: impl Fn(&[Value]) -> Value) -> Value {
    let all: Vec<Value> = (0..n).map(|index| to(format!("d{index}"))).collect();
    let definitions = (0..n).map(|index| (format!("d{index}"), each(&all)));
    with(to("d0"), definitions.collect())
}

/// `first` inside `n` schemas.
fn nested(n: usize, first: Value, next: impl Fn(Value) -> Value) -> Value {
    of((0..n).fold(first, |inner, _| next(inner)))
}

fn repeated(n: usize, each: impl Fn(usize) -> Value) -> Vec<Value> {
    (0..n).map(each).collect()
}

fn members(n: usize, each: impl Fn(usize) -> Value) -> Value {
    let members = (0..n).map(|index| (format!("k{index}"), each(index)));
    Value::Object(members.collect())
}

fn deep(n: usize, first: Value, next: impl Fn(Value) -> Value) -> Value {
    (0..n).fold(first, |inner, _| next(inner))
}

fn short() -> Value {
    json!({"type": "string", "maxLength": 3})
}

fn usual(_: usize) -> Vec<Value> {
    let deep_list = deep(60, json!(1), |inner| json!([inner]));
    let deep_object = deep(9, json!(1), |inner| json!({"a": inner, "b": inner}));
    vec![
        json!("ab"),
        json!("long text"),
        json!(1),
        json!([1, "ab", {"a": 1}]),
        json!({"a": 1, "b": [1]}),
        json!({"a": {"a": {"a": "long text"}}, "b": {"b": {"a": 1}}}),
        deep_list,
        deep_object,
    ]
}

/// A list of a thousand items, an object of a thousand members, and a text of 64 kB.
fn large(_: usize) -> Vec<Value> {
    vec![
        json!(repeated(1000, |index| json!(index))),
        json!(repeated(1000, |index| json!({"a": index, "k1": "text"}))),
        members(1000, |_| json!("long text")),
        members(1000, |index| json!(index)),
        json!("a".repeat(1 << 16)),
        json!(repeated(20, |_| json!("a".repeat(1 << 12)))),
    ]
}

macro_rules! table {
    ($(($name:literal, $sizes:expr, $values:expr, $parameters:expr)),* $(,)?) => {
        &[$(Hostile { name: $name, parameters: $parameters, values: $values, sizes: $sizes }),*]
    };
}

mod deep;

/// Returns all kinds.
pub(crate) fn table() -> impl Iterator<Item = &'static Hostile> {
    SHALLOW.iter().chain(deep::TABLE)
}

const SHALLOW: &[Hostile] = table![
    // References that double.
    ("anyOf of two references", [40, 1000], usual, |n| chain(
        n,
        short(),
        |_, d| json!({"anyOf": [d, d]})
    )),
    ("oneOf of two references", [40, 1000], usual, |n| chain(
        n,
        short(),
        |_, d| json!({"oneOf": [d, d]})
    )),
    ("allOf of two references", [40, 1000], usual, |n| chain(
        n,
        short(),
        |_, d| json!({"allOf": [d, d]})
    )),
    ("not of anyOf", [40, 500], usual, |n| chain(
        n,
        short(),
        |_, d| json!({"not": {"anyOf": [d, d]}})
    )),
    ("if, then and else", [40, 500], usual, |n| chain(
        n,
        short(),
        |_, d| json!({"if": d, "then": d, "else": d})
    )),
    ("anyOf and allOf in turn", [40, 500], usual, |n| {
        chain(n, short(), |at, d| {
            if at % 2 == 0 {
                json!({"anyOf": [d, d]})
            } else {
                json!({"allOf": [d, d]})
            }
        })
    }),
    ("anyOf and allOf in one", [40, 500], usual, |n| chain(
        n,
        short(),
        |_, d| json!({"anyOf": [d, d], "allOf": [d, d]})
    )),
    (
        "references like Fibonacci's numbers",
        [60, 1000],
        usual,
        |n| {
            chain(
                n,
                short(),
                |at, d| json!({"anyOf": [d, to(format!("d{}", at.saturating_sub(2)))]}),
            )
        }
    ),
    (
        "properties like Fibonacci's numbers",
        [60, 1000],
        usual,
        |n| {
            chain(
                n,
                short(),
                |at, d| json!({"type": "object", "properties": {"a": d, "b": to(format!("d{}", at.saturating_sub(2)))}}),
            )
        }
    ),
    ("required properties that double", [40, 500], usual, |n| {
        chain(
            n,
            short(),
            |_, d| json!({"type": "object", "properties": {"a": d, "b": d}, "required": ["a", "b"]}),
        )
    }),
    ("items in anyOf that double", [40, 500], usual, |n| {
        chain(
            n,
            short(),
            |_, d| json!({"anyOf": [{"type": "array", "items": d}, {"type": "object", "additionalProperties": d}, d]}),
        )
    }),
    ("closed objects that double", [40, 500], usual, |n| {
        chain(
            n,
            json!({"required": ["a"]}),
            |_, d| json!({"allOf": [d], "unevaluatedProperties": {"type": "string"}}),
        )
    }),
    ("unevaluatedProperties of unions", [40, 500], usual, |n| {
        chain(
            n,
            json!({"properties": {"a": {}}}),
            |_, d| json!({"anyOf": [d, d], "unevaluatedProperties": false}),
        )
    }),
    ("unevaluatedItems of unions", [40, 500], usual, |n| {
        chain(
            n,
            json!({"prefixItems": [{}]}),
            |_, d| json!({"anyOf": [d, d], "unevaluatedItems": false}),
        )
    }),
    ("unevaluatedItems nested", [40, 500], usual, |n| {
        chain(
            n,
            json!({"prefixItems": [{}]}),
            |_, d| json!({"allOf": [d], "unevaluatedItems": {"type": "string"}}),
        )
    }),
    ("dependentSchemas that double", [40, 500], usual, |n| {
        chain(
            n,
            short(),
            |_, d| json!({"dependentSchemas": {"a": d, "b": d}}),
        )
    }),
    ("dependencies that double", [40, 500], usual, |n| {
        chain(n, short(), |_, d| json!({"dependencies": {"a": d, "b": d}}))
    }),
    ("contains that doubles", [40, 500], usual, |n| {
        chain(
            n,
            short(),
            |_, d| json!({"anyOf": [{"contains": d}, {"contains": d}, d]}),
        )
    }),
    ("propertyNames that double", [40, 500], usual, |n| {
        chain(
            n,
            short(),
            |_, d| json!({"propertyNames": {"allOf": [d, d]}, "allOf": [d]}),
        )
    }),
    ("prefixItems that double", [40, 500], usual, |n| chain(
        n,
        short(),
        |_, d| json!({"prefixItems": [d, d], "items": d})
    )),
    ("patternProperties that double", [40, 500], usual, |n| {
        chain(
            n,
            short(),
            |_, d| json!({"patternProperties": {"a": d, "^a": d, "a$": d}}),
        )
    }),
    ("dynamic references that double", [40, 500], usual, |n| {
        chain(
            n,
            short(),
            |_, d| json!({"anyOf": [{"$dynamicRef": d["$ref"]}, {"$dynamicRef": d["$ref"]}]}),
        )
    }),
    ("ids along two routes", [24, 300], usual, |n| {
        let mut definitions = Map::new();
        for level in 0..=n {
            for side in ["l", "r"] {
                let below = |side: &str| json!({"$ref": format!("https://a.example/{side}{}", level.wrapping_sub(1))});
                let schema = if level == 0 {
                    short()
                } else {
                    json!({"anyOf": [below("l"), below("r")]})
                };
                let mut schema = schema;
                schema["$id"] = json!(format!("https://a.example/{side}{level}"));
                definitions.insert(format!("{side}{level}"), schema);
            }
        }
        with(to(format!("l{n}")), definitions)
    }),
    (
        "properties with ids along two routes",
        [24, 300],
        usual,
        |n| {
            let mut definitions = Map::new();
            for level in 0..=n {
                for side in ["l", "r"] {
                    let below = |side: &str| json!({"$ref": format!("https://a.example/{side}{}", level.wrapping_sub(1))});
                    let schema = if level == 0 {
                        short()
                    } else {
                        json!({"properties": {"a": below("l"), "b": below("r")}})
                    };
                    let mut schema = schema;
                    schema["$id"] = json!(format!("https://a.example/{side}{level}"));
                    definitions.insert(format!("{side}{level}"), schema);
                }
            }
            with(to(format!("l{n}")), definitions)
        }
    ),
    // Mutual references.
    ("mutual properties", [16, 100], usual, |n| {
        mutual(
            n,
            |all| json!({"type": "object", "properties": members(all.len(), |at| all[at].clone())}),
        )
    }),
    ("mutual anyOf", [16, 100], usual, |n| mutual(
        n,
        |all| json!({"anyOf": all})
    )),
    ("mutual anyOf of objects", [16, 100], usual, |n| {
        mutual(n, |all| {
            let objects = all
                .iter()
                .map(|one| json!({"type": "object", "properties": {"a": one}, "required": ["a"]}));
            json!({"anyOf": objects.collect::<Vec<_>>()})
        })
    }),
    ("mutual anyOf of lists", [16, 100], usual, |n| {
        mutual(n, |all| {
            let lists = all.iter().map(|one| json!({"type": "array", "items": one}));
            json!({"anyOf": lists.collect::<Vec<_>>()})
        })
    }),
    ("mutual items of anyOf", [16, 100], usual, |n| mutual(
        n,
        |all| json!({"type": "array", "items": {"anyOf": all}})
    )),
    ("mutual allOf of properties", [16, 100], usual, |n| {
        mutual(
            n,
            |all| json!({"allOf": repeated(all.len(), |at| json!({"properties": {"a": all[at], "b": all[at]}}))}),
        )
    }),
    ("mutual unevaluatedProperties", [8, 60], usual, |n| {
        mutual(
            n,
            |all| json!({"anyOf": all, "properties": {"a": {"anyOf": all}}, "unevaluatedProperties": false}),
        )
    }),
    // Wide.
    ("allOf of many lengths", [2000, 20_000], usual, |n| of(
        json!({"type": "string", "allOf": repeated(n, |at| json!({"minLength": at % 3}))})
    )),
    ("anyOf of many lengths", [2000, 20_000], usual, |n| of(
        json!({"anyOf": repeated(n, |at| json!({"type": "string", "minLength": 100 + at}))})
    )),
    ("anyOf of many objects", [500, 5000], usual, |n| {
        of(
            json!({"anyOf": repeated(n, |at| json!({"type": "object", "properties": {"a": {"type": "string", "minLength": at}, "b": {"type": "integer"}}, "required": ["a", "b", "c"]}))}),
        )
    }),
    (
        "anyOf of many objects and large values",
        [500, 5000],
        large,
        |n| {
            of(
                json!({"anyOf": repeated(n, |at| json!({"type": "object", "properties": {"k1": {"type": "integer", "minimum": at}}, "required": ["z"]}))}),
            )
        }
    ),
    ("oneOf of many constants", [500, 5000], usual, |n| {
        of(
            json!({"oneOf": repeated(n, |at| json!({"properties": {"a": {"const": format!("k{at}")}}, "required": ["a"]}))}),
        )
    }),
    ("allOf of many anyOf", [100, 2000], usual, |n| of(
        json!({"allOf": repeated(n, |_| json!({"anyOf": [{"type": "string"}, {"type": "integer"}, {"minLength": 5}]}))})
    )),
    ("allOf of many objects", [500, 5000], usual, |n| {
        of(
            json!({"allOf": repeated(n, |at| json!({"type": "object", "properties": {format!("k{at}"): {"type": "string"}}}))}),
        )
    }),
    (
        "allOf of anyOf with two members each",
        [12, 200],
        usual,
        |n| {
            of(
                json!({"allOf": repeated(n, |at| json!({"anyOf": [{"required": [format!("a{at}")]}, {"required": [format!("b{at}")]}]}))}),
            )
        }
    ),
    (
        "allOf of references to one object",
        [500, 5000],
        usual,
        |n| {
            let definitions = Map::from_iter([(
                "d".to_owned(),
                json!({"type": "object", "properties": {"a": {"type": "string"}}}),
            )]);
            with(json!({"allOf": repeated(n, |_| to("d"))}), definitions)
        }
    ),
    ("many properties", [1000, 20_000], large, |n| of(
        json!({"type": "object", "properties": members(n, |_| json!({"type": "integer", "minimum": 0}))})
    )),
    ("many required properties", [1000, 20_000], large, |n| {
        of(
            json!({"type": "object", "properties": members(n, |_| json!({"type": "string"})), "required": repeated(n, |at| json!(format!("k{at}")))}),
        )
    }),
    ("many required names", [1000, 20_000], large, |n| of(
        json!({"required": repeated(n, |at| json!(format!("z{at}")))})
    )),
    (
        "properties and patternProperties",
        [300, 3000],
        large,
        |n| {
            of(
                json!({"properties": members(n, |_| json!({"type": "string"})), "patternProperties": members(n, |_| json!({"type": "string"}))}),
            )
        }
    ),
    ("patternProperties in allOf", [100, 1000], large, |n| {
        of(
            json!({"allOf": repeated(n, |at| json!({"patternProperties": {format!("k.*{at}"): {"type": "string", "minLength": 100}}}))}),
        )
    }),
    ("unknown patternProperties", [100, 1000], large, |n| {
        let patterns = (0..n).map(|at| (format!("(?=k)(?<!x){at}"), json!({"type": "string"})));
        of(json!({"patternProperties": Value::Object(patterns.collect())}))
    }),
    ("propertyNames of many unions", [100, 2000], large, |n| of(
        json!({"propertyNames": {"anyOf": repeated(n, |at| json!({"minLength": 100 + at}))}})
    )),
    ("many dependentSchemas", [300, 3000], large, |n| {
        of(
            json!({"dependentSchemas": members(n, |_| json!({"properties": members(3, |_| json!({"type": "boolean"}))}))}),
        )
    }),
    ("many dependentRequired", [300, 3000], large, |n| of(
        json!({"dependentRequired": members(n, |at| json!([format!("z{at}"), "k1"]))})
    )),
    ("contains of many unions", [100, 2000], large, |n| of(
        json!({"contains": {"anyOf": repeated(n, |at| json!({"const": format!("z{at}")}))}})
    )),
    ("many contains", [300, 3000], large, |n| of(
        json!({"allOf": repeated(n, |at| json!({"contains": {"const": 2000 + at}}))})
    )),
    ("many prefixItems", [1000, 20_000], large, |n| of(
        json!({"type": "array", "prefixItems": repeated(n, |_| json!({"type": "string"}))})
    )),
    ("many items of unions", [100, 2000], large, |n| of(
        json!({"items": {"anyOf": repeated(n, |at| json!({"type": "string", "minLength": 10_000 + at}))}})
    )),
    ("uniqueItems in many schemas", [100, 2000], large, |n| of(
        json!({"allOf": repeated(n, |_| json!({"uniqueItems": true}))})
    )),
    (
        "uniqueItems of many items",
        [1000, 20_000],
        |n| vec![
            json!(repeated(n, |at| json!({"a": [at]}))),
            json!(repeated(n, |at| json!([at as f64 + 0.5])))
        ],
        |_| { of(json!({"type": "array", "uniqueItems": true})) }
    ),
    (
        "unevaluated members of many schemas",
        [100, 1000],
        large,
        |n| {
            of(
                json!({"anyOf": repeated(n, |at| json!({"properties": {format!("k{at}"): {}}})), "unevaluatedProperties": false}),
            )
        }
    ),
    (
        "unevaluated items of many schemas",
        [100, 1000],
        large,
        |n| {
            of(
                json!({"anyOf": repeated(n, |at| json!({"prefixItems": [{"minimum": at}]})), "unevaluatedItems": false}),
            )
        }
    ),
    ("types in lists", [1000, 20_000], usual, |n| of(
        json!({"type": repeated(n, |_| json!("string"))})
    )),
    (
        "many formats",
        [300, 3000],
        |_| vec![
            json!("a@".repeat(1 << 14)),
            json!("a.".repeat(1 << 14)),
            json!("1:".repeat(1 << 14))
        ],
        |n| {
            let formats = [
                "email",
                "idn-email",
                "hostname",
                "uri",
                "ipv6",
                "date-time",
                "uri-template",
                "regex",
                "json-pointer",
                "uuid",
            ];
            let mut parameters = of(
                json!({"allOf": repeated(n, |at| json!({"format": formats[at % formats.len()]}))}),
            );
            parameters["$schema"] = json!("http://json-schema.org/draft-07/schema#");
            parameters
        }
    ),
];
