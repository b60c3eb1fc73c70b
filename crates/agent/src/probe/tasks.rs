//! The tasks, which are data: `tasks.json`.

use std::sync::LazyLock;

use plaincall::{Effect, call::ToolSpec};
use serde::Deserialize;
use serde_json::Value;

/// What stands for the end marker of the dialect in the texts of a task.
const MARKER: &str = "{MARKER}";

/// What the file says. That it can be read is tested.
static FILE: LazyLock<File> =
    LazyLock::new(|| serde_json::from_str(include_str!("tasks.json")).unwrap_or_default());

#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct File {
    tasks: Vec<Task>,
    tools: Vec<Definition>,
}

/// A task for a model: a question, tools, and what is to be done with them.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Task {
    /// Its name.
    pub name: &'static str,
    /// What is difficult about it.
    pub about: &'static str,
    pub(super) question: String,
    pub(super) tools: Vec<String>,
    /// The calls that are to be made. Without any, none may be.
    #[serde(default)]
    pub(super) steps: Vec<Step>,
    #[serde(default)]
    pub(super) is_together: bool,
    /// Words that the answer holds, in small letters.
    #[serde(default)]
    pub(super) answer: Vec<String>,
}

/// A call that is to be made, and its result or error.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Step {
    pub(super) tool: String,
    pub(super) arguments: Value,
    #[serde(default)]
    pub(super) result: String,
    pub(super) error: Option<String>,
    /// The steps, by number, without which it fails.
    #[serde(default)]
    pub(super) after: Vec<usize>,
    /// What it says then.
    #[serde(default)]
    pub(super) too_early: String,
    #[serde(default)]
    pub(super) is_optional: bool,
}

#[derive(Deserialize)]
struct Definition {
    name: String,
    description: String,
    effect: Effect,
    parameters: Value,
    positional: Option<Vec<String>>,
    body: Option<String>,
}

impl Task {
    /// The same with the end marker of a dialect in its texts.
    pub(super) fn with_marker(mut self, marker: &str) -> Self {
        self.question = self.question.replace(MARKER, marker);
        for step in &mut self.steps {
            put(&mut step.arguments, marker);
        }
        self
    }
}

fn put(value: &mut Value, marker: &str) {
    match value {
        Value::String(text) => *text = text.replace(MARKER, marker),
        Value::Object(fields) => fields.values_mut().for_each(|field| put(field, marker)),
        _ => {}
    }
}

/// The twelve tasks, the easy ones first.
pub fn tasks() -> Vec<Task> {
    FILE.tasks.clone()
}

pub(super) fn tool(name: &str) -> Option<ToolSpec> {
    let known = FILE.tools.iter().find(|known| known.name == name)?;
    let mut spec = ToolSpec::new(name)
        .describe(&known.description)
        .effect(known.effect)
        .parameters_from_schema(&known.parameters)
        .ok()?;
    spec.positional.clone_from(&known.positional);
    spec.body.clone_from(&known.body);
    Some(spec)
}
