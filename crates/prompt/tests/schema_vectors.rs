//! Reading and validation by schemas: the vectors in `schemas/`, and malicious schemas.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use plaincall_prompt::render::spell_emoji;
use plaincall_reply::{Document, bind};
use plaincall_syntax::{Call, Dialect, render};
use plaincall_tool::usage::UsageBody;
use plaincall_tool::{Arguments, ReplyDiagnostic, ToolSpec, bind_arguments, flatten};
use serde_json::{Map, Value, json};

const READING: &str = include_str!("schemas/reading.txt");
#[cfg(feature = "jsonschema")]
const VALIDATION: &str = include_str!("schemas/validation.txt");

fn tool(schema: &Value) -> ToolSpec {
    let tool = ToolSpec::new("t")
        .parameters_from_schema(schema)
        .unwrap_or_else(|error| panic!("{schema}: {error}"));
    tool.check()
        .unwrap_or_else(|error| panic!("{schema}: {error}"));
    tool
}

/// The text of a block call with these arguments.
fn written(pairs: &[(&str, &str)], dialect: &Dialect) -> String {
    let call = Call::Block {
        name: "t",
        id: None,
        dependencies: Vec::new(),
        arguments: pairs.to_vec(),
    };
    render(&call, dialect).unwrap_or_else(|_| {
        let lines = pairs
            .iter()
            .map(|(pointer, text)| format!("!!!ARG:{pointer}\n{text}\n"));
        format!(
            "!!!GADGET_START:t\n{}!!!GADGET_END\n",
            lines.collect::<String>()
        )
    })
}

fn read(tool: &ToolSpec, text: &str, dialect: &Dialect) -> Result<Value, Vec<ReplyDiagnostic>> {
    let document = Document::parse(text, dialect).expect("a dialect that works");
    let call = document.calls().next().expect("a call");
    bind(tool, call).map(|arguments| arguments.to_value())
}

/// One case: the input and its result.
struct Case<'c> {
    tool: &'c ToolSpec,
    form: &'c str,
    written: &'c str,
    expected: Result<&'c str, Vec<&'c str>>,
    comes_back: bool,
}

/// Returns `true` if it round-tripped on the line of an emoji call.
fn check(case: &Case<'_>) -> bool {
    let Case {
        tool,
        form,
        written: text,
        ..
    } = case;
    let shown = format!("{}\n{form} {text}", tool.to_schema());
    let found = match *form {
        "line" => read(tool, &format!("🛠️[t {text}]🛠️[/end]"), &Dialect::emoji()),
        "body" => read(tool, &format!("🛠️[t]\n{text}🛠️[/end]"), &Dialect::emoji()),
        _ => {
            let object: Map<String, Value> =
                serde_json::from_str(text).unwrap_or_else(|error| panic!("{shown}: {error}"));
            let pairs: Vec<(&str, &str)> = object
                .iter()
                .map(|(pointer, text)| (pointer.as_str(), text.as_str().expect("a text")))
                .collect();
            let text = written(&pairs, &Dialect::block());
            let found = read(tool, &text, &Dialect::block());
            for problem in found.as_ref().err().into_iter().flatten() {
                let at = text.get(problem.span.range()).expect("a place in the text");
                let value = object.get(&problem.pointer).and_then(Value::as_str);
                if problem.code == "wrong_type" && value.is_some() {
                    assert_eq!(Some(at), value, "{shown}");
                }
            }
            found
        }
    };
    match &case.expected {
        Ok(expected) => {
            let found = found.unwrap_or_else(|problems| panic!("{shown}: {problems:?}"));
            let expected: Value =
                serde_json::from_str(expected).unwrap_or_else(|error| panic!("{shown}: {error}"));
            assert_eq!(found.to_string(), expected.to_string(), "{shown}");
            comes_back(tool, &found, case.comes_back, &shown)
        }
        Err(expected) => {
            let problems = found
                .err()
                .unwrap_or_else(|| panic!("{shown}: nothing is wrong"));
            let found: Vec<&str> = problems.iter().map(|one| one.message.as_str()).collect();
            assert_eq!(&found, expected, "{shown}");
            false
        }
    }
}

/// Renders the arguments and parses them again, in both syntaxes. Returns whether the line of an emoji call had room.
fn comes_back(tool: &ToolSpec, value: &Value, expected: bool, shown: &str) -> bool {
    let object = value.as_object().expect("an object");
    let dialect = Dialect::block().escaped();
    match flatten(object, Some(tool)) {
        Ok(pairs) => {
            assert!(expected, "{shown}: {pairs:?}");
            let pairs: Vec<(&str, &str)> =
                pairs.iter().map(|(one, two)| (&**one, &**two)).collect();
            let text = written(&pairs, &dialect);
            assert_eq!(
                read(tool, &text, &dialect).as_ref(),
                Ok(value),
                "{shown}\n{text}"
            );
            let arguments = Arguments::from_pairs_for(tool, pairs).expect("what was written");
            let bound = bind_arguments(tool, &arguments).expect("what was read");
            comes_back_as_emoji(tool, &bound, shown)
        }
        Err(error) => {
            assert!(!expected, "{shown}: {error}");
            if tool.usage().body == UsageBody::Json {
                let text = format!("🛠️[t]\n{value}\n🛠️[/end]");
                let found = read(tool, &text, &Dialect::emoji());
                assert_eq!(found.as_ref(), Ok(value), "{shown}\n{text}");
            }
            false
        }
    }
}

fn comes_back_as_emoji(tool: &ToolSpec, bound: &Arguments, shown: &str) -> bool {
    let dialect = Dialect::emoji().escaped();
    let spelled = match spell_emoji(tool, bound) {
        Ok(spelled) => spelled,
        Err(error) => {
            assert!(tool.usage().body != UsageBody::Json, "{shown}: {error}");
            return false;
        }
    };
    let call = Call::Emoji {
        name: "t",
        raw_args: &spelled.raw_args,
        body: &spelled.body,
    };
    let text = render(&call, &dialect).unwrap_or_else(|error| panic!("{shown}: {error}"));
    let found = read(tool, &text, &dialect);
    assert_eq!(found, Ok(bound.to_value()), "{shown}\n{text}");
    tool.usage().body != UsageBody::Json
}

/// Returns the number of cases, and how many of them round-tripped on the line of an emoji call.
fn check_all(vectors: &str) -> (usize, usize) {
    let (mut cases, mut on_line) = (0, 0);
    let mut current = None;
    let mut lines = vectors.lines().peekable();
    while let Some(line) = lines.next() {
        if line.is_empty() || line.starts_with('#') {
            continue;
        }
        if let Some(schema) = line.strip_prefix("schema ") {
            let schema =
                serde_json::from_str(schema).unwrap_or_else(|error| panic!("{schema}: {error}"));
            current = Some(tool(&schema));
            continue;
        }
        let (form, rest) = match line.split_once(' ') {
            Some((form @ ("line" | "body"), rest)) => (form, rest),
            _ => ("", line),
        };
        let split = |sign: &str| rest.split_once(&format!(" {sign} "));
        let (written, expected, comes_back) = if let Some((written, problem)) = split("!!") {
            let mut problems = vec![problem];
            while let Some(problem) = lines.peek().and_then(|line| line.strip_prefix("!! ")) {
                problems.push(problem);
                lines.next();
            }
            (written, Err(problems), false)
        } else if let Some((written, value)) = split("~>") {
            (written, Ok(value), false)
        } else {
            let (written, value) = split("=>").unwrap_or_else(|| panic!("no sign in {line}"));
            (written, Ok(value), true)
        };
        on_line += usize::from(check(&Case {
            tool: current.as_ref().expect("a schema first"),
            form,
            written,
            expected,
            comes_back,
        }));
        cases += 1;
    }
    (cases, on_line)
}

#[test]
fn reading() {
    let (cases, on_line) = check_all(READING);
    assert!(cases > 225 && on_line > 30, "{cases} {on_line}");
}

#[cfg(feature = "jsonschema")]
#[test]
fn validation() {
    let (cases, _) = check_all(VALIDATION);
    assert!(cases > 30, "{cases}");
}

/// Schemas designed to be slow or deep are read in bounded work: without a bound this would not end.
#[test]
fn schemas_that_mean_harm() {
    // Each level of `anyOf` doubles the number of alternatives.
    let mut doubling = json!({"type": "string"});
    for _ in 0..40 {
        doubling = json!({"anyOf": [doubling.clone(), {"type": "integer"}]});
        doubling = json!({"allOf": [doubling]});
    }
    let mut bombs = json!({"d0": {"type": "string"}});
    for level in 1..60 {
        let below = json!({"$ref": format!("#/$defs/d{}", level - 1)});
        bombs[format!("d{level}")] =
            json!({"allOf": [{"anyOf": [below, {"type": "null"}]}, {"anyOf": [below, below]}]});
    }
    let mutual = json!({"a": {"properties": {"x": {"$ref": "#/$defs/b"}}}, "b": {"anyOf": [{"$ref": "#/$defs/a"}, {"$ref": "#/$defs/b"}]}});
    let many: Vec<Value> = (0..2000)
        .map(|number| json!({"properties": {"k": {"const": number}}}))
        .collect();
    let wide = json!({"type": "object", "oneOf": many});
    for schema in [
        json!({"properties": {"x": doubling}}),
        json!({"$defs": bombs, "properties": {"x": {"$ref": "#/$defs/d59"}}}),
        json!({"$defs": mutual, "properties": {"x": {"$ref": "#/$defs/a"}}}),
        json!({"properties": {"x": {"type": "array", "items": wide}}}),
        json!({"properties": {"x": {"patternProperties": {"^(a+)+$": {"type": "string"}, "a*a*a*a*a*a*b": {}}}}}),
    ] {
        // Not `check`: compilation for validation is not bounded here.
        let Ok(tool) = ToolSpec::new("t").parameters_from_schema(&schema) else {
            continue;
        };
        let tool = tool.without_validation();
        let items: Vec<String> = (0..500)
            .map(|at| format!("!!!ARG:x/{at}/k\n{at}\n"))
            .collect();
        let deep = format!("!!!ARG:x{}\n1\n", "/x".repeat(60));
        let long = format!("!!!ARG:x/{}\n1\n", "a".repeat(3000));
        let json = format!("!!!ARG:x\n{}1{}\n", "[".repeat(100), "]".repeat(100));
        for arguments in [items.concat(), deep, long, json, "!!!ARG:x\n5\n".to_owned()] {
            let text = format!("!!!GADGET_START:t\n{arguments}!!!GADGET_END");
            let _ = read(&tool, &text, &Dialect::block());
        }
    }
}

/// A tree of sums whose discriminator comes last.
fn sums(at: &str, depth: usize) -> String {
    if depth == 0 {
        return format!("!!!ARG:{at}/value\n5\n!!!ARG:{at}/op\nname\n");
    }
    let below = ["left", "right"].map(|side| sums(&format!("{at}/{side}"), depth - 1));
    format!("{}!!!ARG:{at}/op\nadd\n", below.concat())
}

/// A recursive union is decided in bounded work, even if the discriminator comes after all other members.
#[test]
fn unions_inside_unions() {
    let sum = json!({"$ref": "#/$defs/sum"});
    let form = |name: &str, value: Value| json!({"type": "object", "required": ["op"], "properties": {"op": {"const": name}, "value": value, "left": sum, "right": sum}});
    let forms = [
        form("number", json!({"type": "number"})),
        form("flag", json!({"type": "boolean"})),
        form("name", json!({"type": "string"})),
        form("add", json!(false)),
    ];
    let schema = json!({"$defs": {"sum": {"oneOf": forms}}, "properties": {"x": sum}});
    let tool = tool(&schema);
    let text = format!("!!!GADGET_START:t\n{}!!!GADGET_END", sums("x", 9));
    let found = read(&tool, &text, &Dialect::block()).expect("it fits");
    let text = found.to_string();
    assert_eq!(text.matches(r#""value":"5""#).count(), 512, "{text}");
}
