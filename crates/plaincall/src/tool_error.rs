//! The results of tools.

use std::pin::Pin;

/// Any error. Convert errors with `?`, and strings with `.into()`.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// The result of a tool: a text for the model, or an error whose message the model reads.
pub type ToolResult = Result<String, BoxError>;

/// The future of a started tool.
pub(crate) type BoxToolFuture = Pin<Box<dyn Future<Output = ToolResult> + Send>>;

/// An error with output. The model reads both.
#[cfg_attr(not(feature = "tokio"), allow(unreachable_pub))] // Tools export it.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("{message}")]
pub struct Failure {
    /// The error message.
    pub message: String,
    /// The output before the failure.
    pub output: Option<String>,
}

#[cfg_attr(not(feature = "tokio"), allow(unreachable_pub))]
impl Failure {
    /// Creates an error with this message and output.
    pub fn new(message: impl Into<String>, output: Option<String>) -> Self {
        Self {
            message: message.into(),
            output,
        }
    }
}
