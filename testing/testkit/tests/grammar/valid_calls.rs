//! The grammar accepts every valid call that `render_call` writes in declared order, and no broken one.

use plaincall_grammar::{Grammar, GrammarOptions, grammar};
use plaincall_prompt::render::{JsonCall, render_call};
use plaincall_reply::Document;
use plaincall_syntax::Dialect;
use plaincall_testkit::cases::cases;
use plaincall_tool::ToolSpec;
use serde_json::{Map, Value, json};

use super::engine::Engine;
use super::gbnf::Gbnf;
use plaincall_oracle::arbitrary_texts::Random;

/// Texts without markers and near misses.
const TEXTS: &[&str] = &[
    "",
    "a",
    "7",
    "null",
    "two\nlines\n",
    " blank ",
    "{\"a\": [1]}",
    "!! almost",
    "fn main() {\n    println!(\"\\\\\");\n}\n",
    "é🛠\t\r\nx",
    "\n\n\n",
];

/// A schema, and a valid value in declared order.
fn parameter(random: &mut Random, depth: usize) -> (Value, Value) {
    match random.below(if depth == 0 { 8 } else { 13 }) {
        0 | 1 => (json!({"type": "string"}), json!(random.pick(TEXTS))),
        2 => {
            let least = i64::try_from(random.below(2000)).unwrap() - 1000;
            let most = least + i64::try_from(random.below(500)).unwrap();
            let value = least
                + i64::try_from(random.below(usize::try_from(most - least + 1).unwrap())).unwrap();
            (
                json!({"type": "integer", "minimum": least, "maximum": most}),
                json!(value),
            )
        }
        3 => (
            json!({"type": "integer"}),
            json!(random.pick(&[0, -1, 42, 999_999_999_999_999_999_i64])),
        ),
        4 => (
            json!({"type": "number"}),
            json!(random.pick(&[0.5, -3.25, 17.0, 0.000_001])),
        ),
        5 => (
            json!({"type": ["boolean", "null"]}),
            random
                .pick(&[json!(true), json!(false), json!(null)])
                .clone(),
        ),
        6 => {
            let values = json!(["a", "b c", "0", 5, 2.5, null, true, "x\ny"]);
            (
                json!({"enum": values}),
                random.pick(values.as_array().unwrap()).clone(),
            )
        }
        7 => (
            json!({"anyOf": [{"type": "integer"}, {"type": "string"}]}),
            random.pick(&[json!(5), json!("five")]).clone(),
        ),
        8 | 9 => object(random, depth - 1, 4, true),
        10 => {
            let (items, first) = parameter(random, 0);
            let count = random.below(4);
            (
                json!({"type": "array", "items": items}),
                Value::Array(vec![first; count]),
            )
        }
        11 => {
            let (items, first) = object(random, 0, 3, true);
            let count = 1 + random.below(2);
            (
                json!({"type": "array", "items": items, "minItems": 1, "maxItems": 2}),
                Value::Array(vec![first; count]),
            )
        }
        _ => {
            let (one, value) = object(random, 0, 3, true);
            (json!({"anyOf": [{"type": "null"}, one]}), value)
        }
    }
}

/// An object; at least one member is given if it must not be empty.
fn object(random: &mut Random, depth: usize, most: usize, is_filled: bool) -> (Value, Value) {
    let (mut properties, mut required, mut value) = (Map::new(), Vec::new(), Map::new());
    let count = 1 + random.below(most);
    for index in 0..count {
        let name = format!(
            "{}{index}",
            random.pick(&["p", "a/b", "~t", "camelCase", "é"])
        );
        let (schema, sample) = parameter(random, depth);
        let is_required = random.one_in(2) || (is_filled && index + 1 == count && value.is_empty());
        if is_required {
            required.push(name.clone());
        }
        if is_required || random.one_in(2) {
            value.insert(name.clone(), sample);
        }
        properties.insert(name, schema);
    }
    let schema = json!({"type": "object", "properties": properties, "required": required, "additionalProperties": false});
    (schema, value.into())
}

fn dialects() -> Vec<Dialect> {
    vec![
        Dialect::block(),
        Dialect::block().escaped().keyed("k3v9q2x8"),
        Dialect::block()
            .start("<<<CALL:")
            .end("<<<END")
            .arg("@param:"),
        Dialect::emoji(),
        Dialect::emoji().escaped(),
    ]
}

/// A tool, and a valid call.
pub(super) struct ValidCall {
    pub(super) seed: u64,
    pub(super) tool: ToolSpec,
    pub(super) dialect: Dialect,
    pub(super) grammar: Grammar,
    pub(super) text: String,
}

impl ValidCall {
    /// Returns `None` if the random schema is unusable, or `render_call` cannot write the call.
    pub(super) fn new(seed: u64) -> Option<Self> {
        let random = &mut Random::new(seed);
        let (schema, value) = object(random, 2, 5, false);
        let tool = ToolSpec::new("do-it")
            .parameters_from_schema(&schema)
            .ok()?;
        let dialect = random.pick(&dialects()).clone();
        let arguments = value.as_object().unwrap();
        // Impossible for example with a blank on the line of an emoji call.
        let text = render_call(&JsonCall::new("do-it", arguments), Some(&tool), &dialect).ok()?;
        let options = GrammarOptions::new().required().one_call();
        let grammar = grammar([&tool], &dialect, &options).unwrap();
        Some(Self {
            seed,
            tool,
            dialect,
            grammar,
            text,
        })
    }

    /// Returns the call, broken in several ways.
    pub(super) fn broken(&self) -> Vec<String> {
        broken(&self.text, &self.dialect)
    }
}

#[test]
fn valid_calls_are_accepted_and_broken_ones_are_not() {
    let engine = Engine::new();
    let (mut accepted, mut rejected) = (0, 0);
    let seeds = cases("GRAMMAR_CALLS", 200);
    for call in seeds.clone().filter_map(ValidCall::new) {
        let start = engine.compile(&call.grammar.lark());
        let gbnf = Gbnf::new(&call.grammar.gbnf());
        let shown = || {
            let schema = call.tool.to_schema();
            let gbnf = call.grammar.gbnf();
            format!("seed {}\n{}\n{schema}\n{gbnf}", call.seed, call.text)
        };
        assert!(Engine::accepts(&start, &call.text), "{}", shown());
        assert!(gbnf.accepts(&call.text), "{}", shown());
        accepted += 1;
        for broken in call.broken() {
            let verdict = Engine::accepts(&start, &broken);
            assert_eq!(gbnf.accepts(&broken), verdict, "{broken}\n{}", shown());
            // Some of them are still valid.
            let document = Document::parse(&broken, &call.dialect).unwrap();
            let is_valid = document
                .calls()
                .any(|one| plaincall_reply::bind(&call.tool, one).is_ok());
            if is_valid {
                continue;
            }
            assert!(!verdict, "{broken}\n---\n{}", shown());
            rejected += 1;
        }
    }
    eprintln!("{accepted} accepted, {rejected} rejected");
    assert!(
        accepted > seeds.end / 2 && rejected > accepted,
        "{accepted} {rejected}"
    );
}

/// Breaks a call in several ways.
fn broken(text: &str, dialect: &Dialect) -> Vec<String> {
    let mut all = vec![text.replace("do-it", "do-its"), text.replace("do-it", "")];
    let markers = dialect.markers().unwrap();
    for marker in &markers {
        let short: String = marker.text.chars().skip(1).collect();
        all.push(text.replacen(&marker.text, &short, 1));
        all.push(text.replacen(&marker.text, &format!("{}{}", marker.text, marker.text), 1));
    }
    let lines: Vec<&str> = text.split_inclusive('\n').collect();
    for index in 1..lines.len() {
        let mut left = lines.clone();
        left.remove(index);
        all.push(left.concat());
        let mut twice = lines.clone();
        twice.insert(index, lines[index]);
        all.push(twice.concat());
    }
    all.retain(|one| one != text);
    all
}
