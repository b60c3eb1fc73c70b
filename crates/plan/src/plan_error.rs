//! The error of a plan.

use std::fmt;

use crate::state::State;

/// An input that is invalid in the current state. The plan has not changed.
///
/// No input makes the plan panic or break its rules. You can ignore the error if inputs race with each other: for example, if
/// a gate decides after a cancellation.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum PlanError {
    /// `begin_turn` while a turn is open.
    TurnOpen,
    /// `declare`, `submit` or `end_turn` while no turn is open.
    NoTurn,
    /// No call has this index.
    UnknownCall,
    /// No tool has this index.
    UnknownTool,
    /// The input is invalid in the state of the call, for example `admit` for a call that is not ready.
    InvalidState(State),
    /// The plan has reached its limit of 2^32 - 1 calls, tools or dependencies.
    Full,
}

impl fmt::Display for PlanError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::TurnOpen => formatter.write_str("a turn is open; end it first"),
            Self::NoTurn => formatter.write_str("no turn is open; begin one first"),
            Self::UnknownCall => formatter.write_str("there is no such call"),
            Self::UnknownTool => formatter.write_str("there is no such tool"),
            Self::InvalidState(State::Ended(status)) => {
                write!(
                    formatter,
                    "the call has already ended with the status {status}"
                )
            }
            Self::InvalidState(state) => {
                write!(formatter, "this is not possible while the call is {state}")
            }
            Self::Full => formatter.write_str(
                "the plan has reached its limit of 2^32 - 1 calls, tools or dependencies",
            ),
        }
    }
}

impl std::error::Error for PlanError {}
