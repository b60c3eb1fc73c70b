//! The lengths and patterns of strings.

use std::time::{Duration, Instant};

use plaincall_grammar as grammar;
use plaincall_grammar::Engine::{LlGuidance, LlamaCpp, Vllm};
use plaincall_grammar::{Grammar, GrammarOptions, grammar};
use plaincall_reply::{Document, bind};
use plaincall_syntax::Dialect;
use plaincall_tool::ToolSpec;
use serde_json::{Map, Value, json};

use super::engine::Engine;
use super::gbnf::Gbnf;

fn made(dialect: &Dialect, schema: &Value, body: Option<&str>) -> Grammar {
    let mut tool = ToolSpec::new("t").parameters_from_schema(schema).unwrap();
    if let Some(body) = body {
        tool = tool.body(body);
    }
    grammar([&tool], dialect, &GrammarOptions::new().required()).unwrap()
}

fn one(schema: &Value) -> Value {
    json!({"type": "object", "properties": {"a": schema}, "required": ["a"]})
}

fn unheld(grammar: &Grammar) -> Vec<String> {
    grammar.unheld().iter().map(ToString::to_string).collect()
}

/// Checks which values the grammar accepts, in both notations.
fn check(grammar: &Grammar, call: impl Fn(&str) -> String, accepted: &[&str], rejected: &[&str]) {
    assert_eq!(unheld(grammar), [""; 0]);
    let lark = Engine::new().compile(&grammar.lark());
    let gbnf = Gbnf::new(&grammar.gbnf());
    let is_in_lark = grammar.unheld_by(LlGuidance).is_empty();
    for (texts, expected) in [(accepted, true), (rejected, false)] {
        for text in texts {
            let call = call(text);
            if expected || is_in_lark {
                assert_eq!(Engine::accepts(&lark, &call), expected, "Lark: {call}");
            }
            assert_eq!(gbnf.accepts(&call), expected, "GBNF: {call}");
        }
    }
}

fn block(value: &str) -> String {
    format!("!!!GADGET_START:t\n!!!ARG:a\n{value}\n!!!GADGET_END\n")
}

#[test]
fn values_keep_their_limits() {
    for dialect in [Dialect::block(), Dialect::block().escaped()] {
        let made = |schema: Value| made(&dialect, &one(&schema), None);
        check(
            &made(json!({"type": "string", "minLength": 2, "maxLength": 4})),
            block,
            &["ab", "é🛠x", "!!!!", "12"],
            &["", "a", "abcde", "a\r", "\n\n", "a\nb", "a\rb"],
        );
        check(
            &made(json!({"type": "string", "minLength": 1})),
            block,
            &["a", "a long text\nof two lines"],
            &["", "\r", "\n", "\na", "\r\na"],
        );
        check(
            &made(json!({"type": "string", "minLength": 2, "maxLength": 101})),
            block,
            &["ab", "a\nb"],
            &["\nab"],
        );
        check(
            &made(json!({"type": "string", "pattern": "^[a-z]+-\\d{2,}$"})),
            block,
            &["ab-12"],
            &["ab-1", "x ab-12", "ab-12\n"],
        );
        check(
            &made(
                json!({"allOf": [{"type": "string", "pattern": "a"}, {"pattern": "b$"}, {"maxLength": 20}]}),
            ),
            block,
            &["ab", "xayb", "a\nb"],
            &[
                "b",
                "abc",
                "aaaaaaaaaaaaaaaaaaaaaab",
                "!!!ARG:ab",
                "a\n!!!ARG:b",
            ],
        );
        check(
            &made(json!({"type": ["string", "null", "boolean"], "pattern": "^[a-c]{2}$"})),
            block,
            &["ab", "null", "true"],
            &["a", "nul", "truex"],
        );
        check(
            &made(json!({"type": ["string", "integer"], "minLength": 3, "maxLength": 5})),
            block,
            &["abc", "12", "1234567", "12345"],
            &["ab", "abcdef"],
        );
    }
}

/// A format is not enforced, but its values have content.
#[test]
fn values_with_a_format_do_not_begin_with_a_line_end() {
    for (format, is_accepted) in [
        ("date", false),
        ("email", false),
        ("regex", true),
        ("x", true),
    ] {
        let schema = one(&json!({"type": "string", "format": format}));
        let made = made(&Dialect::block(), &schema, None);
        let lark = Engine::new().compile(&made.lark());
        let gbnf = Gbnf::new(&made.gbnf());
        for (value, expected) in [
            ("2031-05-01", true),
            ("\n2031", is_accepted),
            ("", is_accepted),
        ] {
            let call = block(value);
            assert_eq!(
                Engine::accepts(&lark, &call),
                expected,
                "{format} {value:?}"
            );
            assert_eq!(gbnf.accepts(&call), expected, "{format} {value:?}");
        }
    }
}

#[test]
fn json_strings_keep_their_limits() {
    let dialect = Dialect::block().escaped();
    let list = |items: Value| {
        made(
            &dialect,
            &one(&json!({"type": "array", "minItems": 9, "items": items})),
            None,
        )
    };
    let nine = |item: &str| block(&format!("[{}]", [item; 9].join(", ")));
    check(
        &list(json!({"type": "string", "minLength": 1, "maxLength": 3})),
        nine,
        &[r#""a""#, r#""\n\\\"""#, r#""\u00e9\uFFFDx""#, r#""🛠🛠🛠""#],
        &[
            r#""""#,
            r#""abcd""#,
            r#""\n\n\n\n""#,
            r#""\ud83d""#,
            r#""\u12""#,
        ],
    );
    check(
        &list(json!({"type": "string", "pattern": "^[a-z\\n]+$"})),
        nine,
        &[r#""ab\u0063\n""#, r#""\u000A""#],
        &[r#""""#, r#""A""#, r#""\u0041""#, r#""a\t""#],
    );
    check(
        &list(
            json!({"anyOf": [{"enum": ["long value"]}, {"type": "string", "maxLength": 2}, {"type": "string", "pattern": "^x+$"}]}),
        ),
        nine,
        &[r#""long value""#, r#""lo""#, r#""xxxxx""#, r#""""#],
        &[r#""long""#, r#""xxxy""#],
    );
}

/// The grammar accepts the escapes that the parser accepts.
#[test]
fn escapes_agree_with_the_parser() {
    let tool = ToolSpec::new("t")
        .parameters_from_schema(&one(&json!({"type": "array", "items": {"type": "array"}})))
        .unwrap();
    let options = GrammarOptions::new().required();
    let grammar = grammar([&tool], &Dialect::block(), &options).unwrap();
    let lark = Engine::new().compile(&grammar.lark());
    let gbnf = Gbnf::new(&grammar.gbnf());
    let mut counts = [0, 0];
    for text in [
        r"\ud83d\ude00",
        r"\uD83D\uDE00",
        r"\ud800\udfff",
        r"\udbff\udc00",
        r"\ud83d",
        r"\ude00",
        r"\ude00\ud83d",
        r"\ud83d\ud83d\ude00",
        r"\ud83dx",
        r"\ud83d\u0041",
        r"\ud83d\n",
        r"\u0000",
        r"\u00e9",
        r"\uD7FF",
        r"\ue000",
        r"\uffff",
        r"\u12",
        r"\x41",
        r"\a",
        r"\/\b\f",
        r"\U00000041",
        r"\u{41}",
        r"\'",
    ] {
        let call = block(&format!(r#"[["{text}"]]"#));
        let document = Document::parse(&call, &Dialect::block()).unwrap();
        let is_valid = document.calls().any(|one| bind(&tool, one).is_ok());
        assert_eq!(Engine::accepts(&lark, &call), is_valid, "{text}");
        assert_eq!(gbnf.accepts(&call), is_valid, "{text}");
        counts[usize::from(is_valid)] += 1;
    }
    assert!(counts.iter().all(|count| *count > 5), "{counts:?}");
}

#[test]
fn emoji_calls_keep_their_limits() {
    let schema = json!({"type": "object", "required": ["a", "b"], "properties": {"a": {"type": "string", "maxLength": 3},
        "b": {"type": "string", "minLength": 2, "maxLength": 3, "pattern": "^[^x]"}}});
    let grammar = made(&Dialect::emoji(), &schema, Some("b"));
    let call = |text: &str| {
        let (word, body) = text.split_once('|').unwrap();
        format!("🛠️[t {word}]\n{body}🛠️[/end]\n")
    };
    check(
        &grammar,
        call,
        &["abc|ab", "a|\nbc", "a b|a\n"],
        &["abcd|ab", "a|b", "a|xab", "|ab", "a |ab", "a|abcd"],
    );
}

#[test]
fn limits_that_are_not_enforced_are_reported() {
    let schema = json!({"type": "object", "properties": {
        "long": {"type": "string", "minLength": 1, "maxLength": 100_000},
        "look": {"type": "string", "pattern": "^(?=a)", "maxLength": 4},
        "number": {"type": ["string", "number"], "pattern": "^a", "minLength": 2},
        "two": {"anyOf": [{"type": "string", "maxLength": 5}, {"type": "string", "pattern": "^a"}]},
        "any": {"maxLength": 5},
        "never": {"type": "string", "minLength": 5, "maxLength": 4}}});
    let grammar = made(&Dialect::block().escaped(), &schema, None);
    assert_eq!(
        unheld(&grammar),
        [
            "t: `long`: `maxLength` is not enforced",
            "t: `look`: `pattern` is not enforced",
            "t: `number`: `pattern` is not enforced",
            "t: `two`: `maxLength` is not enforced",
            "t: `two`: `pattern` is not enforced",
            "t: `any`: `maxLength` is not enforced",
        ]
    );
    let start = Engine::new().compile(&grammar.lark());
    for (text, is_accepted) in [
        ("long\n", false),
        ("long\na", true),
        ("never\naaaaa", false),
        ("look\nabcdef", false),
    ] {
        let call = format!("!!!GADGET_START:t\n!!!ARG:{text}\n!!!GADGET_END");
        assert_eq!(Engine::accepts(&start, &call), is_accepted, "{text}");
    }
}

#[test]
fn engines_enforce_different_limits() {
    let schema = json!({"type": "object", "properties": {"day": {"type": "string", "pattern": "^\\d{4}-\\d\\d-\\d\\d$"},
        "note": {"type": "string", "maxLength": 80}, "long": {"type": "string", "maxLength": 120}, "end": {"type": "string", "pattern": "[.!?]$"},
        "tags": {"type": "array", "maxItems": 1, "items": {"type": "string", "maxLength": 80}}}});
    let grammar = made(&Dialect::block().escaped(), &schema, None);
    let of = |engine: grammar::Engine| {
        let unheld = grammar.unheld_by(engine).into_iter();
        let unheld = unheld.map(|one| format!("{} {}", one.pointer, one.keyword));
        unheld.collect::<Vec<String>>()
    };
    assert_eq!(of(LlamaCpp), [""; 0]);
    let in_lark = ["long maxLength", "end pattern"];
    assert_eq!(of(LlGuidance), in_lark);
    assert_eq!(
        of(Vllm),
        ["note maxLength", "tags/0 maxLength", "long maxLength"]
    );
    assert!(grammar.structural_tag().to_string().len() < 20_000);
}

/// With a long length, some more texts are excluded.
#[test]
fn long_lengths_are_enforced_within_bounds() {
    for (length, is_enforced) in [(40, true), (100, true), (250, true), (20_000, false)] {
        for schema in [
            json!({"type": "string", "maxLength": length}),
            json!({"type": "array", "minItems": 9, "items": {"type": "string", "maxLength": length}}),
        ] {
            let started = Instant::now();
            let grammar = made(&Dialect::block().escaped(), &one(&schema), None);
            let gbnf = grammar.gbnf();
            let took = started.elapsed();
            let states = gbnf.lines().filter(|line| line.starts_with('s')).count();
            eprintln!(
                "{length}: {states} states, {} bytes of GBNF in {took:?}",
                gbnf.len()
            );
            assert_eq!(
                unheld(&grammar).is_empty(),
                is_enforced,
                "{:?}",
                grammar.unheld()
            );
            assert!(took < Duration::from_secs(30), "{took:?}");
            let text = "a".repeat(length);
            let (lark, gbnf) = (Engine::new().compile(&grammar.lark()), Gbnf::new(&gbnf));
            for (text, is_accepted) in [(text.clone(), true), (format!("{text}a"), !is_enforced)] {
                let is_list = schema["type"] == "array";
                let text = if is_list {
                    format!("[{}]", vec![format!("\"{text}\""); 9].join(","))
                } else {
                    text
                };
                // Lark has no long length of a value that may have several lines.
                let by_lark = is_accepted || !(is_list || length <= 100);
                assert_eq!(Engine::accepts(&lark, &block(&text)), by_lark);
                assert_eq!(gbnf.accepts(&block(&text)), is_accepted);
            }
        }
    }
}

/// A later item of a list may be JSON, whose limits are other ones.
#[test]
fn later_items_are_reported_as_the_first() {
    // Together, these objects have all but a few of the pointer lines of the tool.
    let objects = (0..31).map(|object| {
        let names = (0..64).map(|index| format!("p{object}-{index}"));
        let members: Map<String, Value> =
            names.map(|name| (name, json!({"type": "null"}))).collect();
        let names: Vec<&String> = members.keys().collect();
        json!({"type": "object", "required": names, "properties": members})
    });
    let objects: Vec<Value> = objects.collect();
    let item = json!({"type": "object", "required": ["x"], "properties": {"x": {"type": "string", "maxLength": 120}}});
    let schema = json!({"type": "object", "properties": {
        "lines": {"anyOf": objects},
        "text": {"type": "string", "maxLength": 110},
        "list": {"type": "array", "items": {"type": "object", "required": ["a", "b"], "properties": {"a": item, "b": item}}}}});
    let grammar = made(&Dialect::block().escaped(), &schema, None);
    let start = Engine::new().compile(&grammar.lark());
    let items =
        "!!!ARG:list/0/a/x\n\n!!!ARG:list/0/b/x\n\n!!!ARG:list/1/a/x\n\n!!!ARG:list/1/b/x\n\n";
    let long = "a".repeat(121);
    let call = format!("{items}!!!ARG:list/2/a/x\n\n!!!ARG:list/2/b\n{{\"x\":\"{long}\"}}");
    let call = format!("!!!GADGET_START:t\n{call}\n!!!GADGET_END\n");
    assert!(Engine::accepts(&start, &call));
    assert_eq!(
        unheld(&grammar),
        [
            "t: `list/0/b/x`: `maxLength` is not enforced",
            "t: `list/0/a/x`: `maxLength` is not enforced"
        ]
    );
}
