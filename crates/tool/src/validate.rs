//! Validation of arguments by their schema.

#[cfg(feature = "jsonschema")]
mod by_jsonschema;
#[cfg(feature = "jsonschema")]
mod named_references;
#[cfg(feature = "jsonschema")]
mod steps;

use std::fmt;
use std::sync::{Arc, OnceLock};

use serde_json::Value;

use crate::Schema;
use crate::SpecError;
#[cfg(feature = "jsonschema")]
use crate::validate::by_jsonschema::Compiled;

#[cfg(not(feature = "jsonschema"))]
enum Compiled {}

/// A violation of the schema.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct InvalidValue {
    /// The pointer to the value, without a leading `/`; empty for the whole.
    pub pointer: String,
    /// The message, without the pointer: `expected at least 3 items, found 2`.
    pub message: String,
    /// Whether the member that the pointer names is missing.
    pub(crate) is_missing: bool,
}

/// The reason why arguments cannot be validated.
#[derive(Clone, Debug)]
pub enum NotValidated {
    /// The schema is invalid.
    Schema(SpecError),
    /// It takes too many steps, so the arguments count as invalid.
    #[cfg_attr(
        not(feature = "jsonschema"),
        allow(dead_code, reason = "only the validator counts steps")
    )]
    TooManySteps,
    /// They are invalid, but listing why takes too many steps.
    #[cfg_attr(
        not(feature = "jsonschema"),
        allow(dead_code, reason = "only the validator counts steps")
    )]
    TooManyViolations,
}

/// The validator of a tool, compiled on first use and shared by its clones.
#[derive(Clone, Default)]
pub struct Validator {
    compiled: Arc<OnceLock<Result<Compiled, SpecError>>>,
    pub(crate) is_off: bool,
}

impl Validator {
    pub(crate) fn for_another_schema(&self) -> Self {
        Self {
            compiled: Arc::default(),
            is_off: self.is_off,
        }
    }

    #[cfg(feature = "jsonschema")]
    fn compiled(&self, schema: &Schema) -> Option<&Result<Compiled, SpecError>> {
        (!self.is_off).then(|| self.compiled.get_or_init(|| Compiled::new(schema)))
    }

    #[cfg(not(feature = "jsonschema"))]
    fn compiled(&self, _schema: &Schema) -> Option<&Result<Compiled, SpecError>> {
        self.compiled.get().filter(|_| !self.is_off)
    }

    /// # Errors
    /// Returns an error if the schema cannot be validated.
    pub fn check(&self, schema: &Schema) -> Result<(), SpecError> {
        match self.compiled(schema) {
            Some(Err(error)) => Err(error.clone()),
            Some(Ok(_)) | None => Ok(()),
        }
    }

    /// Returns all violations, and adds the steps to `taken`; `None` if there is no validator.
    ///
    /// # Errors
    /// Returns an error if the schema is invalid, or if the validation takes too many steps.
    pub fn validate(
        &self,
        schema: &Schema,
        arguments: impl FnOnce() -> Value,
        taken: &mut usize,
    ) -> Result<Option<Vec<InvalidValue>>, NotValidated> {
        match self.compiled(schema) {
            Some(Ok(compiled)) => compiled.validate(schema, &arguments(), taken).map(Some),
            Some(Err(error)) => Err(NotValidated::Schema(error.clone())),
            None => Ok(None),
        }
    }
}

#[cfg(not(feature = "jsonschema"))]
impl Compiled {
    fn validate(
        &self,
        _schema: &Schema,
        _arguments: &Value,
        _taken: &mut usize,
    ) -> Result<Vec<InvalidValue>, NotValidated> {
        match *self {}
    }
}

impl fmt::Display for NotValidated {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Schema(error) => write!(formatter, "its schema is invalid: {error}"),
            Self::TooManySteps => formatter.write_str(
                "validating them by its schema takes too many steps; send simpler values",
            ),
            Self::TooManyViolations => formatter.write_str(
                "they do not match its schema, and listing all violations takes too many steps; send simpler values",
            ),
        }
    }
}

impl fmt::Debug for Validator {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let is_compiled = self.compiled.get().is_some();
        formatter.write_str(if is_compiled { "compiled" } else { "none" })
    }
}

/// The schema determines it, so definitions are compared without it.
impl PartialEq for Validator {
    fn eq(&self, _other: &Self) -> bool {
        true
    }
}

impl Eq for Validator {}
