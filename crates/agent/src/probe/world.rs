//! The environment of a task: tools that return its results and record their calls.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use plaincall::{Context, Effect, Tool, ToolResult, call::Arguments};
use serde_json::Value;

use super::tasks::{Step, Task, tool};
use crate::text::one_line;

/// How much of arguments or an answer is shown, in bytes.
const LINE: usize = 160;

pub(super) struct World {
    pub(super) task: Task,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    calls: Vec<Called>,
    /// The replies of calls, by the index of the call.
    replies: HashMap<u32, u32>,
}

struct Called {
    number: u32,
    tool: String,
    arguments: Value,
    effect: Effect,
    step: Option<usize>,
}

impl World {
    pub(super) fn new(task: Task) -> Self {
        Self {
            task,
            seen: Mutex::default(),
        }
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn tools(world: &Arc<Self>) -> Vec<Tool> {
        let specs = world.task.tools.iter().filter_map(|name| tool(name));
        let tools = specs.map(|spec| {
            let world = Arc::clone(world);
            let (name, effect) = (spec.name.clone(), spec.effect);
            Tool::raw(spec, move |arguments: Arguments, context: Context| {
                let result = world.call(context.call(), &name, effect, arguments.to_value());
                async { result }
            })
        });
        tools.collect()
    }

    pub(super) fn appeared(&self, number: u32, reply: u32) {
        self.seen().replies.insert(number, reply);
    }

    fn call(&self, number: u32, tool: &str, effect: Effect, arguments: Value) -> ToolResult {
        let mut seen = self.seen();
        let fits = |step: &Step| step.tool == tool && same(&step.arguments, &arguments);
        let is_done = |index: usize| seen.calls.iter().any(|call| call.step == Some(index));
        let step = self.task.steps.iter().position(fits);
        let result = match step.and_then(|index| self.task.steps.get(index)) {
            Some(step) if !step.after.iter().all(|before| is_done(*before)) => {
                return Err(step.too_early.clone().into());
            }
            Some(step) => match &step.error {
                Some(error) => Err(error.clone().into()),
                None => Ok(step.result.clone()),
            },
            None => Err(format!("`{tool}` has no result for these values").into()),
        };
        seen.calls.push(Called {
            number,
            tool: tool.to_owned(),
            arguments,
            effect,
            step,
        });
        result
    }

    /// Checks that exactly the requested work was done.
    pub(super) fn check(&self, answer: &str) -> Result<(), String> {
        let seen = self.seen();
        let task = &self.task;
        if task.steps.is_empty()
            && let Some(call) = seen.calls.first()
        {
            return Err(format!("called `{}`, where no call is needed", call.tool));
        }
        for call in &seen.calls {
            if call.step.is_none() && call.effect != Effect::Read {
                let arguments = one_line(&call.arguments.to_string(), LINE);
                return Err(format!("called `{}` with {arguments}", call.tool));
            }
        }
        let mut replies = Vec::new();
        for (index, step) in task.steps.iter().enumerate() {
            let calls = || seen.calls.iter().filter(|call| call.step == Some(index));
            let Some(first) = calls().next() else {
                if step.is_optional {
                    continue;
                }
                let arguments = one_line(&step.arguments.to_string(), LINE);
                return Err(format!("did not call `{}` with {arguments}", step.tool));
            };
            if calls().count() > 1 && first.effect == Effect::Write {
                return Err(format!("called `{}` more than once", step.tool));
            }
            replies.push(seen.replies.get(&first.number));
        }
        if task.is_together && replies.windows(2).any(|two| two.first() != two.last()) {
            return Err("did not write all calls in one reply".to_owned());
        }
        let small = answer.to_lowercase();
        match task
            .answer
            .iter()
            .find(|word| !small.contains(word.as_str()))
        {
            Some(word) => Err(format!(
                "the answer does not contain `{word}`: {}",
                one_line(answer, LINE)
            )),
            None => Ok(()),
        }
    }
}

/// Whether a value is as expected. Single lines may differ in case and surrounding whitespace, other texts in final line
/// endings.
fn same(expected: &Value, found: &Value) -> bool {
    match (expected, found) {
        (Value::String(expected), Value::String(found)) => {
            if expected.trim_end().contains('\n') || found.trim_end().contains('\n') {
                expected.trim_end_matches(['\r', '\n']) == found.trim_end_matches(['\r', '\n'])
            } else {
                expected.trim().to_lowercase() == found.trim().to_lowercase()
            }
        }
        (Value::Number(expected), Value::Number(found)) => expected.as_f64() == found.as_f64(),
        (Value::Array(expected), Value::Array(found)) => {
            expected.len() == found.len()
                && expected
                    .iter()
                    .zip(found)
                    .all(|(expected, found)| same(expected, found))
        }
        (Value::Object(expected), Value::Object(found)) => {
            expected.len() == found.len()
                && expected.iter().all(|(name, expected)| {
                    found.get(name).is_some_and(|found| same(expected, found))
                })
        }
        (expected, found) => expected == found,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::same;

    #[test]
    fn what_counts_as_the_same() {
        for (expected, found, is_same) in [
            (json!("Oslo"), json!(" oslo"), true),
            (json!("Oslo"), json!("Oslo, Norway"), false),
            (json!("a\nb\n"), json!("a\nb"), true),
            (json!("a\n b"), json!("a\nb"), false),
            (json!("a\nB"), json!("a\nb"), false),
            (json!(4), json!(4.0), true),
            (json!(4), json!("4"), false),
            (
                json!({"a": [1, {"b": "c"}]}),
                json!({"a": [1.0, {"b": "C"}]}),
                true,
            ),
            (json!({"a": 1}), json!({"a": 1, "b": 2}), false),
            (json!([1, 2]), json!([2, 1]), false),
            (json!(true), json!(true), true),
        ] {
            assert_eq!(same(&expected, &found), is_same, "{expected} {found}");
        }
    }
}
