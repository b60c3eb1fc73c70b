//! Whoever asks the agent and can be asked back.

use std::pin::Pin;

use plaincall::BoxError;

/// A person who can be asked while the agent works.
///
/// It is asked one question at a time. The future is dropped when the answer is no longer wanted.
///
/// ```
/// use plaincall_agent::{User, UserFuture};
///
/// struct Patient;
///
/// impl User for Patient {
///     fn answer<'a>(&'a self, question: &'a str) -> UserFuture<'a> {
///         Box::pin(async move { Ok(format!("I do not know: {question}")) })
///     }
/// }
/// ```
pub trait User: Send + Sync + 'static {
    /// Answers a question of the model.
    ///
    /// # Errors
    /// Whatever keeps the user from answering. If a tool has asked, the model hears of it; if a reply was the question, the
    /// work ends.
    fn answer<'a>(&'a self, question: &'a str) -> UserFuture<'a>;
}

/// What [`User::answer`] returns.
pub type UserFuture<'a> = Pin<Box<dyn Future<Output = Result<String, BoxError>> + Send + 'a>>;
