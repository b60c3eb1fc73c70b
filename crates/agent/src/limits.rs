//! How much one question may cost.

use std::time::Duration;

/// The limits of one question ([`Agent::ask`](crate::Agent::ask)). Each is counted anew for each question.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentLimits {
    /// How many replies the model may write; 50 if nothing is said.
    pub turns: u32,
    /// How many calls it may write in all of them; 500 if nothing is said. Later ones are rejected.
    pub calls: u32,
    /// How long it may take, tools and questions to the user too; an hour if nothing is said.
    pub time: Duration,
    /// How many tokens may be read and written, all turns together; any number if nothing is said. Where the model's
    /// server does not count, it is estimated.
    pub tokens: Option<u64>,
    /// In how many turns one after the other calls may be rejected and none end well, before the model is given up; 5 if
    /// nothing is said.
    pub repairs: u32,
    /// In how many turns the very same call may fail before the model is given up; 3 if nothing is said. A call that
    /// changes something and ends well sets it back.
    pub same_failure: u32,
    /// How often the model is told that its reply is empty, or that a call is missing; 2 if nothing is said.
    pub reminders: u32,
    /// How many tokens the model can read and write in one go. When the conversation fills it, the oldest large results
    /// are shortened first. If `None`, that happens only when the model's server says that the conversation is too long.
    pub context: Option<u64>,
    /// How many tokens a reply may have; what the model's server allows if `None`.
    pub reply_tokens: Option<u32>,
}

impl Default for AgentLimits {
    fn default() -> Self {
        Self {
            turns: 50,
            calls: 500,
            time: Duration::from_hours(1),
            tokens: None,
            repairs: 5,
            same_failure: 3,
            reminders: 2,
            context: None,
            reply_tokens: None,
        }
    }
}

/// What a reply without a call means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnNoToolCall {
    /// It is the answer.
    #[default]
    Answer,
    /// It is a question: the [user](crate::AgentBuilder::user) is asked, and their answer goes back to the model. Only a
    /// tool that [finishes](plaincall::Tool::finishes) ends it.
    AskUser,
    /// The model has forgotten to call: it is reminded that only a tool that [finishes](plaincall::Tool::finishes) ends
    /// the work, at most [`reminders`](AgentLimits::reminders) times; then the reply is the answer.
    Remind,
}
