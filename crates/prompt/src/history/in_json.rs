//! A call that the syntax cannot express, as one line of JSON (`spec/history.md` 2).

use serde_json::{Map, Value, json};

use crate::history::{PastArguments, PastCall};
use plaincall_reply::Untrusted;
use plaincall_tool::json_text::on_one_line;

/// Returns the call with a line end, not yet escaped. `object` holds the arguments, if they are an object.
pub(crate) fn in_json(call: &PastCall<'_>, object: Option<&Map<String, Value>>) -> String {
    let mut fields = Map::new();
    fields.insert("name".to_owned(), call.name.raw().into());
    if let Some(id) = &call.id {
        fields.insert("id".to_owned(), id.raw().into());
    }
    if !call.dependencies.is_empty() {
        let ids: Vec<&str> = call.dependencies.iter().map(Untrusted::raw).collect();
        fields.insert("dependencies".to_owned(), json!(ids));
    }
    let arguments = match (object, &call.arguments) {
        (Some(object), _) => Value::Object(object.clone()),
        (None, PastArguments::Text(text)) => text.raw().into(),
        (None, PastArguments::Object(object)) => Value::Object((*object).clone()),
    };
    fields.insert("arguments".to_owned(), arguments);
    let json = on_one_line(&Value::Object(fields));
    format!("(A call this syntax cannot express, as JSON: {json})\n")
}
