//! Questions to a person: approvals, and the outcomes of interrupted calls.

use plaincall::durable::DurableRun;
use plaincall::events::SubmittedArguments;
use plaincall::{BoxError, Decision, Recovery, Request};
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// A question of a conversation that waits for an answer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Question {
    /// The number of the question in the conversation, from 0.
    pub question: u32,
    /// The index of the call.
    pub call: u32,
    /// The id of the call.
    pub id: String,
    /// The name of its tool.
    pub name: String,
    /// Its arguments, as an object.
    pub arguments: Value,
    /// What is asked.
    pub kind: QuestionKind,
    /// The reason if the call is held: it may have been copied from untrusted text, for instance.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub held: Option<String>,
    /// The Restate awakeable that takes the answer.
    pub awakeable: String,
}

/// What a question asks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum QuestionKind {
    /// Whether the call may run: `allow`, `allow_always`, `edit` or `deny`.
    Approval,
    /// What became of a call that was interrupted while it may have been running: `done`, `not_done`, `run_again` or `unknown`.
    Recovery,
}

/// An answer to a question.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct AnswerTo {
    /// The number of the question.
    pub question: u32,
    /// The answer.
    #[serde(flatten)]
    pub answer: Answer,
}

/// An answer to a question, as JSON: `{"answer": "allow"}`, `{"answer": "done", "output": "…"}`.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "answer", rename_all = "snake_case")]
#[non_exhaustive]
pub enum Answer {
    /// The call may run.
    Allow,
    /// This call and all later calls of its tool may run.
    AllowAlways,
    /// The call may run with other arguments: an object.
    Edit {
        /// The arguments.
        arguments: Value,
    },
    /// The call may not run.
    Deny {
        /// The reason, for the model.
        #[serde(default)]
        reason: String,
    },
    /// The interrupted call completed.
    Done {
        /// Its output, as far as it is known.
        #[serde(default)]
        output: String,
    },
    /// The interrupted call did not complete, and should not run again.
    NotDone {
        /// The reason, for the model.
        #[serde(default)]
        reason: String,
    },
    /// The interrupted call did not complete, and runs again.
    RunAgain,
    /// The outcome cannot be found out.
    Unknown,
}

/// An answer with the time at which a worker received it.
#[derive(Debug, Serialize, Deserialize)]
pub(crate) struct TimedAnswer {
    #[serde(flatten)]
    pub(crate) answer: Answer,
    /// In milliseconds since 1970 (UTC).
    #[serde(default)]
    pub(crate) unix_ms: u64,
}

impl QuestionKind {
    /// Returns the answers, for a message.
    pub(crate) fn answers(self) -> &'static str {
        match self {
            Self::Approval => "`allow`, `allow_always`, `edit` or `deny`",
            Self::Recovery => "`done`, `not_done`, `run_again` or `unknown`",
        }
    }
}

impl Question {
    pub(crate) fn new(
        question: u32,
        request: &Request,
        kind: QuestionKind,
        awakeable: String,
    ) -> Self {
        Self {
            question,
            call: request.call,
            id: request.id.to_string(),
            name: request.name.to_string(),
            arguments: request.arguments.to_value(),
            kind,
            held: request.held.as_ref().map(ToString::to_string),
            awakeable,
        }
    }
}

impl Answer {
    /// Returns whether this answers a question of this kind.
    pub(crate) fn is_for(&self, kind: QuestionKind) -> bool {
        let is_recovery = matches!(
            self,
            Self::Done { .. } | Self::NotDone { .. } | Self::RunAgain | Self::Unknown
        );
        is_recovery == (kind == QuestionKind::Recovery)
    }

    /// Returns the decision; an answer to another question denies the call.
    pub(crate) fn decision(self, run: &DurableRun, call: u32) -> Result<Decision, BoxError> {
        Ok(match self {
            Self::Allow => Decision::Allow,
            Self::AllowAlways => Decision::Always,
            Self::Edit { arguments } => {
                let arguments = SubmittedArguments::Json(arguments);
                let arguments = run.bind(call, &arguments)?;
                Decision::Edit { arguments }
            }
            Self::Deny { reason } if reason.is_empty() => {
                Decision::deny("the user denied the call")
            }
            Self::Deny { reason } => Decision::deny(reason),
            _ => return Err("the answer is not one to this question".into()),
        })
    }

    /// Returns the outcome; an answer to another question leaves it unknown.
    pub(crate) fn recovery(self) -> Result<Recovery, BoxError> {
        Ok(match self {
            Self::Done { output } => Recovery::Done { output },
            Self::NotDone { reason } => Recovery::NotDone { reason },
            Self::RunAgain => Recovery::RunAgain,
            Self::Unknown => Recovery::Unknown,
            _ => return Err("the answer is not one to this question".into()),
        })
    }
}
