//! Examples of calls: they are calls of their tools, and fit into the prompt's limit.

use plaincall_prompt::{Prompt, PromptOptions, PromptPart, prompt};
use plaincall_reply::{Document, bind};
use plaincall_syntax::Dialect;
use plaincall_tool::definitions::{read_tool_definitions, read_usable_tools};
use plaincall_tool::{CallExample, Parameter, ParameterKind, ToolSpec};
use serde_json::{Value, json};

fn made(tools: &[ToolSpec], dialect: &Dialect, options: &PromptOptions) -> Prompt {
    prompt(tools, dialect, options).expect("a dialect that works")
}

fn dialects() -> [Dialect; 5] {
    [
        Dialect::block().escaped(),
        Dialect::emoji().escaped(),
        Dialect::block().keyed("k3v9"),
        Dialect::emoji().self_closing().escaped(),
        Dialect::block()
            .start("Example")
            .end("Result")
            .arg("=>")
            .escaped(),
    ]
}

/// Returns the arguments of the calls in the list of tools, as the parser reads them.
fn read_back(tool: &ToolSpec, dialect: &Dialect) -> Vec<Value> {
    let made = made(std::slice::from_ref(tool), dialect, &PromptOptions::new());
    let list = made.part(PromptPart::Tools).expect("a list");
    let document = Document::parse(list, dialect).expect("a dialect");
    let calls = document.calls();
    calls
        .map(|call| bind(tool, call).expect("valid arguments").to_value())
        .collect()
}

fn note() -> ToolSpec {
    ToolSpec::new("note")
        .parameter(Parameter::new("at", ParameterKind::Integer))
        .parameter(Parameter::new("text", ParameterKind::String))
        .body("text")
}

/// The values of the rendered examples are exactly the given ones, even if they contain markers.
#[test]
fn examples_are_calls_in_every_dialect() {
    let texts = [
        "plain",
        "two\nlines\n",
        "!!!GADGET_END",
        "a\n!!!ARG:at\n5",
        "🛠️[/end] 🛠️[rm all]",
        "Example: Result =>",
        "\"quoted\" \\ and [brackets]",
    ];
    for dialect in &dialects() {
        for text in texts {
            let arguments = json!({"at": 7, "text": text});
            let example = CallExample::new(arguments.clone())
                .result(text)
                .comment(text);
            let tool = note().example(example);
            assert_eq!(
                read_back(&tool, dialect),
                [arguments],
                "{text:?} {dialect:?}"
            );
        }
    }
}

#[test]
fn an_example_must_be_a_call_of_its_tool() {
    let check = |arguments: Value, problem: &str| {
        let tool = note().example(CallExample::new(arguments.clone()));
        let error = tool.check().expect_err(problem);
        assert_eq!(error.at, "/examples/0/arguments");
        assert!(error.message.contains(problem), "{}", error.message);
        // From outside, it is omitted, and the others stay.
        let schema = note().to_schema();
        let definition = json!({"name": "note", "input_schema": schema, "input_examples": [arguments, {"at": 1, "text": "a"}]});
        let Ok(tools) = read_tool_definitions(&definition.to_string()) else {
            return;
        };
        let prompt = made(&tools, &Dialect::block(), &PromptOptions::new());
        let [skipped] = prompt.skipped_examples() else {
            panic!("{:?}", prompt.skipped_examples());
        };
        assert_eq!((&*skipped.tool, skipped.index), ("note", 0));
        assert!(skipped.reason.contains(problem), "{skipped}");
        assert_eq!(
            prompt.text().matches("\nExample").count(),
            1,
            "{}",
            prompt.text()
        );
    };
    check(json!([1]), "must be an object");
    check(json!({"at": 1}), "missing required parameter `text`");
    check(json!({"at": "x", "text": "a"}), "expected an integer");
    check(
        json!({"at": 1, "text": "a", "too": 5}),
        "unknown parameter `too`",
    );
    assert!(
        note()
            .example(CallExample::new(json!({"at": 1, "text": ""})))
            .check()
            .is_ok()
    );
}

/// No example is lost before the prompt: beside those of the schema, and in a definition with errors.
#[test]
fn all_examples_of_a_definition_are_kept() {
    let schema = json!({"type": "object", "properties": {"a": {"type": "string"}}, "examples": [{"a": "x"}, {"a": "y"}]});
    let definition =
        json!({"name": "t", "input_schema": schema, "input_examples": [{"a": "y"}, {"a": "z"}]});
    let expected = [json!({"a": "x"}), json!({"a": "y"}), json!({"a": "z"})];
    let tools = read_tool_definitions(&definition.to_string()).expect("definitions");
    assert_eq!(read_back(&tools[0], &Dialect::block()), expected);
    assert_eq!(read_back(&tools[0], &Dialect::emoji()), expected);

    let mut broken = definition.clone();
    broken["input_schema"]["properties"]["b"] = json!({"type": "nonsense"});
    let usable = read_usable_tools([&*broken.to_string()]);
    assert_eq!(usable.changed.len(), 1);
    assert_eq!(read_back(&usable.tools[0], &Dialect::block()), expected);
}

#[test]
fn examples_share_a_limit() {
    let tool = |name: &str| {
        let long = |text: &str| CallExample::new(json!({"at": 1, "text": text.repeat(100)}));
        let mut tool = note();
        tool.name = name.to_owned();
        tool.example(long("a")).example(long("b"))
    };
    let tools = [tool("one"), tool("two")];
    for dialect in &dialects()[..2] {
        let all = made(&tools, dialect, &PromptOptions::new());
        assert_eq!(all.skipped_examples(), []);
        let none = made(&tools, dialect, &PromptOptions::new().example_bytes(0));
        assert_eq!(none.skipped_examples().len(), 4);
        let without: Vec<ToolSpec> = tools
            .iter()
            .cloned()
            .map(|mut tool| {
                tool.examples.clear();
                tool
            })
            .collect();
        let plain = made(&without, dialect, &PromptOptions::new());
        assert_eq!(none.text(), plain.text());
        let length = all.text().len() - none.text().len();
        for most in [length / 4, length / 2, length / 2 + 1, length - 1, length] {
            let some = made(&tools, dialect, &PromptOptions::new().example_bytes(most));
            let used = some.text().len() - none.text().len();
            assert!(used <= most, "{used} of {most}");
            let skipped: Vec<usize> = some
                .skipped_examples()
                .iter()
                .map(|one| one.index)
                .collect();
            let expected: &[usize] = match most {
                most if most < length / 2 => &[0, 1, 1],
                most if most < length - 1 => &[1, 1],
                most if most < length => &[1],
                _ => &[],
            };
            assert_eq!(skipped, expected, "{most}");
        }
    }
}
