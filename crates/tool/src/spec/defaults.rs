//! The defaults of parameters that a call does not have (`spec/block.md` 7.7.1).

use plaincall_syntax::Span;
use serde_json::Value;

use crate::Arguments;
use crate::bind::emoji::place;
use crate::bind_arguments;
use crate::{Parameter, ToolSpec};

impl ToolSpec {
    /// Returns the arguments of a call with the defaults of absent parameters, for a tool that does not apply them itself, as a
    /// command. Null is not added. If the schema does not allow the defaults, nothing is added.
    #[must_use]
    pub fn with_defaults(&self, arguments: &Arguments) -> Arguments {
        let has_default = |one: &Parameter| one.default().is_some();
        if !self.parameters().iter().any(has_default) {
            return arguments.clone();
        }
        let reader = self.schema().reader();
        let given = arguments.to_value();
        let root = reader.narrow_to(&reader.root(), &given);
        let mut all = arguments.clone();
        for parameter in self.parameters() {
            let default = parameter.default().filter(|value| !value.is_null());
            let Some(default) = default.filter(|_| given.get(&parameter.name).is_none()) else {
                continue;
            };
            let text = match default {
                Value::String(text) => text.clone(),
                other => other.to_string(),
            };
            let allowed = reader.member(&root, &parameter.name);
            let spelling = reader.json_spelling(&allowed, default, &text);
            let (text_type, rule) = (spelling.text_type, spelling.rule);
            let span = Span::default();
            place(&mut all, &parameter.name, &text, span, text_type, rule);
        }
        bind_arguments(self, &all).unwrap_or_else(|_| arguments.clone())
    }
}
