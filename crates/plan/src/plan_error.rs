//! What the plan answers to an input that does not fit.

use std::fmt;

use crate::state::State;

/// An input that does not fit the state of the plan. The plan has not changed.
///
/// Nothing the caller does makes the plan panic or break its rules; a caller that races with itself (a gate
/// that answers after a cancellation, a tool that ends twice) may ignore the answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// `begin_turn` while a turn is open.
    TurnOpen,
    /// `declare` or `end_turn` while no turn is open.
    NoTurn,
    /// There is no call with this index.
    UnknownCall,
    /// There is no tool with this index.
    UnknownTool,
    /// The call is not where this input belongs, for instance `admit` for a call that is not ready.
    NotNow(State),
    /// The plan holds as many calls, tools or dependencies as it can number (2^32 - 1).
    Full,
}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TurnOpen => formatter.write_str("a turn is open; end it first"),
            Self::NoTurn => formatter.write_str("no turn is open; begin one first"),
            Self::UnknownCall => formatter.write_str("there is no such call"),
            Self::UnknownTool => formatter.write_str("there is no such tool"),
            Self::NotNow(State::Ended(status)) => {
                write!(
                    formatter,
                    "the call has already ended with the status {status}"
                )
            }
            Self::NotNow(state) => {
                write!(formatter, "the call is {state}, where this does not apply")
            }
            Self::Full => formatter.write_str("the plan cannot number any more entries"),
        }
    }
}

impl std::error::Error for PlanError {}
