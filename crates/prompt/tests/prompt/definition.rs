//! The examples of `spec/prompt.md`: a tool as JSON, and its entry in the list.

use plaincall_prompt::{PromptOptions, PromptPart, prompt};
use plaincall_syntax::Dialect;
use plaincall_tool::{CallExample, ToolSpec, definitions::read_tool_definitions};
use serde_json::Value;

/// The fenced blocks of the file: their info strings and their contents.
fn fences(text: &str) -> Vec<(&str, String)> {
    let mut found = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(words) = line.strip_prefix("```") {
            let content: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
            found.push((words, content.join("\n")));
        }
    }
    found
}

fn tool(definition: &str) -> ToolSpec {
    let tools =
        read_tool_definitions(definition).unwrap_or_else(|error| panic!("{definition}: {error}"));
    let tool = tools.into_iter().next().expect("a tool");
    // The additions of our own definitions.
    let value: Value = serde_json::from_str(definition).expect("JSON");
    let tool = match value["body"].as_str() {
        Some(body) => tool.body(body),
        None => tool,
    };
    let examples = value["examples"].as_array().into_iter().flatten();
    examples.fold(tool, |tool, example| {
        let mut made = CallExample::new(example["arguments"].clone());
        made.result = example["result"].as_str().map(str::to_owned);
        example["comment"]
            .as_str()
            .unwrap_or_default()
            .clone_into(&mut made.comment);
        tool.example(made)
    })
}

#[test]
fn the_definition_holds() {
    let path = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("../../spec/prompt.md");
    let text = std::fs::read_to_string(path).expect("spec/prompt.md");
    let fences = fences(&text);
    let mut count = 0;
    let mut fences = fences.iter();
    while let Some((words, definition)) = fences.next() {
        let mut words = words.split(' ').skip_while(|word| *word == "list");
        let dialect = match words.next() {
            Some("block") => Dialect::block(),
            Some("emoji") => Dialect::emoji(),
            other => panic!("what is {other:?}?"),
        };
        let mut options = PromptOptions::new();
        if let Some(length) = words.next() {
            options = options.description_length(length.parse().expect("a length"));
        }
        let (kind, expected) = fences.next().expect("a listing");
        assert_eq!(*kind, "text", "{definition}");
        let made = prompt([&tool(definition)], &dialect, &options);
        let made = made.expect("a dialect that works");
        let listed = made.part(PromptPart::Tools).expect("a list").trim_end();
        assert_eq!(listed, expected, "{definition}");
        count += 1;
    }
    assert!(count >= 12, "{count} examples");
}
