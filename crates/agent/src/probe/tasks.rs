//! The tasks, which are data: `tasks.json`.

use std::sync::LazyLock;

use plaincall::{Effect, call::ToolSpec};
use serde::Deserialize;
use serde_json::Value;

/// The placeholder for the end marker of the dialect.
const MARKER: &str = "{MARKER}";

/// The parsed file. A test checks that it is valid.
static FILE: LazyLock<File> =
    LazyLock::new(|| serde_json::from_str(include_str!("tasks.json")).unwrap_or_default());

#[derive(Default, Deserialize)]
#[serde(bound(deserialize = "'de: 'static"))]
struct File {
    tasks: Vec<Task>,
    tools: Vec<Definition>,
}

/// A task: a question, tools, and the expected calls.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[non_exhaustive]
pub struct Task {
    /// Its name.
    pub name: &'static str,
    /// Its difficulty.
    pub about: &'static str,
    pub(super) question: String,
    pub(super) tools: Vec<String>,
    /// The expected calls. Without any, no call is allowed.
    #[serde(default)]
    pub(super) steps: Vec<Step>,
    #[serde(default)]
    pub(super) is_together: bool,
    /// Lower-case words that the answer contains.
    #[serde(default)]
    pub(super) answer: Vec<String>,
}

/// An expected call, and its result or error.
#[derive(Clone, Debug, PartialEq, Deserialize)]
pub(super) struct Step {
    pub(super) tool: String,
    pub(super) arguments: Value,
    #[serde(default)]
    pub(super) result: String,
    pub(super) error: Option<String>,
    /// The indexes of the steps that must come before.
    #[serde(default)]
    pub(super) after: Vec<usize>,
    /// The error if they did not.
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
    /// Inserts the end marker of a dialect.
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

/// Returns the twelve tasks, easy ones first.
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
