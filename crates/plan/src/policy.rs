//! Limits and order, as plain data.

use std::num::NonZeroU32;

/// Limits of a whole conversation (`spec/running.md`, "Slots" and "What rejects a call").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Limits {
    /// How many calls may run at the same time; `None` for any number.
    /// (`NonZeroU32::new(0)` is `None` too.)
    pub concurrent: Option<NonZeroU32>,
    /// How many calls a turn may hold; those written after them are rejected. `None` for any number.
    pub calls_per_turn: Option<u32>,
}

/// What the plan needs to know of a tool (`spec/running.md`, "Slots", "Order of writing", "Failures that are
/// tolerated" and "Calls that wait for the end of the turn").
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties of a tool, each with its own name"
)]
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Tool {
    /// How many calls of this tool may run at the same time; `None` for any number.
    pub max_concurrent: Option<NonZeroU32>,
    /// Its calls run alone: nothing else runs beside one.
    pub exclusive: bool,
    /// It only reads: in sequential order its calls need not wait for neighbouring calls that only read.
    pub read: bool,
    /// Its calls wait for the end of their turn, and are rejected if the reply breaks off.
    pub deferred: bool,
    /// A call of it that ends `error` neither skips its dependents nor stops the rest of a sequential turn:
    /// they go on as after `ok`.
    pub tolerated: bool,
}

/// A tool registered with [`Plan::add_tool`](crate::Plan::add_tool), in order of registration from 0.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ToolIndex(pub(crate) u32);

/// What orders the calls of a turn (`spec/running.md`, "Order of writing").
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Order {
    /// Dependencies alone: the block dialect, and the emoji dialect when its order is lifted.
    Graph,
    /// Calls start one after another as they were written, each when those before have ended:
    /// the emoji dialect. Neighbouring calls that only read may run together.
    Sequential {
        /// A call that does not end `ok` skips the calls of the turn that are written after it and have
        /// not started.
        stop_on_error: bool,
    },
}
