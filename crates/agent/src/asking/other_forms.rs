//! Calls in forms that are not ours: models write what they were trained on.

use plaincall::Toolbox;
use serde_json::{Deserializer, Value};

/// How calls begin in the forms that widely used models were trained on.
const BEGINNINGS: [&str; 9] = [
    "<tool_call>",
    "<|tool_call",
    "<function=",
    "<function_call>",
    "<invoke name=",
    "<|python_tag|>",
    "[TOOL_CALLS]",
    "```tool_call",
    "```tool_code",
];
/// How many objects of a reply are looked at, and how much of it.
const MOST_OBJECTS: usize = 32;
const MOST_BYTES: usize = 64 << 10;

/// Whether a reply without a call looks as if it held one in another form: a tag of such a form, or JSON that names one of
/// the tools and its arguments.
pub(super) fn is_other_form(reply: &str, tools: &Toolbox) -> bool {
    has_beginning(reply) || calls_by_json(reply, tools)
}

/// Whether a text from outside speaks of such forms, so that a reply may only quote it.
pub(crate) fn speaks_of_calls(text: &str) -> bool {
    has_beginning(text) || text.contains("\"arguments\"") || text.contains("\"parameters\"")
}

fn has_beginning(text: &str) -> bool {
    BEGINNINGS.iter().any(|beginning| text.contains(beginning))
}

fn calls_by_json(reply: &str, tools: &Toolbox) -> bool {
    let end = reply.floor_char_boundary(MOST_BYTES);
    let mut rest = reply.get(..end).unwrap_or_default();
    for _ in 0..MOST_OBJECTS {
        let Some(start) = rest.find('{') else {
            return false;
        };
        rest = rest.get(start..).unwrap_or_default();
        let mut values = Deserializer::from_str(rest).into_iter::<Value>();
        let read = match values.next() {
            Some(Ok(value)) if names_tool(&value, tools) => return true,
            Some(Ok(_)) => values.byte_offset(),
            Some(Err(_)) | None => 1,
        };
        rest = rest.get(read..).unwrap_or_default();
    }
    false
}

/// Whether this is how other forms write a call of one of the tools.
fn names_tool(value: &Value, tools: &Toolbox) -> bool {
    let called = value
        .get("function")
        .filter(|function| function.is_object());
    let called = called.unwrap_or(value);
    let named = ["name", "tool", "tool_name", "function", "action"];
    let given = [
        "arguments",
        "parameters",
        "args",
        "input",
        "tool_input",
        "action_input",
    ];
    let name = named.iter().find_map(|key| called.get(key)?.as_str());
    name.is_some_and(|name| tools.get(name).is_some())
        && given.iter().any(|key| called.get(key).is_some())
}

#[cfg(test)]
mod tests {
    use plaincall::{Tool, Toolbox};

    use super::is_other_form;

    #[test]
    fn what_looks_like_a_call_in_another_form() {
        let days = Tool::new("days", |(): (), _| async { Ok(String::new()) });
        let tools = Toolbox::new([days]).unwrap();
        let check = |reply: &str, expected: bool| {
            assert_eq!(is_other_form(reply, &tools), expected, "{reply}");
        };
        check("<tool_call>{\"name\": \"days\"}</tool_call>", true);
        check(
            "[TOOL_CALLS][{\"name\": \"days\", \"arguments\": {}}]",
            true,
        );
        check("```tool_code\ndays()\n```", true);
        check(
            "```json\n{\"name\": \"days\", \"arguments\": {}}\n```",
            true,
        );
        check(
            "I call {\"tool\": \"days\", \"args\": {\"a\": [1]}} now.",
            true,
        );
        check(
            "{\"function\": {\"name\": \"days\", \"arguments\": \"{}\"}}",
            true,
        );
        check("{broken {\"name\": \"days\", \"parameters\": {}}", true);
        check("{\"name\": \"nights\", \"arguments\": {}}", false);
        check("{\"name\": \"days\"}", false);
        check("There are days with {curly} braces { and \"name\".", false);
        check("", false);
        check(&"{".repeat(100_000), false);
    }
}
