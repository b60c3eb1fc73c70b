//! The size of a grammar is bounded, and what cannot be part of it is reported.

use std::time::{Duration, Instant};

use plaincall_grammar::{Grammar, GrammarError, GrammarOptions, grammar};
use plaincall_syntax::Dialect;
use plaincall_tool::{Parameter, ParameterKind, ToolSpec};
use serde_json::{Value, json};

use super::engine::Engine;

fn tool(name: &str, schema: &Value) -> ToolSpec {
    ToolSpec::new(name).parameters_from_schema(schema).unwrap()
}

fn made(tools: &[ToolSpec]) -> Result<Grammar, GrammarError> {
    let [open, close] = Dialect::THINK;
    let dialect = Dialect::block().escaped().leading_reasoning(open, close);
    grammar(tools, &dialect, &GrammarOptions::new().ids())
}

fn unheld(grammar: &Grammar) -> Vec<String> {
    grammar.unheld().iter().map(ToString::to_string).collect()
}

/// Sixty-four tools like those of a coding agent: files, edits, lists of edits, options.
fn coding_tools() -> Vec<ToolSpec> {
    let edit = json!({"type": "object", "properties": {"old": {"type": "string"}, "new": {"type": "string"}, "all": {"type": "boolean"}},
        "required": ["old", "new"]});
    let schema = json!({"type": "object", "required": ["path", "text"], "properties": {
        "path": {"type": "string"}, "text": {"type": "string"}, "mode": {"enum": ["read", "write", "append"]},
        "line": {"type": "integer", "minimum": 1, "maximum": 100_000}, "timeout": {"type": ["number", "null"]},
        "edits": {"type": "array", "items": edit}, "tags": {"type": "array", "items": {"type": "string"}},
        "options": {"type": "object", "properties": {"deep": {"type": "boolean"}, "glob": {"type": "string"}, "env": {"type": "object",
            "additionalProperties": {"type": "string"}}}}}});
    (0..64)
        .map(|index| tool(&format!("tool_{index}"), &schema))
        .collect()
}

#[test]
fn the_tools_of_a_coding_agent_have_a_small_grammar() {
    let started = Instant::now();
    let grammar = made(&coding_tools()).unwrap();
    let (gbnf, lark) = (grammar.gbnf(), grammar.lark());
    let tag = grammar.structural_tag().to_string();
    let took = started.elapsed();
    let sizes = [gbnf.len(), lark.len(), tag.len()];
    eprintln!("64 tools: {sizes:?} bytes of GBNF, Lark and structural tag in {took:?}");
    assert!(sizes[..2].iter().all(|size| *size < 300_000), "{sizes:?}");
    // It takes a tenth of this in the release profile. The limit only detects growth without bounds.
    assert!(took < Duration::from_secs(30), "{took:?}");
    Engine::new().compile(&lark);
}

#[test]
fn recursion_is_written_as_json() {
    let tree = json!({"type": "object", "properties": {"root": {"$ref": "#/$defs/node"}}, "required": ["root"], "$defs": {
        "node": {"type": "object", "properties": {"name": {"type": "string"}, "children": {"type": "array", "items": {"$ref": "#/$defs/node"}}},
            "required": ["name"]}}});
    let grammar = made(&[tool("plant", &tree)]).unwrap();
    let start = Engine::new().compile(&grammar.lark());
    let call = |value: &str| {
        format!(
            "!!!GADGET_START:plant\n!!!ARG:root/name\noak\n!!!ARG:root/children\n{value}\n!!!GADGET_END\n"
        )
    };
    assert!(Engine::accepts(
        &start,
        &call(r#"[{"name":"elm","children":[{"name":"ash"},{"name":"fir"}]}]"#)
    ));
    assert!(!Engine::accepts(
        &start,
        &call(r#"[{"name":"elm","children":[{"name":5}]}]"#)
    ));
    // What is not enforced is reported for each place of a schema, without growing with the number of ways to it.
    let mut schema = json!({"type": "string", "format": "date"});
    let mut definitions = json!({});
    for level in 0..24 {
        let name = format!("level{level}");
        definitions[&name] = json!({"type": "array", "items": {"type": "object", "required": ["l", "r"], "properties": {"l": schema, "r": schema}}});
        schema = json!({"$ref": format!("#/$defs/{name}")});
    }
    let schema =
        json!({"type": "object", "properties": {"a": schema, "b": schema}, "$defs": definitions});
    let grammar = made(&[tool("many", &schema)]).unwrap();
    let reported = unheld(&grammar);
    assert!(reported.len() < 200, "{}", reported.len());
    for name in ["a", "b"] {
        let begin = format!("many: `{name}");
        assert!(
            reported.iter().any(|one| one.starts_with(&begin)),
            "{reported:?}"
        );
    }
    // An object that requires itself has no value.
    let endless = json!({"type": "object", "properties": {"a": {"$ref": "#"}}, "required": ["a"]});
    let error = made(&[tool("loop", &endless)]).unwrap_err();
    assert!(
        error.to_string().starts_with("no call of `loop`"),
        "{error}"
    );
}

#[test]
fn ten_thousand_listed_values_become_any_text() {
    let many: Vec<String> = (0..10_000).map(|index| format!("value {index}")).collect();
    let schema = json!({"type": "object", "properties": {"one": {"enum": many}, "few": {"enum": ["a", "!!!ARG:b", 5]}}});
    let grammar = made(&[tool("pick", &schema)]).unwrap();
    assert_eq!(
        unheld(&grammar),
        [
            "pick: `one`: `enum` is not enforced",
            "pick: `few`: `enum` is not enforced"
        ]
    );
    assert!(grammar.gbnf().len() < 50_000);
    let start = Engine::new().compile(&grammar.lark());
    for (text, is_accepted) in [
        ("few\na", true),
        ("few\n5", true),
        ("few\nb", false),
        ("one\nvalue 9999", true),
    ] {
        let call = format!("!!!GADGET_START:pick\n!!!ARG:{text}\n!!!GADGET_END");
        assert_eq!(Engine::accepts(&start, &call), is_accepted, "{text}");
    }
}

#[test]
fn too_large_a_grammar_is_an_error() {
    // Each level has alternatives with all levels below.
    let mut schema = json!({"type": "string"});
    for level in 0..6 {
        let names = (0..7).map(|index| (format!("m{level}{index}"), schema.clone()));
        let properties: serde_json::Map<String, Value> = names.collect();
        let required: Vec<&String> = properties.keys().collect();
        schema = json!({"type": "object", "required": required, "properties": properties.clone()});
    }
    // Each of many parameters has a long list.
    let listed: Vec<String> = (0..1000).map(|number| format!("value {number}")).collect();
    let parameter = json!({"$ref": "#/$defs/listed"});
    let names = (0..2000).map(|index| (format!("p{index}"), parameter.clone()));
    let properties: serde_json::Map<String, Value> = names.collect();
    let wide =
        json!({"type": "object", "properties": properties, "$defs": {"listed": {"enum": listed}}});
    for (name, schema) in [("deep", schema), ("wide", wide)] {
        let error = made(&[tool(name, &schema)]).err().unwrap().to_string();
        let expected = format!("of the tool `{name}` is too large");
        assert!(error.contains(&expected), "{error}");
    }
}

#[test]
fn impossible_requests_are_errors() {
    let path = ToolSpec::new("read").parameter(Parameter::new("path", ParameterKind::String));
    let check = |dialect: Dialect, options: &GrammarOptions, tools: &[ToolSpec], expected: &str| {
        let error = grammar(tools, &dialect, options).unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    let (required, auto) = (GrammarOptions::new().required(), GrammarOptions::new());
    let tools = [path];
    check(Dialect::auto(), &auto, &tools, "choose block or emoji");
    check(Dialect::block().start("!"), &auto, &tools, "is too short");
    check(Dialect::block(), &required, &[], "there are no tools");
    check(
        Dialect::block().arg("path"),
        &auto,
        &tools,
        "contains a marker",
    );
    check(
        Dialect::block().end("ead"),
        &auto,
        &tools,
        "contains a marker",
    );
}

/// An object whose `member_count` members are objects of the next level, down to a string.
fn levels(levels: usize, members: usize) -> Value {
    let mut definitions = serde_json::Map::new();
    for level in 0..levels {
        let next = json!({"$ref": format!("#/$defs/n{}", level + 1)});
        let members = (0..members).map(|member| (format!("p{member}"), next.clone()));
        let members: serde_json::Map<String, Value> = members.collect();
        definitions.insert(
            format!("n{level}"),
            json!({"type": "object", "properties": members}),
        );
    }
    definitions.insert(format!("n{levels}"), json!({"type": "string"}));
    json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/n0"}}, "$defs": definitions})
}

#[test]
fn long_and_branching_definitions_neither_multiply_nor_need_a_deep_stack() {
    for schema in [levels(3000, 1), levels(6, 8), levels(40, 4)] {
        let started = Instant::now();
        let grammar = made(&[tool("t", &schema)]).unwrap();
        assert!(grammar.gbnf().len() < 500_000, "{}", grammar.gbnf().len());
        assert!(started.elapsed() < Duration::from_secs(30));
    }
}

#[test]
fn usual_numbers_can_be_written() {
    for (kind, text) in [
        ("number", "1700000000"),
        ("number", "1700000000123"),
        ("number", "51.5073509"),
        ("number", "-0.000000001"),
        ("integer", "1234567890123456789"),
    ] {
        let schema =
            json!({"type": "object", "properties": {"a": {"type": kind}}, "required": ["a"]});
        let start = Engine::new().compile(&made(&[tool("t", &schema)]).unwrap().lark());
        let call = format!("!!!GADGET_START:t\n!!!ARG:a\n{text}\n!!!GADGET_END\n");
        assert!(Engine::accepts(&start, &call), "{kind} {text}");
    }
}

#[test]
fn keywords_without_effect_on_the_grammar_are_reported() {
    let schema = json!({"type": "object", "properties": {"a": {"not": {}}, "b": {"type": "array", "contains": {}},
        "c": {"type": "array", "minItems": 4, "maxItems": 2}, "e": {"type": "array", "items": {"type": "string", "format": "date"}},
        "f": {"type": "array", "minItems": 1, "prefixItems": [{"type": "array", "items": {"type": "null"}}, false]}, "d": {"type": "array", "items": {"type": "null"}, "minItems": 2.0},
        "g": {"type": "integer", "minimum": 0, "maximum": 5}, "h": {"type": "integer", "exclusiveMinimum": 0}}});
    let grammar = made(&[tool("t", &schema)]).unwrap();
    assert_eq!(
        unheld(&grammar),
        [
            "t: `a`: `not` is not enforced",
            "t: `b`: `contains` is not enforced",
            // Objects among them could have a key twice.
            "t: `b/0`: `additionalProperties` is not enforced",
            // Not for each index.
            "t: `e/0`: `format` is not enforced",
            "t: `f/2`: `additionalProperties` is not enforced",
            "t: `g`: `maximum` is not enforced",
            "t: `h`: `exclusiveMinimum` is not enforced"
        ]
    );
    let start = Engine::new().compile(&grammar.lark());
    for (text, is_accepted) in [
        ("c\n[]", false),
        ("f\n[[null]]", true),
        ("f\n[[null],1]", false),
        ("d\n[null]", false),
        ("d\n[null,null]", true),
        ("g\n6", true),
        ("g\n-1", false),
        ("h\n-9", false),
    ] {
        let call = format!("!!!GADGET_START:t\n!!!ARG:{text}\n!!!GADGET_END");
        assert_eq!(Engine::accepts(&start, &call), is_accepted, "{text}");
    }
}

/// Texts that unusual markers and escapes would change.
#[test]
fn accepted_texts_bind() {
    let one = |schema: Value| {
        tool(
            "t",
            &json!({"type": "object", "properties": {"a": schema}, "required": ["a"]}),
        )
    };
    let words = Dialect::block().start("CALL:").end("END").arg("ARG:");
    let required = || GrammarOptions::new().required();
    for (tool, dialect, options, text) in [
        (
            one(json!({"type": "string"})),
            words,
            required().ids(),
            "CALL:t:CALL:x\nARG:a\nx\nEND\n",
        ),
        (
            one(json!({"enum": ["!!!ARG\\:", "x"]})),
            Dialect::block().escaped(),
            required(),
            "!!!GADGET_START:t\n!!!ARG:a\n!!!ARG\\:\n!!!GADGET_END\n",
        ),
        (
            one(json!({"type": "string"})),
            Dialect::emoji().self_closing(),
            required(),
            "🛠️[t /]\n🛠️[/end]\n",
        ),
        (
            one(json!({"type": "string"})),
            Dialect::emoji().self_closing(),
            required(),
            "🛠️[t x /]\n🛠️[/end]\n",
        ),
    ] {
        let made = grammar([&tool], &dialect, &options).unwrap();
        assert!(
            !Engine::accepts(&Engine::new().compile(&made.lark()), text),
            "{text}"
        );
    }
    let any = [ToolSpec::new("t")];
    for dialect in [
        Dialect::block().start("[[CALL:").end("]]").arg("[[ARG:"),
        Dialect::block()
            .start("call: ")
            .end("end call")
            .arg("arg: "),
        Dialect::block().end("//\""),
    ] {
        let error = grammar(&any, &dialect, &required())
            .unwrap_err()
            .to_string();
        assert!(error.contains("a grammar cannot exclude it"), "{error}");
    }
}
