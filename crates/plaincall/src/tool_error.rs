//! What tools return.

use std::fmt;
use std::pin::Pin;

/// Any error; made by `?` from all error types and by `.into()` from a text.
pub type BoxError = Box<dyn std::error::Error + Send + Sync>;

/// What a tool returns: a text for the model, or an error whose text the model reads.
pub type ToolResult = Result<String, BoxError>;

/// What the code of a tool returns when it is started.
pub(crate) type Work = Pin<Box<dyn Future<Output = ToolResult> + Send>>;

/// An error that comes with what the tool had to say before it failed.
#[cfg_attr(not(feature = "tokio"), allow(unreachable_pub))] // Tools export it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Failure {
    /// What went wrong.
    pub message: String,
    /// What the tool returned all the same.
    pub output: Option<String>,
}

impl fmt::Display for Failure {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl std::error::Error for Failure {}
