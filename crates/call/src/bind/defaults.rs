//! The defaults of parameters that a call does not have (`spec/block.md` 7.7.1).

use plaincall_syntax::Span;
use serde_json::Value;

use crate::arguments::Arguments;
use crate::bind::emoji::place;
use crate::tool::ToolSpec;

/// Adds the defaults of absent parameters, if the tool does not apply them itself. A default that the schema does not allow, and
/// null, change nothing.
pub(crate) fn add_defaults(tool: &ToolSpec, span: Span, arguments: &mut Arguments) {
    if !tool.has_defaults_filled() {
        return;
    }
    let reader = tool.schema().reader();
    let given = arguments.to_value();
    let root = reader.narrow_to(&reader.root(), &given);
    for parameter in tool.parameters() {
        let Some(default) = parameter.default().filter(|value| !value.is_null()) else {
            continue;
        };
        if given.get(&parameter.name).is_some() {
            continue;
        }
        let text = match default {
            Value::String(text) => text.clone(),
            other => other.to_string(),
        };
        let allowed = reader.member(&root, &parameter.name);
        let spelling = reader.json_spelling(&allowed, default, &text);
        if spelling.type_error.is_none() {
            let (text_type, rule) = (spelling.text_type, spelling.rule);
            place(arguments, &parameter.name, &text, span, text_type, rule);
        }
    }
}
