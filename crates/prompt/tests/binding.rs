//! Calls validated against the definitions of their tools in both syntaxes, and rendered again.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use std::fmt::Write as _;

use plaincall_prompt::render::spell_emoji;
use plaincall_reply::{Document, bind};
use plaincall_syntax::Dialect;
use plaincall_tool::{Arguments, Parameter, ParameterKind, ToolSpec, bind_arguments};

/// A tool from a line such as `name file:string limit:integer? | positional=file,limit body=text`.
fn tool(definition: &str) -> ToolSpec {
    let (parameters, form) = definition.split_once('|').unwrap_or((definition, ""));
    let mut words = parameters.split_whitespace();
    let mut tool = ToolSpec::new(words.next().expect("a name"));
    for word in words {
        let (name, kind) = word.split_once(':').expect("a kind");
        let required = !kind.ends_with('?');
        let kind = ParameterKind::from_name(kind.trim_end_matches('?')).expect("a kind");
        let mut parameter = Parameter::new(name, kind);
        parameter.required = required;
        tool = tool.parameter(parameter);
    }
    for word in form.split_whitespace() {
        match word.split_once('=').expect("a value") {
            ("positional", names) => {
                tool = tool.positional(names.split(',').filter(|name| !name.is_empty()));
            }
            (_, name) => tool = tool.body(name),
        }
    }
    tool.check().expect("a consistent definition");
    tool
}

/// `expected` is the JSON of the bound arguments, or all errors, each on a line.
fn check(definition: &str, text: &str, expected: &str) {
    let document = Document::parse(text, &Dialect::auto()).expect("a dialect that works");
    let call = document.calls().next().expect("a call");
    let found = match bind(&tool(definition), call) {
        Ok(arguments) => arguments.to_value().to_string(),
        Err(problems) => {
            assert!(
                problems
                    .iter()
                    .all(|problem| problem.span.end <= text.len())
            );
            problems
                .iter()
                .map(ToString::to_string)
                .collect::<Vec<_>>()
                .join("\n")
        }
    };
    assert_eq!(found, expected, "{definition}\n{text}");
}

/// The arguments as they are written in a block call.
fn lines_of(arguments: &[(&str, &str)]) -> String {
    let line = |(pointer, text): &(&str, &str)| format!("!!!ARG:{pointer}\n{text}\n");
    arguments.iter().map(line).collect::<Vec<_>>().concat()
}

fn block(definition: &str, arguments: &[(&str, &str)], expected: &str) {
    let lines = lines_of(arguments);
    check(
        definition,
        &format!("!!!GADGET_START:t\n{lines}!!!GADGET_END"),
        expected,
    );
    // Arguments without a source text are validated in the same way.
    let Ok(arguments) = Arguments::from_pairs(arguments.iter().copied()) else {
        return;
    };
    let found = match bind_arguments(&tool(definition), &arguments) {
        Ok(bound) => {
            assert_eq!(bound, arguments);
            let again = bind_arguments(&tool(definition), &bound);
            assert_eq!(again.as_ref(), Ok(&bound), "{definition}");
            bound.to_value().to_string()
        }
        Err(problems) => {
            let lines: Vec<String> = problems.iter().map(ToString::to_string).collect();
            lines.join("\n")
        }
    };
    assert_eq!(found, expected, "{definition}\n{lines}");
}

#[test]
fn block_calls() {
    let definition =
        "t name:string n:integer? x:number? on:boolean? list:array? at:object? any:any?";
    block(definition, &[("name", "007")], r#"{"name":"007"}"#);
    block(
        definition,
        &[("name", " true "), ("n", "+007")],
        r#"{"name":" true ","n":7}"#,
    );
    block(
        definition,
        &[("name", ""), ("x", "1e3"), ("on", " true")],
        r#"{"name":"","x":1000,"on":true}"#,
    );
    block(
        definition,
        &[("name", "a"), ("x", "1.50"), ("n", "5.0")],
        r#"{"name":"a","x":1.5,"n":5}"#,
    );
    block(
        definition,
        &[("name", "a"), ("list/0", "1"), ("at/b", "02")],
        r#"{"name":"a","list":[1],"at":{"b":"02"}}"#,
    );
    block(
        definition,
        &[("name", "a"), ("at/0", "x"), ("at/1", "y")],
        r#"{"name":"a","at":{"0":"x","1":"y"}}"#,
    );
    block(
        definition,
        &[("name", "a"), ("list", "[1,\n\"2\"]"), ("at", "{}")],
        r#"{"name":"a","list":[1,"2"],"at":{}}"#,
    );
    block(
        definition,
        &[("name", "a"), ("any", "5")],
        r#"{"name":"a","any":5}"#,
    );
    block(
        definition,
        &[("name", "a"), ("any/0/b", "5")],
        r#"{"name":"a","any":[{"b":5}]}"#,
    );
    block("t", &[], "{}");
}

#[test]
fn the_parameters_of_a_tool_are_listed_once() {
    block(
        "t a:string? b:string?",
        &[("x", "1"), ("y/0", "2"), ("z", "3")],
        "unknown parameter `x`; t takes `a` and `b`\nunknown parameter `y/0`\nunknown parameter `z`",
    );
    check(
        "t a:array?",
        "🛠️[t]{\"x\": 1, \"y\": 2}🛠️[/end]",
        "unknown parameter `x`; t takes `a`\nunknown parameter `y`",
    );
    // Five hundred names are not listed ten thousand times.
    let mut definition = "t".to_owned();
    for number in 0..500 {
        write!(definition, " p{number}:string").expect("a text takes all");
    }
    let mut text = "!!!GADGET_START:t\n".to_owned();
    for number in 0..10_000 {
        write!(text, "!!!ARG:wrong{number}\n1\n").expect("a text takes all");
    }
    let document = Document::parse(&text, &Dialect::block()).expect("a dialect that works");
    let call = document.calls().next().expect("a call");
    let problems = bind(&tool(&definition), call).expect_err("invalid arguments");
    assert_eq!(problems.len(), 10_500);
    let size: usize = problems.iter().map(|problem| problem.message.len()).sum();
    assert!(size < 100 * problems.len(), "{size}");
}

#[test]
fn block_calls_that_do_not_fit() {
    let definition = "t name:string n:integer? x:number? on:boolean? list:array? at:object?";
    block(definition, &[], "missing required parameter `name`");
    block(
        definition,
        &[("n", "many"), ("other/0", "1"), ("on", "yes")],
        "`n`: expected an integer, found `many`\n\
         unknown parameter `other/0`; t takes `name`, `n`, `x`, `on`, `list` and `at`\n\
         `on`: expected true or false, found `yes`\n\
         missing required parameter `name`",
    );
    block(
        definition,
        &[("name/0", "a")],
        "`name`: expected a string, found a list",
    );
    block(
        definition,
        &[("name", "a"), ("n/x", "1")],
        "`n`: expected an integer, found an object",
    );
    block(
        definition,
        &[("name", "a"), ("n", "1.5")],
        "`n`: expected an integer, found `1.5`",
    );
    block(
        definition,
        &[("name", "a"), ("n", "5\n6")],
        "`n`: expected an integer, found `5…`",
    );
    block(
        definition,
        &[("name", "a"), ("n", "nil")],
        "`n`: expected an integer, found `nil`",
    );
    block(
        definition,
        &[("name", "a"), ("n", "99999999999999999999")],
        "`n`: expected an integer of at most 64 bits, found `99999999999999999999`",
    );
    block(
        definition,
        &[("name", "a"), ("x", "3.14159265358979323846")],
        "`x`: expected a number that fits into 64 bits, found `3.14159265358979323846`",
    );
    block(
        definition,
        &[("name", "a"), ("list", "1, 2")],
        "`list`: expected a list, found `1, 2`",
    );
    block(
        definition,
        &[("name", "a"), ("list", "{}")],
        "`list`: expected a list, found `{}`",
    );
    block(
        definition,
        &[("name", "a"), ("list", "[1")],
        "`list`: expected a list, found invalid JSON: it ends inside a list (line 1, column 2)",
    );
    block(
        definition,
        &[("name", "a"), ("list/x", "1")],
        "`list`: expected a list, found an object",
    );
    block(
        "t",
        &[("x", "1")],
        "unknown parameter `x`; t takes no parameters",
    );
    block(
        definition,
        &[("name", "a"), ("name", "b")],
        "Duplicate pointer: name",
    );
}

#[test]
fn emoji_lines() {
    let create = "create-file path:string encoding:string? content:string | positional=path,encoding body=content";
    check(
        create,
        "🛠️[create-file script.py utf-8]\nx\n🛠️[/end]",
        r#"{"path":"script.py","encoding":"utf-8","content":"x\n"}"#,
    );
    check(
        create,
        "🛠️[create-file script.py]🛠️[/end]",
        r#"{"path":"script.py","content":""}"#,
    );
    check(
        create,
        "🛠️[create-file  a.txt \t big endian  utf ]🛠️[/end]",
        r#"{"path":"a.txt","encoding":"big endian  utf","content":""}"#,
    );
    check(
        create,
        "🛠️[create-file]\nx🛠️[/end]",
        "missing required parameter `path`; usage: `create-file path encoding...? (body: content)`",
    );

    let query = "run-query file:string limit:integer?";
    check(
        query,
        "🛠️[run-query main.sql 100]🛠️[/end]",
        r#"{"file":"main.sql","limit":100}"#,
    );
    check(
        query,
        "🛠️[run-query main.sql]\n \n🛠️[/end]",
        r#"{"file":"main.sql"}"#,
    );
    check(
        query,
        "🛠️[run-query main.sql 1 2]🛠️[/end]",
        "unexpected `2` on the line; usage: `run-query file limit?`",
    );
    check(
        query,
        "🛠️[run-query main.sql ten]🛠️[/end]",
        "`limit`: expected an integer, found `ten`",
    );
    check("t", "🛠️[t]🛠️[/end]", "{}");
    check(
        "t",
        "🛠️[t x]🛠️[/end]",
        "unexpected `x` on the line; usage: `t`",
    );
    // Required parameters come first, then optional ones, in declared order.
    check(
        "t a:integer? b:integer c:boolean? d:string",
        "🛠️[t 1 x y z]🛠️[/end]",
        "`a`: expected an integer, found `y`\n`c`: expected true or false, found `z`",
    );
    check(
        "t a:integer? b:integer c:boolean? d:string",
        "🛠️[t 1 x 2 true]🛠️[/end]",
        r#"{"b":1,"d":"x","a":2,"c":true}"#,
    );
    // The order of the definition, and a last string that takes the rest.
    check(
        "say to:string text:string | positional=to,text",
        "🛠️[say Ann  hello  there ]🛠️[/end]",
        r#"{"to":"Ann","text":"hello  there"}"#,
    );
    check(
        "say to:string times:integer | positional=to,times",
        "🛠️[say Ann hello 5]🛠️[/end]",
        "`times`: expected an integer, found `hello`\nunexpected `5` on the line; usage: `say to times`",
    );
}

/// If the schema has alternatives, all arguments together decide how the words are read.
#[test]
fn emoji_lines_of_several_forms() {
    let form = |op: &str, value: &str| serde_json::json!({"properties": {"op": {"const": op}, "value": {"type": value}, "note": {"type": "string"}}, "required": ["op", "value"]});
    let schema = serde_json::json!({"oneOf": [form("set", "string"), form("add", "integer")]});
    let tool = ToolSpec::new("t")
        .parameters_from_schema(&schema)
        .expect("a schema")
        .positional(["op", "value"])
        .body("note");
    tool.check().expect("a consistent definition");
    for (line, expected) in [
        ("set 5", r#"{"op":"set","value":"5"}"#),
        ("add 5", r#"{"op":"add","value":5}"#),
        ("add x", "`value`: expected an integer, found `x`"),
    ] {
        let text = format!("🛠️[t {line}]🛠️[/end]");
        let document = Document::parse(&text, &Dialect::emoji()).expect("a dialect that works");
        let found = match bind(&tool, document.calls().next().expect("a call")) {
            Ok(bound) => bound.to_value().to_string(),
            Err(problems) => problems[0].to_string(),
        };
        assert_eq!(found, expected, "{line}");
    }
}

#[test]
fn emoji_bodies() {
    let query = "run-query file:string limit:integer?";
    check(
        query,
        "🛠️[run-query a.sql]\nand so on\n🛠️[/end]",
        "run-query takes no body, but the body begins with `and so on…`: end the call right after its header; usage: `run-query file limit?`",
    );
    check(
        query,
        "🛠️[run-query a.sql]\n🛠️[run-query b.sql]\n🛠️[/end]",
        "run-query takes no body, but the body contains another call: end this call first, then send the other one again too",
    );
    // An optional body.
    let note = "note title:string text:string? | body=text";
    check(note, "🛠️[note big plan]🛠️[/end]", r#"{"title":"big plan"}"#);
    check(
        note,
        "🛠️[note big plan]\n\n🛠️[/end]",
        r#"{"title":"big plan","text":"\n"}"#,
    );
}

#[test]
fn emoji_json() {
    let two = "t a:string b:string n:integer? list:array? any:any?";
    check(
        two,
        "🛠️[t]\n{\"a\": \"007\", \"b\": \"\", \"n\": 5}\n🛠️[/end]",
        r#"{"a":"007","b":"","n":5}"#,
    );
    check(
        two,
        "🛠️[t ]{\"a\":\"\\u00e9\",\"b\":\"1\",\"list\":[1, {\"x\": null}]}🛠️[/end]",
        r#"{"a":"é","b":"1","list":[1,{"x":null}]}"#,
    );
    check(
        two,
        "🛠️[t]{\"a\":\"1\",\"b\":\"1\",\"any\":\"5\"}🛠️[/end]",
        r#"{"a":"1","b":"1","any":"5"}"#,
    );
    check(
        two,
        "🛠️[t]{\"a\":\"1\",\"b\":\"1\",\"any\":null}🛠️[/end]",
        r#"{"a":"1","b":"1","any":null}"#,
    );
    check(
        two,
        "🛠️[t]{\"a\":1,\"b\":\"x\",\"n\":\"5\",\"c\":1,\"list\":true}🛠️[/end]",
        "`a`: expected a string, found `1`\n\
         `n`: expected an integer, found `\"5\"`\n\
         unknown parameter `c`; t takes `a`, `b`, `n`, `list` and `any`\n\
         `list`: expected a list, found `true`",
    );
    check(
        two,
        "🛠️[t]{\"a\":\"1\",\"a\":\"2\",\"b\":\"x\"}🛠️[/end]",
        "duplicate key `a` in the body",
    );
    check(
        two,
        "🛠️[t x y]{\"a\":\"1\",\"b\":\"2\"}🛠️[/end]",
        "unexpected `x y` on the line, which must be empty; usage: `t (body: one JSON object)`",
    );
    check(
        two,
        "🛠️[t]hello🛠️[/end]",
        "the body of t must be one JSON object, but it is `hello`; t takes `a`, `b`, `n`, `list` and `any`",
    );
    check(
        two,
        "🛠️[t]🛠️[/end]",
        "the body of t must be one JSON object, but it is nothing; t takes `a`, `b`, `n`, `list` and `any`",
    );
    check(
        two,
        "🛠️[t]{\"a\":🛠️[/end]",
        "the body of t must be one JSON object, but it ends inside a value (line 1, column 5); t takes `a`, `b`, `n`, `list` and `any`",
    );
    check(
        two,
        "🛠️[t]{\"a\":\"1\",\"b\":\"2\"} x🛠️[/end]",
        "the body of t must be one JSON object, but trailing characters (line 1, column 19); t takes `a`, `b`, `n`, `list` and `any`",
    );
    check("t a:string? b:string?", "🛠️[t]\n🛠️[/end]", "{}");
    check(
        "t n:integer m:any",
        "🛠️[t]{\"n\":1.00000000000000000001,\"m\":1e400}🛠️[/end]",
        "`n`: expected an integer, found `1.00000000000000000001` (the number 1.00000000000000000001 has too many digits)\n\
         `m`: expected any value, found `1e400` (number out of range (line 1, column 5))",
    );
}

#[test]
fn bound_arguments_keep_texts_and_places() {
    let text = "🛠️[run-query  main.sql  0100 ]🛠️[/end]";
    let document = Document::parse(text, &Dialect::emoji()).expect("a dialect that works");
    let call = document.calls().next().expect("a call");
    let arguments = bind(&tool("run-query file:string limit:integer"), call).expect("it fits");
    let found: Vec<_> = arguments
        .iter()
        .map(|one| (one.pointer, one.text, text.get(one.span.range())))
        .collect();
    assert_eq!(
        found,
        [
            ("file", "main.sql", Some("main.sql")),
            ("limit", "0100", Some("0100"))
        ]
    );
    assert_eq!(
        call.raw_args_span().and_then(|span| text.get(span.range())),
        Some(" main.sql  0100 ")
    );
}

/// A block call of the tool becomes this line and body, or an error.
fn spelled(definition: &str, arguments: &[(&str, &str)], expected: Result<(&str, &str), &str>) {
    let tool = tool(definition);
    let lines = lines_of(arguments);
    let text = format!("!!!GADGET_START:{}\n{lines}!!!GADGET_END", tool.name);
    let document = Document::parse(&text, &Dialect::block()).expect("a dialect that works");
    let bound = bind(&tool, document.calls().next().expect("a call")).expect("it fits");
    let found = spell_emoji(&tool, &bound);
    let shown = found
        .as_ref()
        .map(|emoji| (emoji.raw_args.as_str(), emoji.body.as_str()))
        .map_err(ToString::to_string);
    assert_eq!(
        shown,
        expected.map_err(str::to_owned),
        "{definition} {arguments:?}"
    );
    if let Ok(emoji) = found {
        let text = format!(
            "🛠️[{} {}]\n{}🛠️[/end]",
            tool.name, emoji.raw_args, emoji.body
        );
        let document = Document::parse(&text, &Dialect::emoji()).expect("a dialect that works");
        let again = bind(&tool, document.calls().next().expect("a call")).expect("it fits");
        let sorted = |value: serde_json::Value| {
            let mut members: Vec<_> = value
                .as_object()
                .cloned()
                .unwrap_or_default()
                .into_iter()
                .collect();
            members.sort_by(|one, two| one.0.cmp(&two.0));
            members
        };
        assert_eq!(sorted(again.to_value()), sorted(bound.to_value()));
    }
}

#[test]
fn written_back_as_emoji() {
    let create = "create path:string encoding:string? content:string | body=content";
    spelled(
        create,
        &[("content", "x\n"), ("path", "a")],
        Ok(("a", "x\n")),
    );
    spelled(
        create,
        &[("content", ""), ("path", "a"), ("encoding", "b  c")],
        Ok(("a b  c", "")),
    );
    spelled(
        create,
        &[("content", ""), ("path", "a b")],
        Err("`path`: it contains whitespace, but must be one word"),
    );
    spelled(
        create,
        &[("content", ""), ("path", "a]")],
        Err("`path`: it contains `]` or a line end, which would end the line"),
    );
    spelled(
        create,
        &[("content", ""), ("path", "")],
        Err("`path`: it is empty or has whitespace at its ends, which the line does not keep"),
    );
    let query = "q n:integer? m:integer?";
    spelled(query, &[("m", "1"), ("n", "02")], Ok(("02 1", "")));
    spelled(
        query,
        &[("m", "1")],
        Err("`m`: a parameter before it on the line is missing"),
    );
    spelled(
        "q a:string b:string | positional=a,b",
        &[("a", "x"), ("b", "y z")],
        Ok(("x y z", "")),
    );
    spelled(
        "q a:string b:string? | positional=a",
        &[("a", "x"), ("b", "y")],
        Err("`b`: a call of this tool has no place for it"),
    );
    spelled(
        "q a:array",
        &[("a/0", "1"), ("a/1", "02")],
        Ok(("", r#"{"a":[1,"02"]}"#)),
    );
    spelled(
        "q a:string b:integer l:string? | body=l",
        &[("a", "x"), ("b", "1"), ("l", "")],
        Err("`l`: it is empty, but an empty body means that it is missing"),
    );
}

/// Each value states the rule that converted it.
#[test]
fn the_rule_of_a_conversion() {
    use plaincall_tool::ConversionRule;
    use plaincall_tool::ConversionRule::{Body, Declared, Exact, Json, Text, Undeclared};
    use serde_json::{Value, json};
    let rule_of = |properties: Value, text: &str, has_body: bool| -> ConversionRule {
        let schema = json!({"type": "object", "properties": properties});
        let mut tool = ToolSpec::new("t")
            .parameters_from_schema(&schema)
            .expect("a schema");
        if has_body {
            tool = tool.body("v");
        }
        let document = Document::parse(text, &Dialect::auto()).expect("a dialect that works");
        let call = document.calls().next().expect("a call");
        let arguments = bind(&tool, call).expect("a valid call");
        let argument = arguments.argument("v").expect("the argument");
        argument.rule
    };
    let block = |value: &str| format!("!!!GADGET_START:t\n!!!ARG:v\n{value}\n!!!GADGET_END\n");
    let either = json!({"v": {"type": ["integer", "string"]}});
    let cases = [
        (json!({"v": {}}), block("1"), Undeclared),
        (json!({"v": {"type": "integer"}}), block("01"), Declared),
        (json!({"v": {"type": "string"}}), block("1"), Declared),
        (either.clone(), block("1"), Exact),
        (either, block("01"), Text),
        (
            json!({"v": {"type": "array"}}),
            "🛠️[t]\n{\"v\": [1]}\n🛠️[/end]".to_owned(),
            Json,
        ),
        (
            json!({"v": {"type": "string"}}),
            "🛠️[t]\na\nb\n🛠️[/end]".to_owned(),
            Body,
        ),
    ];
    for (properties, text, expected) in cases {
        assert_eq!(
            rule_of(properties, &text, expected == Body),
            expected,
            "{text}"
        );
        assert!(!expected.to_string().ends_with('.'));
    }
}
