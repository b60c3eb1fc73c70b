//! `plaincall tools list`: list tools.

use std::fmt::Write as _;

use clap::Args;
use plaincall::Tool;
use plaincall::tool::{CallExample, ToolSpec};
use serde_json::{Value, json};

use crate::commands::tools::SourceOptions;
use crate::environment::Environment;
use crate::output::Output;
use crate::runtime::block_on;
use crate::sanitize::sanitize;
use crate::settings::close_servers;
use crate::status::{Outcome, Status, end_at_signals};
use crate::terminal::interrupts::until_interrupted;

/// List tools with their effects, parameters and descriptions.
///
/// Parameters are listed with their types. A `?` marks an optional parameter.
///
/// Exit status: 0 on success; 1 if a file cannot be read or is invalid; 2 for wrong usage or configuration; 130 or 143 after a
/// signal. All MCP servers that were started are stopped.
#[derive(Args, Debug)]
pub(crate) struct ListOptions {
    /// Print one JSON object per tool: `name`, `effect`, `description`, `usage` (an example in the emoji syntax),
    /// `parameters` (a JSON Schema), and if there are any, `examples` (of calls, each with `arguments`, `comment` and
    /// `result`) and `hinted_effect` (of an MCP server).
    #[arg(long, short)]
    json: bool,

    #[command(flatten)]
    sources: SourceOptions,
}

pub(super) fn list(options: &ListOptions, output: &mut Output) -> Outcome {
    let environment = Environment::read();
    let toolbox = block_on(until_interrupted(async {
        let tool_setup = options.sources.tool_setup(&environment).await?;
        close_servers(tool_setup.servers).await;
        Ok(tool_setup.toolbox)
    }))?;
    let toolbox = match toolbox {
        Ok(toolbox) => toolbox,
        Err(interrupt) => return Ok(Status::Interrupted(interrupt.status())),
    };
    end_at_signals();
    for tool in toolbox.iter() {
        if options.json {
            output.json_line(&as_json(tool))?;
        } else {
            output.text(format_args!("{}", as_lines(tool)))?;
        }
    }
    output.flush()?;
    Ok(Status::Success)
}

fn as_json(tool: &Tool) -> Value {
    let spec = tool.spec();
    let mut value = json!({
        "name": spec.name,
        "effect": spec.effect.name(),
        "description": spec.description,
        "usage": spec.usage().to_string(),
        "parameters": spec.schema().document(),
    });
    let Value::Object(fields) = &mut value else {
        return value;
    };
    if let Some(hint) = spec.hinted_effect {
        fields.insert("hinted_effect".to_owned(), hint.name().into());
    }
    let examples = spec.call_examples();
    if !examples.is_empty() {
        let examples = examples.iter().map(|one| example(one));
        fields.insert("examples".to_owned(), examples.collect());
    }
    value
}

/// Returns an example of a call with the keys of `tools.toml`.
fn example(example: &CallExample) -> Value {
    let mut fields = json!({ "arguments": example.arguments });
    if !example.comment.is_empty() {
        fields["comment"] = example.comment.as_str().into();
    }
    if let Some(result) = &example.result {
        fields["result"] = result.as_str().into();
    }
    fields
}

fn as_lines(tool: &Tool) -> String {
    let spec = tool.spec();
    let effect = spec.effect.name();
    let hint = spec.hinted_effect.filter(|hint| *hint != spec.effect);
    let hint = hint.map(|hint| format!("; according to its server, {}", hint.name()));
    let hint = hint.unwrap_or_default();
    let sentence = first_sentence(&spec.description);
    let sentence = if sentence.is_empty() {
        "(no description)"
    } else {
        sentence
    };
    let usage = parameters(spec).replace('\n', " ");
    sanitize(&format!(
        "{effect:<10}  {usage}{hint}\n{:<10}  {sentence}\n",
        ""
    ))
}

/// Formats the name and parameters as in a prompt, but on one line.
fn parameters(spec: &ToolSpec) -> String {
    let mut text = spec.name.clone();
    for (index, parameter) in spec.parameters().iter().enumerate() {
        let separator = if index == 0 { "  " } else { ", " };
        let mark = if parameter.required { "" } else { "?" };
        let kind = parameter.kind.name();
        let _ = write!(text, "{separator}{}{mark}: {kind}", parameter.name);
    }
    text
}

/// Returns the first sentence of the first line of a description.
fn first_sentence(description: &str) -> &str {
    let line = description.trim().lines().next().unwrap_or_default();
    match line.find(". ") {
        Some(end) => line.get(..=end).unwrap_or(line),
        None => line,
    }
}
