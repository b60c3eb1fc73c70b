//! Prompts: complete texts, their examples and their length, and that they omit nothing.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

mod call_examples;
mod definition;
mod examples;
mod keywords;
mod limits;
mod options;
mod random;

mod snapshots;
pub(crate) mod tokens;

use std::path::{Path, PathBuf};

use plaincall_prompt::{PromptOptions, PromptPart, prompt};
use plaincall_syntax::Dialect;
use plaincall_tool::{ToolSpec, definitions::read_tool_definitions};
use serde_json::{Value, json};

/// The folder of these tests.
fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/prompt")
}

/// The sets of tools, each with its name.
fn tool_sets() -> Vec<(String, Vec<ToolSpec>)> {
    let entries = std::fs::read_dir(folder().join("tools")).expect("the folder");
    let mut sets: Vec<(String, Vec<ToolSpec>)> = entries
        .map(|entry| {
            let path = entry.expect("an entry").path();
            let name = path
                .file_stem()
                .expect("a name")
                .to_string_lossy()
                .into_owned();
            let text = std::fs::read_to_string(&path).expect("a text");
            let tools =
                read_tool_definitions(&text).unwrap_or_else(|error| panic!("{name}: {error}"));
            (name, tools)
        })
        .collect();
    sets.sort_by(|one, other| one.0.cmp(&other.0));
    sets
}

fn tools_of(set: &str) -> Vec<ToolSpec> {
    let found = tool_sets().into_iter().find(|(name, _)| name == set);
    found.unwrap_or_else(|| panic!("no tools {set}")).1
}

/// Returns the list of tools in a prompt.
fn listed<'t>(tools: impl IntoIterator<Item = &'t ToolSpec>, dialect: &Dialect) -> String {
    let prompt = prompt(tools, dialect, &PromptOptions::new()).expect("a dialect that works");
    prompt.part(PromptPart::Tools).expect("a list").to_owned()
}

/// The same tools as minified JSON.
fn minified(tools: &[ToolSpec]) -> String {
    let tools: Vec<Value> = tools
        .iter()
        .map(|tool| json!({"name": tool.name, "description": tool.description, "parameters": tool.schema().document()}))
        .collect();
    Value::from(tools).to_string()
}

/// Creates a tool with a parameter `p` of this schema, and the targets of its references; `None` if it is invalid.
fn tool_with(schema: &Value, definitions: &Value) -> Option<ToolSpec> {
    let mut whole = json!({"type": "object", "properties": {"p": schema}});
    if schema.to_string().contains("$ref") {
        whole["$defs"] = definitions.clone();
    }
    tool_of(&whole)
}

/// Creates a tool with arguments of this schema; `None` if it is invalid.
fn tool_of(schema: &Value) -> Option<ToolSpec> {
    ToolSpec::new("tool").parameters_from_schema(schema).ok()
}
