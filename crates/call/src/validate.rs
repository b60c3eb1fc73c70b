//! What validates the arguments of a call when they have been read.

#[cfg(feature = "jsonschema")]
mod by_jsonschema;

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::schema::Schema;
use crate::spec_error::SpecError;

/// Says what is wrong with a value for a schema.
///
/// A tool's schema is compiled once, when it is first needed or by [`ToolSpec::check`](crate::ToolSpec::check). With
/// the feature `jsonschema` every tool has one; [`ToolSpec::validate_with`](crate::ToolSpec::validate_with) sets
/// another.
pub trait Validate: Send + Sync {
    /// Everything that is wrong with the arguments, which are an object; nothing if they are right.
    fn validate(&self, arguments: &Value) -> Vec<Violation>;
}

/// One thing that is wrong with a value for its schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Violation {
    /// Where: the pointer to it, as arguments write it, without a `/` in front; empty for the whole.
    pub pointer: String,
    /// What is wrong, without the pointer: `expected at least 3 items, found 2`.
    pub message: String,
    /// Whether the member that the pointer names is missing.
    pub is_missing: bool,
}

type Compiled = Option<Result<Arc<dyn Validate>, SpecError>>;

/// The validation of a tool, compiled once and shared by its copies.
#[derive(Clone, Default)]
pub(crate) struct Validator {
    compiled: Arc<OnceLock<Compiled>>,
    is_given: bool,
}

impl Validator {
    pub(crate) fn given(validate: Arc<dyn Validate>) -> Self {
        let compiled = OnceLock::new();
        let _ = compiled.set(Some(Ok(validate)));
        Self {
            compiled: Arc::new(compiled),
            is_given: true,
        }
    }

    /// What is given stays; what is compiled is compiled anew.
    pub(crate) fn for_another_schema(&self) -> Self {
        if self.is_given {
            self.clone()
        } else {
            Self::default()
        }
    }

    fn compiled(&self, schema: &Schema) -> &Compiled {
        self.compiled.get_or_init(|| compile(schema))
    }

    /// # Errors
    /// Says why the schema cannot be validated.
    pub(crate) fn check(&self, schema: &Schema) -> Result<(), SpecError> {
        match self.compiled(schema) {
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Everything that is wrong; `None` if nothing validates.
    ///
    /// # Errors
    /// Says why the schema cannot be validated.
    pub(crate) fn validate(
        &self,
        schema: &Schema,
        arguments: impl FnOnce() -> Value,
    ) -> Result<Option<Vec<Violation>>, SpecError> {
        match self.compiled(schema) {
            Some(Ok(validate)) => Ok(Some(validate.validate(&arguments()))),
            Some(Err(error)) => Err(error.clone()),
            None => Ok(None),
        }
    }
}

#[cfg_attr(
    feature = "jsonschema",
    expect(
        clippy::unnecessary_wraps,
        reason = "without the feature it is nothing"
    )
)]
fn compile(schema: &Schema) -> Compiled {
    #[cfg(feature = "jsonschema")]
    return Some(crate::validate::by_jsonschema::compile(schema));
    #[cfg(not(feature = "jsonschema"))]
    {
        let _ = schema;
        None
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = match (self.is_given, self.compiled.get()) {
            (true, _) => "given",
            (false, Some(Some(_))) => "compiled",
            (false, _) => "none",
        };
        formatter.write_str(word)
    }
}

/// It follows from the schema, or is code; definitions are compared without it.
impl PartialEq for Validator {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Validator {}
