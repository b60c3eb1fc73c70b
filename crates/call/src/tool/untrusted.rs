//! A definition as untrusted text (`spec/untrusted.md` 1).

use serde_json::Value;

use crate::tool::ToolSpec;
use crate::untrusted::Untrusted;

impl ToolSpec {
    /// Returns the name, description, schema and examples as one text, in the order in which a model reads them, since a call may
    /// be spread over them.
    pub fn as_untrusted(&self) -> Untrusted<'static> {
        let mut words = vec![self.name.as_str(), &self.description];
        gather(self.schema().document(), &mut words);
        for example in &self.examples {
            example.gather(&mut words);
        }
        Untrusted::new(words.join("\n"))
    }
}

/// Collects the strings of a schema. Parsing has limited its depth.
pub(super) fn gather<'v>(value: &'v Value, words: &mut Vec<&'v str>) {
    match value {
        Value::String(text) => words.push(text),
        Value::Array(items) => items.iter().for_each(|item| gather(item, words)),
        Value::Object(members) => {
            for (name, value) in members {
                words.push(name);
                gather(value, words);
            }
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => {}
    }
}
