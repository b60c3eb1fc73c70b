//! The user whom the agent can ask.

use std::pin::Pin;

use plaincall::BoxError;

/// Answers the model's questions, one at a time. A function that takes the question and returns a future is a `User` too.
///
/// ```
/// use plaincall_agent::{Agent, Scripted};
///
/// let agent = Agent::builder(Scripted::new(["Which file?"]))
///     .user(|question: String| async move { Ok(format!("I do not know: {question}")) });
/// ```
pub trait User: Send + Sync + 'static {
    /// Answers a question of the model. The future is dropped when the answer is no longer needed.
    ///
    /// # Errors
    /// Returns an error if the user cannot answer. If a tool asked, the model gets the error; if a reply was the question,
    /// the agent run ends.
    fn answer<'a>(&'a self, question: &'a str) -> UserFuture<'a>;
}

impl<F, A> User for F
where
    F: Fn(String) -> A + Send + Sync + 'static,
    A: Future<Output = Result<String, BoxError>> + Send + 'static,
{
    fn answer<'a>(&'a self, question: &'a str) -> UserFuture<'a> {
        Box::pin(self(question.to_owned()))
    }
}

/// The future that [`User::answer`] returns.
pub type UserFuture<'a> = Pin<Box<dyn Future<Output = Result<String, BoxError>> + Send + 'a>>;
