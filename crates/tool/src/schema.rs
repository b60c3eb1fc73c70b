//! The parts of a JSON Schema that decide how arguments are read.

mod allowed_values;
mod alternative;
mod bounds;
mod cost;
mod expected;
mod fit;
mod form;
mod key_pattern;
mod keywords;
mod kinds;
mod resolve;
mod spelling;
mod words;

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::SpecError;

pub use allowed_values::{AllowedValues, SchemaReader};
pub use alternative::Alternative;
pub use bounds::is_same;
pub use expected::{Expected, ExpectedParts, ExpectedValue};
pub use kinds::Kinds;
#[cfg(feature = "jsonschema")]
pub(crate) use resolve::Targets;
pub(crate) use spelling::TypeError;

/// A JSON Schema of any draft.
///
/// Reading arguments uses `$ref` inside the document, `allOf`, `anyOf`, `oneOf`, `type`, `nullable`, `enum`, `const`,
/// `properties`, `patternProperties`, `additionalProperties`, `items`, `prefixItems`, `required` and the bounds of
/// numbers and lengths (`spec/block.md` 7.7.1). Other keywords matter for validation only. Any document is accepted:
/// keywords that are not well formed are ignored.
#[derive(Clone, PartialEq, Eq)]
pub struct Schema {
    document: Arc<Value>,
}

impl Schema {
    /// Creates a schema from a JSON document.
    pub fn new(document: impl Into<Value>) -> Self {
        Self {
            document: Arc::new(document.into()),
        }
    }

    /// Creates the schema of an object without members.
    pub(crate) fn of_no_parameters() -> Self {
        Self::new(json!({
            "type": "object",
            "properties": {},
            "required": [],
            "additionalProperties": false,
        }))
    }

    /// Returns the document.
    pub fn document(&self) -> &Value {
        &self.document
    }

    pub(crate) fn document_mut(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.document)
    }

    #[doc(hidden)]
    pub fn reader(&self) -> SchemaReader<'_> {
        SchemaReader::new(&self.document)
    }

    /// Describes the values that are allowed at a pointer, such as `an integer of at least 1`; `None` if any value is.
    pub fn expected(&self, pointer: &str) -> Option<String> {
        let reader = self.reader();
        let allowed = reader.at(pointer);
        let stated = allowed.stated();
        (!stated.alternatives.is_empty()).then(|| stated.in_words())
    }

    /// Checks that the keywords for reading are well formed, and that every reference leads to a location in the
    /// document.
    ///
    /// # Errors
    /// Returns the first problem, with its location in the document.
    pub fn check(&self) -> Result<(), SpecError> {
        match self.errors().into_iter().next() {
            Some(error) => Err(error),
            None => Ok(()),
        }
    }

    /// Returns all errors that [`check`](Self::check) can find.
    pub(crate) fn errors(&self) -> Vec<SpecError> {
        let mut errors = form::errors(&self.document);
        errors.extend(cost::errors(&self.document));
        errors
    }
}

impl From<Value> for Schema {
    fn from(document: Value) -> Self {
        Self::new(document)
    }
}

/// Shows the document itself, without the type around it.
impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.document, formatter)
    }
}
