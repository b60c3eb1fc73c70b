//! A call that no call can spell, as one line of JSON (`spec/history.md` 2).

use serde_json::{Map, Value, json};

use crate::history::{PastArguments, PastCall};
use crate::json_text::on_one_line;
use crate::untrusted::Untrusted;

/// The call with a line end, not yet escaped. `object` is what its arguments are, if they are an object.
pub(crate) fn in_json(call: &PastCall<'_>, object: Option<&Map<String, Value>>) -> String {
    let mut told = Map::new();
    told.insert("name".to_owned(), call.name.raw().into());
    if let Some(id) = &call.id {
        told.insert("id".to_owned(), id.raw().into());
    }
    if !call.dependencies.is_empty() {
        let ids: Vec<&str> = call.dependencies.iter().map(Untrusted::raw).collect();
        told.insert("dependencies".to_owned(), json!(ids));
    }
    let arguments = match (object, &call.arguments) {
        (Some(object), _) => Value::Object(object.clone()),
        (None, PastArguments::Text(text)) => text.raw().into(),
        (None, PastArguments::Object(object)) => Value::Object((*object).clone()),
    };
    told.insert("arguments".to_owned(), arguments);
    let json = on_one_line(&Value::Object(told));
    format!("(A call this syntax cannot express, as JSON: {json})\n")
}

pub(crate) fn json_string(text: &str) -> String {
    on_one_line(&Value::from(text))
}
