//! Instructions for the next reply.

use plaincall_wire::openai::ResponseFormat;
use serde_json::Value;

use crate::tools::{Choice, OfferedTools};

/// Returns the instructions at the end of the request; empty if there are none. They must be escaped, since a custom marker may be
/// any word. `form` is the response format to describe here; `kept` stays in the request and is enforced by the server.
pub(super) fn instructions(
    choice: &Choice,
    offer: &OfferedTools,
    form: Option<&ResponseFormat<'_>>,
    kept: Option<&ResponseFormat<'_>>,
) -> String {
    // A structured answer is not text.
    let has_form = kept.is_some_and(|form| form.kind.as_deref() != Some("text"));
    let mut words = match choice {
        Choice::Auto => String::new(),
        Choice::None if offer.is_empty() => String::new(),
        Choice::None if has_form => "(Call no tool in this reply.)".to_owned(),
        Choice::None => "(Call no tool in this reply. Answer in text.)".to_owned(),
        Choice::Required => "(Call a tool in this reply.)".to_owned(),
        Choice::Only { names, is_required } => {
            let begin = match (is_required, names.len()) {
                (true, 1) => "(In this reply, call the tool ",
                (true, _) => "(In this reply, call one or more of these tools and no others: ",
                (false, _) => "(In this reply, call no tools but these: ",
            };
            format!("{begin}{}.)", names.join(", "))
        }
    };
    // A reply with a required call has no other format.
    if let Some(form) = form.filter(|_| !choice.is_required()) {
        let line = if words.is_empty() { "" } else { "\n" };
        words.extend(describe_format(form).map(|form| format!("{line}{form}")));
    }
    words
}

/// Describes the response format for replies without a call.
pub(super) fn describe_format(form: &ResponseFormat<'_>) -> Option<String> {
    let schema = match form.kind.as_deref() {
        Some("json_object") => None,
        Some("json_schema") => {
            let given = form.json_schema.as_ref();
            let given = given.and_then(|json| serde_json::from_str::<Value>(json.text()).ok());
            given.and_then(|mut given| given.get_mut("schema").map(Value::take))
        }
        _ => return None,
    };
    let schema = schema.map_or_else(String::new, |schema| {
        format!(". It must match this JSON Schema: {schema}")
    });
    Some(format!(
        "(If you call no tool, answer with JSON only, without a code fence{schema}.)"
    ))
}
