//! A JSON Schema, looked at for what reading needs to know.

mod alternative;
mod bounds;
mod expected;
mod fit;
mod form;
mod key_pattern;
mod keywords;
mod kinds;
mod place;
mod resolve;
mod spelling;
mod words;

use std::fmt;
use std::sync::Arc;

use serde_json::{Value, json};

use crate::pointer::unescape;
use crate::spec_error::SpecError;

pub(crate) use expected::{Expected, ExpectedParts, ExpectedValue};
pub(crate) use kinds::Kinds;
pub(crate) use place::{Place, SchemaReader};
pub(crate) use spelling::TypeError;

/// A JSON Schema: any document, of any draft.
///
/// What reading needs of it is `$ref` inside the document, `allOf`, `anyOf`, `oneOf`, `type`, `nullable`, `enum`,
/// `const`, `properties`, `patternProperties`, `additionalProperties`, `items`, `prefixItems`, `required` and the
/// bounds of numbers and lengths (`spec/block.md` 7.7.1). What it says beyond that is for validation. A document that
/// makes no sense is never an error here: it leaves open what it does not say.
#[derive(Clone, PartialEq, Eq)]
pub struct Schema {
    document: Arc<Value>,
}

impl Schema {
    /// The schema that a document is.
    pub fn new(document: impl Into<Value>) -> Self {
        Self {
            document: Arc::new(document.into()),
        }
    }

    /// The schema of an object without members.
    pub(crate) fn of_no_parameters() -> Self {
        Self::new(json!({
            "type": "object",
            "properties": {},
            "required": [],
            "additionalProperties": false,
        }))
    }

    /// The document.
    pub fn document(&self) -> &Value {
        &self.document
    }

    pub(crate) fn document_mut(&mut self) -> &mut Value {
        Arc::make_mut(&mut self.document)
    }

    pub(crate) fn reader(&self) -> SchemaReader<'_> {
        SchemaReader::new(&self.document)
    }

    /// What may stand at the place of a pointer, in words such as `an integer of at least 1`; `None` if that is open.
    pub fn expected(&self, pointer: &str) -> Option<String> {
        let reader = self.reader();
        let segments = pointer.split('/').map(unescape);
        let place = segments.fold(reader.root(), |place, key| reader.under(&place, &key));
        let stated = place.stated();
        (!stated.alternatives.is_empty()).then(|| stated.in_words())
    }

    /// Whether the keywords that reading looks at are well formed, and every reference leads to a place in the
    /// document.
    ///
    /// # Errors
    /// The first thing that is not, with its place in the document.
    pub fn check(&self) -> Result<(), SpecError> {
        match self.mistakes().into_iter().next() {
            Some(mistake) => Err(mistake),
            None => Ok(()),
        }
    }

    /// Everything that [`check`](Self::check) finds.
    pub(crate) fn mistakes(&self) -> Vec<SpecError> {
        form::mistakes(&self.document)
    }
}

impl From<Value> for Schema {
    fn from(document: Value) -> Self {
        Self::new(document)
    }
}

/// The document itself, without the type around it.
impl fmt::Debug for Schema {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        fmt::Display::fmt(&self.document, formatter)
    }
}
