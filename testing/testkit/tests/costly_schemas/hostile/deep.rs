//! Schemas that are deep, list values, or limit numbers and texts.

use serde_json::{Value, json};

use super::{Hostile, chain, deep, large, members, nested, of, repeated, short, to, usual, with};

pub(super) const TABLE: &[Hostile] = table![
    // Deep.
    ("nested properties", [40, 120], usual, |n| nested(
        n,
        short(),
        |inner| json!({"type": "object", "properties": {"a": inner}, "required": ["a"]})
    )),
    ("nested items", [60, 120], usual, |n| nested(
        n,
        short(),
        |inner| json!({"type": "array", "items": inner})
    )),
    ("nested anyOf", [60, 120], usual, |n| nested(
        n,
        short(),
        |inner| json!({"anyOf": [inner, {"type": "integer"}]})
    )),
    (
        "nested anyOf of large values",
        [60, 120],
        large,
        |n| nested(
            n,
            short(),
            |inner| json!({"anyOf": [{"required": ["z"]}, inner]})
        )
    ),
    ("nested oneOf and allOf", [60, 120], large, |n| nested(
        n,
        short(),
        |inner| json!({"oneOf": [{"allOf": [inner]}, {"maxLength": 2}]})
    )),
    ("nested not", [60, 120], large, |n| nested(
        n,
        short(),
        |inner| json!({"not": inner})
    )),
    ("nested if", [60, 120], large, |n| nested(
        n,
        short(),
        |inner| json!({"if": inner, "then": {"minLength": 3}})
    )),
    ("nested unevaluatedProperties", [20, 60], large, |n| nested(
        n,
        json!({"properties": {"a": {}}}),
        |inner| json!({"allOf": [inner], "unevaluatedProperties": false})
    )),
    ("a long chain of references", [1000, 10_000], usual, |n| {
        chain(n, short(), |_, d| d)
    }),
    ("a long chain of items", [1000, 10_000], usual, |n| chain(
        n,
        short(),
        |_, d| json!({"type": "array", "items": d})
    )),
    ("a long chain of properties", [1000, 10_000], usual, |n| {
        chain(
            n,
            short(),
            |_, d| json!({"type": "object", "properties": {"a": d}}),
        )
    }),
    (
        "a pointer through the schema itself",
        [100, 2000],
        usual,
        |n| of(json!({"$ref": format!("#{}", "/properties/x".repeat(n))}))
    ),
    ("references to references", [30, 300], usual, |n| {
        let list = |below: Value| json!({"anyOf": [{"type": "array", "items": below}, below]});
        chain(n, json!({"$ref": "#/properties/x"}), |_, d| list(d))
    }),
    ("recursion through anyOf", [16, 200], usual, |n| {
        of(
            json!({"anyOf": repeated(n, |at| json!({"type": "object", "properties": {format!("k{}", at % 7): {"$ref": "#/properties/x"}}}))}),
        )
    }),
    ("recursion through allOf", [16, 200], usual, |n| of(
        json!({"allOf": repeated(n, |_| json!({"properties": {"a": {"$ref": "#/properties/x"}}}))})
    )),
    // Constants and enumerations.
    ("a long const", [200_000, 2_000_000], large, |n| of(
        json!({"const": "a".repeat(n)})
    )),
    (
        "a long const of escapes",
        [100_000, 1_000_000],
        large,
        |n| of(json!({"const": "\u{1}f".repeat(n)}))
    ),
    ("a deep const", [60, 120], usual, |n| of(
        json!({"const": deep(n, json!(1), |inner| json!({"a": [inner]}))})
    )),
    ("a wide const", [5000, 50_000], large, |n| of(
        json!({"const": members(n, |at| json!(at))})
    )),
    ("a long list as const", [5000, 100_000], large, |n| of(
        json!({"const": repeated(n, |at| json!(at))})
    )),
    ("a large enum", [5000, 100_000], large, |n| of(
        json!({"enum": repeated(n, |at| json!(format!("k{at}")))})
    )),
    ("an enum of objects", [500, 10_000], large, |n| of(
        json!({"enum": repeated(n, |at| json!({"a": [at, {"b": at}]}))})
    )),
    ("an enum in items", [1000, 20_000], large, |n| of(
        json!({"items": {"enum": repeated(n, |at| json!({"a": at}))}})
    )),
    ("an enum of long texts", [50, 500], large, |n| of(
        json!({"enum": repeated(n, |at| json!(format!("{at}{}", "abc ".repeat(1000))))})
    )),
    ("enums in allOf", [100, 1000], usual, |n| of(
        json!({"allOf": repeated(n, |_| json!({"enum": repeated(100, |at| json!(at))}))})
    )),
    ("consts in unions", [1000, 10_000], usual, |n| of(
        json!({"anyOf": repeated(n, |at| json!({"const": at}))})
    )),
    // Numbers, lengths and patterns.
    ("large counts", [1000, 1_000_000], usual, |n| of(
        json!({"type": "array", "minItems": n, "maxItems": n + 1, "items": {"type": "string", "minLength": n, "maxLength": 2 * n}})
    )),
    ("many lengths", [100, 1000], usual, |n| {
        of(
            json!({"type": "object", "properties": members(n, |at| json!({"type": "string", "minLength": at + 10, "maxLength": at + 50}))}),
        )
    }),
    ("many integers with bounds", [300, 3000], usual, |n| {
        of(
            json!({"type": "object", "properties": members(n, |at| json!({"type": "integer", "minimum": -123_456_789_012_i64 - i64::try_from(at).unwrap_or(0), "maximum": 9_876_543_210_i64}))}),
        )
    }),
    ("many different patterns", [50, 1000], large, |n| {
        of(
            json!({"type": "object", "properties": members(n, |at| json!({"type": "string", "pattern": format!("^(a|b{at})*c{{1,{}}}$", at % 50 + 1)}))}),
        )
    }),
    ("a pattern with many states", [12, 300], large, |n| of(
        json!({"type": "string", "pattern": format!("(a|b)*a(a|b){{{n}}}$")})
    )),
    (
        "a pattern that repeats a repetition",
        [20, 900],
        large,
        |n| of(json!({"type": "string", "pattern": format!("^((a{{0,{n}}}){{0,{n}}}){{0,{n}}}$")}))
    ),
    ("a pattern that is compiled slowly", [20, 900], large, |n| {
        of(
            json!({"type": "string", "pattern": format!("(?i)(\\w{{0,{n}}}\\p{{L}}{{0,{n}}}){{0,{n}}}")}),
        )
    }),
    ("a long pattern", [2000, 200_000], large, |n| of(
        json!({"type": "string", "pattern": "[a-z]?".repeat(n)})
    )),
    ("a pattern of alternatives", [2000, 100_000], large, |n| of(
        json!({"type": "string", "pattern": (0..n).map(|at| format!("k{at}|")).collect::<String>()})
    )),
    ("a pattern with back-references", [20, 200], large, |n| of(
        json!({"type": "string", "pattern": format!("^(a*)(a*)(a*){}x$", "\\1\\2".repeat(n))})
    )),
    ("a pattern with look-around", [20, 2000], large, |n| of(
        json!({"type": "string", "pattern": format!("^{}(?=(a+)+$)(a|aa)+x$", "(?=a*b?)".repeat(n))})
    )),
    ("many patterns with look-around", [50, 1000], large, |n| of(
        json!({"allOf": repeated(n, |at| json!({"pattern": format!("(?=(a|aa)+{at})x")}))})
    )),
    (
        "look-around in items",
        [1, 10],
        |_| vec![json!(repeated(1000, |_| json!("a".repeat(30))))],
        |n| {
            of(
                json!({"items": {"allOf": repeated(n, |at| json!({"pattern": format!("^(?=(a|aa|b)+c{at})x")}))}}),
            )
        }
    ),
    ("nested groups in a pattern", [40, 200], large, |n| of(
        json!({"pattern": format!("{}a{}", "(".repeat(n), "*)*".repeat(n))})
    )),
    ("multipleOf in many schemas", [500, 5000], usual, |n| of(
        json!({"allOf": repeated(n, |at| json!({"multipleOf": 1.0 / (at + 3) as f64}))})
    )),
    ("long names", [100, 2000], usual, |n| {
        let properties = (0..n).map(|at| {
            (
                format!("{}{at}", "k".repeat(1000)),
                json!({"type": "string"}),
            )
        });
        of(json!({"type": "object", "properties": Value::Object(properties.collect())}))
    }),
    ("long names in depth", [20, 100], usual, |n| {
        let name = "k".repeat(1000);
        nested(
            n,
            short(),
            |inner| json!({"type": "object", "properties": {name.as_str(): inner}, "required": [name]}),
        )
    }),
    ("many anchors", [300, 3000], usual, |n| {
        let definitions = (0..n).map(|at| (format!("d{at}"), json!({"$anchor": format!("a{at}"), "anyOf": [{"$ref": format!("#a{}", (at + 1) % n)}, short()]})));
        with(json!({"$ref": "#a0"}), definitions.collect())
    }),
    ("many references to anchors", [300, 3000], usual, |n| {
        let definitions = (0..n).map(|at| {
            (
                format!("d{at}"),
                json!({"$anchor": format!("a{at}"), "type": "string"}),
            )
        });
        with(
            json!({"anyOf": repeated(n, |at| json!({"$ref": format!("#a{at}")}))}),
            definitions.collect(),
        )
    }),
    ("definitions and references", [300, 3000], usual, |n| {
        let definitions = (0..n).map(|at| (format!("d{at}"), json!({"type": "object", "properties": {"a": {"type": "string"}, "b": to(format!("d{}", (at * 7 + 1) % n))}})));
        with(
            json!({"type": "object", "properties": members(n, |at| to(format!("d{at}")))}),
            definitions.collect(),
        )
    }),
    ("long descriptions and examples", [100, 2000], usual, |n| {
        of(
            json!({"type": "object", "properties": members(n, |at| json!({"type": "string", "description": "d".repeat(1000), "examples": [at, {"a": at}], "default": at}))}),
        )
    }),
    ("many examples of calls", [100, 2000], usual, |n| {
        let mut parameters = of(json!({"type": "string"}));
        parameters["examples"] = json!(repeated(n, |at| json!({"x": format!("value {at}")})));
        parameters
    }),
    ("many nullable unions", [100, 2000], usual, |n| of(
        json!({"allOf": repeated(n, |_| json!({"nullable": true, "type": "string"}))})
    )),
];
