//! Limits, tools and order, as plain data.

use std::num::NonZeroU32;

/// Limits of a conversation (`spec/running.md`, "Slots" and "What rejects a call").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Limits {
    /// The number of calls that may run at the same time. Default: no limit.
    pub concurrent: Option<NonZeroU32>,
    /// The number of calls in a turn. Further calls are rejected. Default: no limit.
    pub calls_per_turn: Option<u32>,
}

/// The properties of a tool that affect when its calls run (`spec/running.md`, "Slots", "Written order", "Failures that are
/// tolerated" and "Calls that wait for the end of the turn").
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties of a tool"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Tool {
    /// The number of calls of this tool that may run at the same time. Default: no limit.
    pub max_concurrent: Option<NonZeroU32>,
    /// Whether no other call may run at the same time as a call of this tool.
    pub exclusive: bool,
    /// Whether the tool only reads. In sequential order, adjacent calls that only read may run at the same time.
    pub read: bool,
    /// Whether its calls wait for the end of their turn, and are rejected if the reply is truncated.
    pub deferred: bool,
    /// Whether an `error` counts as success for the calls that depend on the call, and for later calls of a sequential turn.
    pub tolerated: bool,
    /// Whether the tool only waits for calls that it submits. Its calls hold no slot.
    pub delegates: bool,
}

/// The index of a tool, from [`Plan::add_tool`](crate::Plan::add_tool).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolIndex(pub(crate) u32);

/// The order in which the calls of a turn start (`spec/running.md`, "Written order").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Only dependencies determine the order.
    Graph,
    /// Calls start in written order, each when the calls before it have ended. Adjacent calls that only read may run at the
    /// same time.
    Sequential {
        /// Whether a call that does not succeed skips the calls that are written after it in the turn and have not started.
        stop_on_error: bool,
    },
}
