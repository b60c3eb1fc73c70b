//! The parameters of a tool from a JSON Schema.

use std::collections::HashSet;

use serde_json::Value;

use crate::Schema;
use crate::SpecError;
use crate::pointer::escape;
use crate::schema::{AllowedValues, Kinds};
use crate::{Parameter, ToolSpec};

impl ToolSpec {
    /// Sets the parameters from a JSON Schema.
    ///
    /// The schema must describe an object: each of its `properties` becomes a parameter. Other arguments are errors,
    /// unless `patternProperties` or `additionalProperties` allow them.
    ///
    /// ```
    /// use plaincall_tool::{ParameterKind, ToolSpec};
    ///
    /// let schema = serde_json::json!({
    ///     "type": "object",
    ///     "properties": {"path": {"type": "string"}, "lines": {"type": "integer", "minimum": 1}},
    ///     "required": ["path"],
    /// });
    /// let tool = ToolSpec::new("read-file").parameters_from_schema(&schema)?;
    /// assert_eq!(tool.parameters()[1].kind, ParameterKind::Integer);
    /// assert!(!tool.parameters()[1].required);
    /// # Ok::<(), plaincall_tool::SpecError>(())
    /// ```
    ///
    /// # Errors
    /// Returns an error, with its location, if this is not a schema of an object.
    pub fn parameters_from_schema(self, schema: &Value) -> Result<Self, SpecError> {
        if !schema.is_object() {
            let message = "the parameters must be a JSON Schema: an object";
            return Err(SpecError::new("", message));
        }
        let schema = Schema::new(schema.clone());
        let parameters = schema.parameters()?;
        Ok(self.with_schema(schema, parameters))
    }

    /// Returns the parameters as a JSON Schema.
    pub fn to_schema(&self) -> Value {
        self.schema().document().clone()
    }
}

impl Schema {
    /// Returns the parameters of a tool with this schema.
    ///
    /// # Errors
    /// Returns an error, with its location, if this is not a schema of an object.
    pub(crate) fn parameters(&self) -> Result<Vec<Parameter>, SpecError> {
        self.check()?;
        let reader = self.reader();
        let root = reader.root();
        if !root.kinds().has(Kinds::OBJECT) {
            let message = format!(
                "the arguments of a tool must be an object with named fields, but this is {}: write `\"type\": \"object\"`",
                root.in_words()
            );
            return Err(SpecError::new("/type", message));
        }
        let mut parameters: Vec<Parameter> = Vec::new();
        let mut known = HashSet::new();
        let required: HashSet<&str> = root.required_always().collect();
        for alternative in &root.alternatives {
            for (name, property) in alternative.properties() {
                if !known.insert(name) {
                    continue;
                }
                let forms = root.alternatives.iter().filter(|one| one.declares(name));
                let forms = AllowedValues {
                    alternatives: forms.cloned().collect(),
                };
                let allowed = reader.member(&forms, name);
                if allowed.kinds() == Kinds::NONE {
                    let at = format!("/properties/{}", escape(name));
                    let message = "no value is valid here: remove the parameter";
                    return Err(SpecError::new(at, message));
                }
                let mut parameter = Parameter::at(name, &allowed, property.clone());
                parameter.required = required.contains(name);
                parameters.push(parameter);
            }
        }
        let unknown = root.required_always().find(|name| !root.declares(name));
        if let Some(name) = unknown {
            let message = format!("`{name}` is not in `properties`");
            return Err(SpecError::new("/required", message));
        }
        Ok(parameters)
    }

    /// Returns `true` if an object with this schema has no other members than those named, and no alternatives.
    pub(crate) fn has_one_form(&self) -> bool {
        let reader = self.reader();
        match reader.root().alternatives.as_slice() {
            [only] => only.names_all(),
            _ => false,
        }
    }
}
