//! Requests: calls that rules and gates decide about.

use std::sync::Arc;

use plaincall_tool::{Arguments, Effect};

use crate::held::HeldReason;
use crate::rules::Meanings;

/// A valid call that is ready to run, for rules and gates.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The call's index in order of appearance, from 0.
    pub call: u32,
    /// The id of the call.
    pub id: Arc<str>,
    /// The name of the tool.
    pub name: Arc<str>,
    /// The effect of the tool.
    pub effect: Effect,
    /// The tool of the call that submitted this one, such as a subagent, if any.
    pub parent: Option<Arc<str>>,
    /// The arguments.
    pub arguments: Arc<Arguments>,
    /// The reason if the call is held: it runs only if the gate allows this particular call (`spec/running.md`, "Held calls").
    pub held: Option<HeldReason>,
    /// Whether the tool only waits for calls that it submits, which need approval themselves ([`Tool::delegates`](crate::Tool::delegates)).
    pub delegates: bool,
    /// How rules interpret the arguments.
    pub(crate) meanings: Meanings,
}
