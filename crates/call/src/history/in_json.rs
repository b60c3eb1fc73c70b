//! A call that no call can spell, as one line of JSON (`spec/history.md` 2).

use std::fmt::Write as _;

use serde_json::{Map, Value, json};

use crate::foreign::Foreign;
use crate::history::{PastArguments, PastCall};

/// The call with a line end, not yet escaped. `object` is what its arguments are, if they are an object.
pub(crate) fn in_json(call: &PastCall<'_>, object: Option<&Map<String, Value>>) -> String {
    let mut told = Map::new();
    told.insert("name".to_owned(), call.name.raw().into());
    if let Some(id) = &call.id {
        told.insert("id".to_owned(), id.raw().into());
    }
    if !call.dependencies.is_empty() {
        let ids: Vec<&str> = call.dependencies.iter().map(Foreign::raw).collect();
        told.insert("dependencies".to_owned(), json!(ids));
    }
    let arguments = match (object, &call.arguments) {
        (Some(object), _) => Value::Object(object.clone()),
        (None, PastArguments::Text(text)) => text.raw().into(),
        (None, PastArguments::Object(object)) => Value::Object((*object).clone()),
    };
    told.insert("arguments".to_owned(), arguments);
    let json = on_one_line(&Value::Object(told).to_string());
    format!("(A call that the syntax cannot spell, as JSON: {json})\n")
}

/// A text as a JSON string on one line.
pub(crate) fn json_string(text: &str) -> String {
    on_one_line(&Value::from(text).to_string())
}

/// JSON without a character that somebody might take for a line end: in JSON, such characters stand in strings only.
fn on_one_line(json: &str) -> String {
    let mut line = String::with_capacity(json.len());
    for c in json.chars() {
        if c.is_control() || matches!(c, '\u{2028}' | '\u{2029}') {
            let _ = write!(line, "\\u{:04x}", u32::from(c));
        } else {
            line.push(c);
        }
    }
    line
}
