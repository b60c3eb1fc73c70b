//! The texts that a model would get: prompt, repair message and grammar.

use plaincall_grammar::{Engine, GrammarOptions, grammar};
use plaincall_prompt::{PromptOptions, prompt, repair::repair_document};
use plaincall_reply::{ModelText, openai::openai_calls};
use serde::Serialize;
use serde_json::{Map, Value};

use crate::settings::Inspected;

/// The calls as an array of an `OpenAI` client, and those that are not in it.
#[derive(Serialize)]
pub(crate) struct JsonView {
    tool_calls: Vec<Value>,
    skipped: Vec<Skipped>,
    /// How many calls have dependencies, for which the format has no place.
    dependent: usize,
}

#[derive(Serialize)]
struct Skipped {
    id: String,
    reasons: Vec<String>,
}

#[derive(Serialize)]
pub(crate) struct GrammarView {
    text: String,
    /// The keywords of the definitions that the grammar does not hold.
    notes: Vec<String>,
    /// The fields of a request that carry the grammar.
    fields: Map<String, Value>,
}

pub(crate) fn tool_calls(inspected: &Inspected) -> Result<JsonView, String> {
    // Nothing here can approve a call.
    let read = inspected.decided_by(inspected.check()?.without_gate())?;
    let found = openai_calls(&read);
    let skipped = found.skipped.into_iter().map(|call| Skipped {
        id: call.id,
        reasons: call.reasons,
    });
    let calls = read.calls();
    Ok(JsonView {
        tool_calls: found.tool_calls,
        skipped: skipped.collect(),
        dependent: calls.filter(|call| !call.dependencies.is_empty()).count(),
    })
}

pub(crate) fn prompt_text(inspected: &Inspected) -> Result<String, String> {
    let tools = inspected.needs_tools()?;
    let dialect = inspected.one_syntax()?;
    let prompt = prompt(tools.iter(), &dialect, &PromptOptions::new());
    Ok(prompt.map_err(|error| error.to_string())?.into_text())
}

/// Returns the message about invalid calls; `None` if there are none.
pub(crate) fn repair(inspected: &Inspected) -> Result<Option<String>, String> {
    let tools = inspected.needs_tools()?;
    let dialect = inspected.one_syntax()?;
    let text = ModelText::new(inspected.source.text.as_str());
    let message = repair_document(&inspected.decided()?, &text, tools, &dialect);
    let message = message.map_err(|error| error.to_string())?;
    Ok(message.map(|message| message.text().to_owned()))
}

pub(crate) fn grammar_text(inspected: &Inspected, engine: &str) -> Result<GrammarView, String> {
    let tools = inspected.needs_tools()?;
    let engine = Engine::from_name(engine).ok_or_else(|| format!("unknown engine `{engine}`"))?;
    let made = grammar(
        tools.iter(),
        &inspected.one_syntax()?,
        &GrammarOptions::new(),
    )
    .map_err(|error| error.to_string())?;
    Ok(GrammarView {
        text: made.text(engine),
        notes: made
            .unheld_by(engine)
            .iter()
            .map(ToString::to_string)
            .collect(),
        fields: made.request_fields(engine),
    })
}
