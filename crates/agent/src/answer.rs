//! How a question ends.

use std::fmt;
use std::sync::Arc;

use plaincall::syntax::DialectError;
use plaincall::{RunError, result::StatusCounts};
use serde::{Deserialize, Serialize};

use crate::model::{Finish, ModelError, Usage, is_zero};
use crate::text::count;

/// The answer to a question.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// What the model answers: the text of its last reply, or what the finishing tool returned.
    pub text: String,
    /// The call of the tool that finished the work, if one did.
    pub finished_by: Option<Arc<str>>,
    /// How the last reply ended. If that was no natural end, the text may not be whole.
    pub finish: Finish,
    /// What it took.
    pub progress: Progress,
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// What a question has taken so far.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// How many replies the model has written.
    pub turns: u32,
    /// How many calls ended how.
    pub calls: StatusCounts,
    /// What the replies cost.
    pub usage: Usage,
    /// Whether some of the usage is an estimate, since the model's server does not count.
    pub is_usage_estimated: bool,
    /// How often the model was told what is wrong with its calls.
    pub repairs: u32,
    /// How many calls were rejected only because they have no end marker: with [`Unclosed::Run`](plaincall::call::Unclosed::Run)
    /// they could have run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unclosed: u32,
}

/// Why a question has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub struct AgentError {
    /// Why.
    pub kind: AgentErrorKind,
    /// What it took.
    pub progress: Box<Progress>,
    /// The text of the last reply, as far as it came.
    pub partial_text: String,
}

/// Why a question has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentErrorKind {
    /// The model gave no reply, or it broke off.
    Model(ModelError),
    /// The conversation cannot be run.
    Run(RunError),
    /// The dialect cannot work, or is the automatic one: a model is taught one syntax.
    Dialect(DialectError),
    /// The log cannot be written.
    Log(Arc<str>),
    /// The random numbers for a key cannot be had.
    Random,
    /// It was cancelled.
    Cancelled,
    /// The time is over.
    Time,
    /// The model has written as many replies as it may.
    Turns,
    /// The model has written as many calls as it may.
    Calls,
    /// As many tokens as allowed have been read and written.
    Tokens,
    /// What the model wrote was cut off by its limit of length.
    Length,
    /// The model writes wrong calls again and again.
    Repairs,
    /// The same call failed again and again.
    SameFailure {
        /// The name of its tool.
        name: Arc<str>,
    },
    /// The model writes nothing.
    Empty,
    /// The conversation is longer than the model can read, and no result is left to shorten.
    TooLong,
    /// The reply ended for a reason that is no natural end, and it may not be whole.
    Ended(Finish),
    /// The settings do not fit together.
    Settings(String),
    /// The user could not be asked.
    User(String),
}

impl fmt::Display for AgentError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        use AgentErrorKind as Kind;
        let Progress {
            turns,
            calls,
            usage,
            ..
        } = *self.progress;
        let text: &str = match &self.kind {
            Kind::Model(error) => return error.fmt(formatter),
            Kind::Run(error) => return error.fmt(formatter),
            Kind::Dialect(error) => return error.fmt(formatter),
            Kind::Log(error) => &format!("the log cannot be written: {error}"),
            Kind::Random => "the system gives no random numbers",
            Kind::Cancelled => "it was cancelled",
            Kind::Time => "the time for the question is over",
            Kind::Turns => &format!(
                "the model has written {}, which is the limit, and has not answered",
                count(turns, "reply")
            ),
            Kind::Calls => &format!(
                "the model has written {}, more than the limit, and has not answered",
                count(calls.total(), "call")
            ),
            Kind::Tokens => &format!(
                "{} tokens have been read and written, which is the limit, and the model has not answered",
                usage.total()
            ),
            Kind::Length => {
                "the model's reply was cut off by its limit of length; allow longer replies"
            }
            Kind::Repairs => {
                "the model's calls are wrong or not allowed again and again, also after it was told"
            }
            Kind::SameFailure { name } => {
                &format!("the model repeats a call of `{name}` that fails each time")
            }
            Kind::Empty => "the model writes empty replies",
            Kind::TooLong => {
                "the conversation is longer than the model can read, and no result is left to shorten: allow a larger context, offer fewer tools, or begin anew"
            }
            Kind::Ended(finish) => match &finish.reason {
                Some(reason) => &format!(
                    "the model's reply ended for the reason `{reason}`, so it may not be whole"
                ),
                None => "the model's reply ended without a reason, so it may not be whole",
            },
            Kind::Settings(problem) => problem,
            Kind::User(error) => &format!("the user could not be asked: {error}"),
        };
        formatter.write_str(text)
    }
}

impl std::error::Error for AgentError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match &self.kind {
            AgentErrorKind::Model(error) => Some(error),
            AgentErrorKind::Run(error) => Some(error),
            AgentErrorKind::Dialect(error) => Some(error),
            _ => None,
        }
    }
}

impl From<AgentErrorKind> for AgentError {
    fn from(kind: AgentErrorKind) -> Self {
        Self {
            kind,
            progress: Box::default(),
            partial_text: String::new(),
        }
    }
}

impl From<RunError> for AgentError {
    fn from(error: RunError) -> Self {
        AgentErrorKind::Run(error).into()
    }
}

impl From<DialectError> for AgentError {
    fn from(error: DialectError) -> Self {
        AgentErrorKind::Dialect(error).into()
    }
}
