//! The rules that convert the texts of values to JSON.

use std::fmt;

/// The rule by which the text of a value became JSON (`spec/block.md` 7.7). Its text is a sentence without a period.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConversionRule {
    /// No definition states a type.
    #[default]
    Undeclared,
    /// The definition allows only types that are not strings, or only strings.
    Declared,
    /// The definition also allows a string, and the text is exactly how another allowed type is written.
    Exact,
    /// The definition allows a string, and the text is not exactly how another allowed type is written.
    Text,
    /// The value was written as JSON.
    Json,
    /// The value is the body of a call.
    Body,
}

impl fmt::Display for ConversionRule {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(match self {
            Self::Undeclared => {
                "no type is declared: true, false and numbers that lose no digit are converted, and any other text is a string"
            }
            Self::Declared => "the text is read as the declared type",
            Self::Exact => {
                "a string is allowed too, but the text is exactly how a value of another allowed type is written"
            }
            Self::Text => {
                "a string is allowed, and the text is not exactly how a value of another allowed type is written"
            }
            Self::Json => "the value is written as JSON",
            Self::Body => "a body is always a string",
        })
    }
}
