//! The answer to a question, or the error.

use std::fmt;
use std::sync::Arc;

use plaincall::prompt::few_shot::InvalidExample;
use plaincall::syntax::DialectError;
use plaincall::tool::ArgumentError;
use plaincall::{RunError, result::StatusCounts};
use serde::{Deserialize, Serialize};

use crate::model::{Finish, ModelError, Usage};
use crate::text::count;

/// The answer to a question.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Answer {
    /// The text of the last reply, or the output of the finishing tool.
    pub text: String,
    /// The call that finished the agent run, if one did.
    pub finished_by: Option<Arc<str>>,
    /// How the last reply ended. Without a natural end, the text may be incomplete.
    pub finish: Finish,
    /// The turns, calls and tokens used.
    pub progress: Progress,
}

impl fmt::Display for Answer {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.text)
    }
}

/// The turns, calls and tokens that a question has used.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Progress {
    /// The number of replies.
    pub turns: u32,
    /// The number of calls by status.
    pub calls: StatusCounts,
    /// The tokens of the replies.
    pub usage: Usage,
    /// Whether some of the usage is an estimate, because the server does not report it.
    pub is_usage_estimated: bool,
    /// The number of repair messages.
    pub repairs: u32,
    /// The number of calls rejected only because they have no end marker. With
    /// [`Unclosed::Run`](plaincall::reply::Unclosed::Run), they could have run.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub unclosed: u32,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde requires"
)]
fn is_zero(count: &u32) -> bool {
    *count == 0
}

/// The error of a question without an answer.
#[derive(Debug)]
#[non_exhaustive]
pub struct AgentError {
    /// The reason.
    pub kind: AgentErrorKind,
    /// The turns, calls and tokens used.
    pub progress: Box<Progress>,
    /// The text of the last reply, possibly partial.
    pub partial_text: String,
}

/// Why a question has no answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum AgentErrorKind {
    /// The model gave no reply, or the reply failed midway.
    Model(ModelError),
    /// The run cannot start.
    Run(RunError),
    /// The dialect is invalid, or automatic: the prompt needs one syntax.
    Dialect(DialectError),
    /// The log cannot be written.
    Log(Arc<str>),
    /// The system provides no random numbers for a key.
    Random,
    /// The agent run was cancelled.
    Cancelled,
    /// The time limit was reached.
    Time,
    /// The limit of replies was reached.
    Turns,
    /// The limit of calls was exceeded.
    Calls,
    /// The limit of tokens was reached.
    Tokens,
    /// A length limit truncated the reply.
    Length,
    /// The calls stayed invalid after repair messages.
    Repairs,
    /// The same call failed repeatedly.
    SameFailure {
        /// The name of its tool.
        name: Arc<str>,
    },
    /// The same calls had the same results repeatedly.
    SameResult {
        /// The name of the tool of the first call.
        name: Arc<str>,
    },
    /// The model writes empty replies.
    Empty,
    /// The conversation exceeds the context window, and no result is left to shorten.
    TooLong,
    /// The reply ended for a reason that is not a natural end, and may be incomplete.
    Ended(Finish),
    /// The answers did not match the schema, after repair messages. Contains the problems of the last one.
    Schema(Vec<ArgumentError>),
    /// The settings contradict each other.
    Settings(String),
    /// A few-shot example is invalid.
    Example(InvalidExample),
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
            Kind::Random => "the system provides no random numbers",
            Kind::Cancelled => "cancelled",
            Kind::Time => "timed out",
            Kind::Turns => &format!(
                "no answer after {}, which is the limit",
                count(turns, "reply")
            ),
            Kind::Calls => &format!(
                "no answer after {}, which is more than the limit",
                count(calls.total(), "call")
            ),
            Kind::Tokens => &format!(
                "no answer after {} tokens, which is the limit",
                usage.total()
            ),
            Kind::Length => {
                "the model's reply was truncated by its length limit; allow longer replies"
            }
            Kind::Repairs => {
                "the model's calls are still invalid or not allowed after repair messages"
            }
            Kind::SameFailure { name } => &format!("the model repeats a failing call of `{name}`"),
            Kind::SameResult { name } => {
                &format!("the model repeats a call of `{name}` although its result stays the same")
            }
            Kind::Empty => "the model writes empty replies",
            Kind::TooLong => {
                "the conversation exceeds the context window, and no result is left to shorten; set a larger context, offer fewer tools, or start a new conversation"
            }
            Kind::Ended(finish) => match &finish.reason {
                Some(reason) => &format!(
                    "the model's reply ended with the reason `{reason}` and may be incomplete"
                ),
                None => "the model's reply ended without a reason and may be incomplete",
            },
            Kind::Schema(problems) => {
                let problems: Vec<String> = problems.iter().map(ToString::to_string).collect();
                &format!(
                    "the model's answer does not match the schema: {}",
                    problems.join("; ")
                )
            }
            Kind::Settings(problem) => problem,
            Kind::Example(invalid) => &invalid.to_string(),
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
