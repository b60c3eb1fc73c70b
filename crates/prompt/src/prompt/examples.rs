//! Examples of calls in the list of tools (`spec/prompt.md` 3.1).

use std::borrow::Cow;

use plaincall_syntax::Dialect;
use serde_json::{Map, Value};

use super::notation::{comment, json};
use super::{PromptOptions, SkippedExample};
use crate::render_call::{JsonCall, render_call};
use plaincall_reply::{PromptTextBuilder, Trusted, Untrusted};
use plaincall_tool::{CallExample, ToolSpec};

/// The examples of a prompt, by tool.
pub(super) struct Examples {
    by_tool: Vec<Vec<RenderedExample>>,
    pub(super) skipped: Vec<SkippedExample>,
}

/// An example as text.
struct RenderedExample {
    heading: String,
    /// The rendered call: trusted text with escaped values.
    call: String,
    result: String,
}

impl Examples {
    /// Chooses examples of at most this total length. The first example of each tool comes before the second of any.
    pub(super) fn new<'t>(
        tools: &[&'t ToolSpec],
        dialect: &Dialect,
        options: &PromptOptions,
    ) -> Self {
        let mut left = options.example_bytes;
        let mut by_tool: Vec<Vec<RenderedExample>> = Vec::new();
        by_tool.resize_with(tools.len(), Vec::new);
        let is_listed =
            |one: &Cow<'_, CallExample>| !options.has_few_shot || one.question.is_none();
        let listed =
            |tool: &&'t ToolSpec| tool.call_examples().into_iter().filter(is_listed).collect();
        let given: Vec<Vec<_>> = tools.iter().map(listed).collect();
        let most = left;
        let rounds = given.iter().map(Vec::len).max().unwrap_or_default();
        let mut skipped = Vec::new();
        for index in 0..rounds {
            for ((tool, examples), written) in tools.iter().zip(&given).zip(&mut by_tool) {
                let Some(example) = examples.get(index) else {
                    continue;
                };
                let fitting = RenderedExample::new(tool, example, dialect).and_then(|one| {
                    let rest = left.checked_sub(one.len());
                    left =
                        rest.ok_or_else(|| format!("all examples together exceed {most} bytes"))?;
                    Ok(one)
                });
                match fitting {
                    Ok(one) => written.push(one),
                    Err(reason) => skipped.push(SkippedExample {
                        tool: tool.name.clone(),
                        index,
                        reason,
                    }),
                }
            }
        }
        Self { by_tool, skipped }
    }

    /// Writes the examples of the tool with this index.
    pub(super) fn write(&self, tool: usize, built: &mut PromptTextBuilder) {
        for one in self.by_tool.get(tool).into_iter().flatten() {
            built.untrusted(&Untrusted::new(&*one.heading));
            built.trusted(Trusted::assert(&*one.call));
            built.untrusted(&Untrusted::new(&*one.result));
        }
    }
}

impl RenderedExample {
    /// # Errors
    /// Returns the reason why the example is not a call of the tool.
    fn new(tool: &ToolSpec, example: &CallExample, dialect: &Dialect) -> Result<Self, String> {
        let arguments = example.arguments_for(tool)?;
        let comment = match comment(&example.comment) {
            text if text.trim().is_empty() => String::new(),
            text => format!(" // {}", text.trim()),
        };
        let (heading, call) = if let Some(call) = rendered(tool, arguments, dialect) {
            (format!("Example:{comment}\n"), call)
        } else {
            let arguments = json(&example.arguments);
            (
                format!("Example as JSON: {arguments}{comment}\n"),
                String::new(),
            )
        };
        let result = match &example.result {
            Some(output) => format!("Result: {}\n", on_one_line(output)),
            None => String::new(),
        };
        Ok(Self {
            heading,
            call,
            result,
        })
    }

    fn len(&self) -> usize {
        self.heading.len() + self.call.len() + self.result.len()
    }
}

/// Returns the call; `None` if the dialect cannot express it, or if a line of it looks like the first line of a tool.
fn rendered(tool: &ToolSpec, arguments: &Map<String, Value>, dialect: &Dialect) -> Option<String> {
    let call = JsonCall::new(&tool.name, arguments);
    let text = render_call(&call, Some(tool), dialect).ok()?;
    let mut lines = text.split([
        '\n', '\r', '\u{b}', '\u{c}', '\u{85}', '\u{2028}', '\u{2029}',
    ]);
    (!lines.any(|line| line.starts_with("## "))).then_some(text)
}

/// Returns a text as in results (`spec/history.md` 3) if it is one line, otherwise as JSON.
fn on_one_line(text: &str) -> String {
    let is_plain = !text.is_empty() && text.trim() == text && comment(text) == text;
    if is_plain {
        text.to_owned()
    } else {
        json(&text.into())
    }
}
