//! Answers of people, as JSON.

use std::time::Duration;

use plaincall_plan::{CallIndex, State};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::DurableRun;
use crate::call_arguments::SubmittedArguments;
use crate::gate::{Decision, Recovery};
use crate::tool::Tool;
use crate::tool_error::BoxError;

/// An answer of a person about a call, as JSON: `{"answer": "allow"}`, `{"answer": "done", "output": "…"}`.
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

/// The error for an answer to another question.
const OTHER: &str = "the answer is not one to this question";

impl Answer {
    /// Checks the arguments of an [`Edit`](Self::Edit) of a call of this tool.
    ///
    /// # Errors
    /// Returns what is wrong with them.
    pub fn check(&self, tool: &Tool) -> Result<(), BoxError> {
        if let Self::Edit { arguments } = self {
            SubmittedArguments::bind_edit(arguments, tool.spec())?;
        }
        Ok(())
    }

    /// Returns whether this answers [`Step::Recover`](super::Step::Recover), and not [`Step::Ask`](super::Step::Ask).
    pub fn is_recovery(&self) -> bool {
        matches!(
            self,
            Self::Done { .. } | Self::NotDone { .. } | Self::RunAgain | Self::Unknown
        )
    }

    fn recovery(self) -> Result<Recovery, BoxError> {
        Ok(match self {
            Self::Done { output } => Recovery::Done { output },
            Self::NotDone { reason } => Recovery::NotDone { reason },
            Self::RunAgain => Recovery::RunAgain,
            Self::Unknown => Recovery::Unknown,
            _ => return Err(OTHER.into()),
        })
    }
}

impl DurableRun {
    /// Gives the answer of a person to the last question about a call: as [`decide`](Self::decide) or
    /// [`recover`](Self::recover). An error, or an answer to another question, denies the call or leaves its outcome unknown.
    pub fn answer(&mut self, call: u32, answer: Result<Answer, BoxError>, at: Duration) {
        if self.run_state.state(CallIndex::new(call)) == Some(State::Ready) {
            let decision = answer.and_then(|answer| self.decision(call, answer));
            self.decide(call, decision, at);
        } else {
            self.recover(call, answer.and_then(Answer::recovery), at);
        }
    }

    fn decision(&self, call: u32, answer: Answer) -> Result<Decision, BoxError> {
        Ok(match answer {
            Answer::Allow => Decision::Allow,
            Answer::AllowAlways => Decision::Always,
            Answer::Edit { arguments } => {
                let tool = self.run_state.tool(CallIndex::new(call));
                let tool = tool.ok_or("the call is not complete")?;
                let arguments = SubmittedArguments::bind_edit(&arguments, tool.spec())?;
                Decision::Edit { arguments }
            }
            Answer::Deny { reason } if reason.is_empty() => {
                Decision::deny("the user denied the call")
            }
            Answer::Deny { reason } => Decision::deny(reason),
            _ => return Err(OTHER.into()),
        })
    }
}
