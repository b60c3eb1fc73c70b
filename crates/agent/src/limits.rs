//! The limits of a question.

#[cfg(feature = "http")]
use std::num::NonZeroU32;
use std::time::Duration;

/// The limits of one question ([`Agent::ask`](crate::Agent::ask)).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct AgentLimits {
    /// The most replies. Default: 50.
    pub turns: u32,
    /// The most calls. Later ones are rejected. Default: 500.
    pub calls: u32,
    /// The time limit, including tools and questions to the user. Default: 1 hour.
    pub time: Duration,
    /// The most tokens read and written in all turns, estimated if the server does not report them. Default: none.
    pub tokens: Option<u64>,
    /// The most turns in a row with rejected calls and none that succeeds. Default: 5.
    pub repairs: u32,
    /// The number of turns in which the same call may fail before the agent run ends. A successful call of a tool that writes
    /// resets the count. Default: 3.
    pub same_failure: u32,
    /// The number of turns in a row with the same calls and the same results after which the agent run ends; 0 for no limit. The
    /// model gets one message before, after 3, if the limit is higher. Default: 10, because a tool may be polled.
    pub same_result: u32,
    /// The most reminders after empty replies and missing calls. Default: 2.
    pub reminders: u32,
    /// The context window in tokens. When the conversation fills it, the oldest large results are shortened. Default: `None`,
    /// which shortens results only when the server reports that the conversation is too long.
    pub context: Option<u64>,
    /// The most tokens of a reply. Default: the limit of the server.
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
            same_result: 10,
            reminders: 2,
            context: None,
            reply_tokens: None,
        }
    }
}

#[cfg(feature = "http")]
impl AgentLimits {
    /// Returns the limits of a configuration and of the table of its model.
    pub fn configured(
        settings: &plaincall_config::settings::Limits,
        model: &plaincall_config::settings::Model,
    ) -> Self {
        let default = Self::default();
        let count = |set: Option<NonZeroU32>, default: u32| set.map_or(default, NonZeroU32::get);
        let tokens = |count: NonZeroU32| count.get().into();
        Self {
            turns: count(settings.turns, default.turns),
            calls: count(settings.calls, default.calls),
            time: settings.time.map_or(default.time, |time| time.0),
            tokens: settings.tokens.map(tokens),
            repairs: settings.repairs.unwrap_or(default.repairs),
            same_failure: count(settings.same_failure, default.same_failure),
            same_result: count(settings.same_result, default.same_result),
            reminders: settings.reminders.unwrap_or(default.reminders),
            context: settings.context.map(tokens),
            reply_tokens: model.max_tokens.map(NonZeroU32::get),
        }
    }
}

/// The meaning of a reply without a call.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum OnNoToolCall {
    /// It is the answer.
    #[default]
    Answer,
    /// It is a question to the [user](crate::AgentBuilder::user), whose answer goes to the model. Only a
    /// [finishing](plaincall::Tool::finishes) tool ends the agent run.
    AskUser,
    /// The model gets a reminder that only a [finishing](plaincall::Tool::finishes) tool ends the agent run, at most
    /// [`reminders`](AgentLimits::reminders) times. After that the reply is the answer.
    Remind,
}
