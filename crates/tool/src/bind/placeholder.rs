//! Values that a model copied from a repair message: placeholders (`spec/repair.md` 3).

use serde_json::Value;

use crate::argument_error::quoted;
use crate::bind::Problems;
use crate::schema::{AllowedValues, Kinds, SchemaReader, TypeError};
use crate::text_type::{TextType, trimmed};
use crate::{Arguments, ToolSpec};

/// Reports each argument that is a placeholder, or JSON with one.
pub(crate) fn report(tool: &ToolSpec, arguments: &Arguments, problems: &mut Problems) {
    let reader = tool.schema().reader();
    for leaf in &arguments.leaves {
        let text = arguments.text(leaf);
        let is_json = leaf.text_type == TextType::Json;
        let may_be = trimmed(text).starts_with('<') || (is_json && text.contains("\"<"));
        if !may_be {
            continue;
        }
        let (allowed, value) = (reader.at(&leaf.pointer), leaf.text_type.value(text));
        if let Some(error) = found(&reader, &allowed, &value) {
            problems.type_error(&leaf.pointer, leaf.span, &error);
        }
    }
    problems.steps += reader.steps_taken();
}

/// Returns the first placeholder in a value. Recurses as deep as the value.
fn found<'s>(
    reader: &SchemaReader<'s>,
    allowed: &AllowedValues<'s>,
    value: &Value,
) -> Option<TypeError> {
    match value {
        Value::String(text)
            if allowed.kinds().has(Kinds::STRING) && is_placeholder(text, allowed) =>
        {
            Some(TypeError {
                expected: allowed.in_words(),
                found: format!("the placeholder {}", quoted(text)),
                is_inside: false,
            })
        }
        Value::Array(items) => {
            let mut items = items.iter().enumerate();
            items.find_map(|(index, item)| found(reader, &reader.item(allowed, index), item))
        }
        Value::Object(members) => {
            let mut members = members.iter();
            members.find_map(|(key, member)| found(reader, &reader.member(allowed, key), member))
        }
        _ => None,
    }
}

fn is_placeholder(text: &str, allowed: &AllowedValues<'_>) -> bool {
    let inner = trimmed(text).strip_prefix('<');
    let Some(inner) = inner.and_then(|inner| inner.strip_suffix('>')) else {
        return false;
    };
    // On the line of an emoji call it is one word, which begins with the name.
    let [inner, words] = [inner, &allowed.in_words()].map(|text| text.replace('_', " "));
    let inner = inner
        .split_once(" in full; only ")
        .map_or(&*inner, |(what, _)| what);
    let name = inner.strip_suffix(&words);
    name.is_some_and(|name| name.is_empty() || name.ends_with(": "))
        || inner.starts_with("as before: ")
}
