//! JSON in the prompt, as programs write it by hand.

use std::fmt::Write as _;

use plaincall_agent::model::{NativeMessage, NativeTool};
use serde_json::json;

use crate::task;

/// The beginning of the instructions.
pub(crate) const BEGIN: &str =
    "You can use tools. To call a tool, write a JSON object in a fenced code block:";

/// Returns the instructions with the tools.
pub(crate) fn system(tools: &[NativeTool]) -> String {
    format!(
        r#"{BEGIN}

```json
{{"name": "TOOL", "arguments": {{"ARGUMENT": "VALUE"}}}}
```

Write strings as JSON requires: line ends as \n, quotation marks as \", backslashes as \\. You may write several blocks in one reply if the calls do not depend on each other. After your calls, stop: the next message has their results. When you need no more results, answer without a JSON object.

The tools, with the JSON Schema of their arguments:

{}"#,
        definitions(tools)
    )
}

/// Returns the few-shot examples of these tools as messages, and the one without a call.
pub(crate) fn examples(tools: &[String]) -> Vec<NativeMessage> {
    let is_shown = |name: &Option<String>| name.as_ref().is_none_or(|name| tools.contains(name));
    let answered = |text: String| NativeMessage::Assistant {
        text,
        calls: Vec::new(),
    };
    let mut messages = Vec::new();
    for example in task::examples() {
        if !is_shown(&example.tool) {
            continue;
        }
        messages.push(NativeMessage::User(example.question.clone()));
        if let Some(tool) = &example.tool {
            let call = json!({"name": tool, "arguments": example.arguments});
            messages.push(answered(format!("```json\n{call}\n```")));
            messages.push(NativeMessage::User(result(1, tool, &example.result)));
        }
        messages.push(answered(example.answer.clone()));
    }
    messages
}

/// Returns the definitions of tools, one per line.
pub(crate) fn definitions(tools: &[NativeTool]) -> String {
    let mut text = String::new();
    for tool in tools {
        let definition = json!({
            "name": tool.name,
            "description": tool.description,
            "parameters": tool.parameters,
        });
        let _ = writeln!(text, "{definition}");
    }
    text
}

/// Returns the result of a call in the message for the model.
pub(crate) fn result(number: usize, name: &str, text: &str) -> String {
    format!("Result {number} ({name}):\n{text}\n\n")
}

/// Returns the message about JSON that cannot be parsed.
pub(crate) fn invalid(error: &str) -> String {
    format!("the JSON of this call is invalid: {error}. Write the call again.")
}
