//! Limits and order of a run, as plain data.

use std::time::Duration;

use plaincall_call::{Limits, Unclosed, untrusted::EchoGuard};
pub use plaincall_config::tools::{Echoes, Order, Writes};
use serde::{Deserialize, Serialize};

use crate::milliseconds;

pub use crate::tool_policy::{Dependents, Retry, ToolPolicy};

/// What holds for all calls of a run (`spec/running.md`). The record of a run begins with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// How many calls may run at the same time; 0 is any number. Default: 32, since a running command holds file
    /// descriptors, and a model can write thousands of calls in one reply.
    pub concurrent: u32,
    /// How many calls a turn may hold; those written after them are rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_turn: Option<u32>,
    /// What orders the calls of a reply in the block syntax.
    pub block_order: Order,
    /// What orders the calls of a reply in the emoji syntax, which names no dependencies.
    pub emoji_order: Order,
    /// How long a turn may take, from its opening to the end of its last call.
    #[serde(
        rename = "turn_timeout_ms",
        default,
        skip_serializing_if = "Option::is_none",
        with = "milliseconds::optional"
    )]
    pub turn_timeout: Option<Duration>,
    /// How long a gate may take for its answer; without one in time the call is denied. Default: an hour.
    #[serde(rename = "gate_timeout_ms", with = "milliseconds")]
    pub gate_timeout: Duration,
    /// When tools run that may change something.
    pub writes: Writes,
    /// What happens to calls without an end marker.
    pub unclosed: Unclosed,
    /// How long a result is at most that goes back to the model whole, in bytes. Default: 64 KiB.
    pub result_limit: usize,
    /// What becomes of calls that also stand in untrusted text.
    pub echoes: Echoes,
    /// How much of the texts from outside is kept to know such calls by, in bytes. When there is more, every call from
    /// then on is treated as one.
    pub untrusted_limit: usize,
    /// How much the calls that a call depends on may pass on to it, in bytes of their results. A call that would be
    /// given more is rejected. Default: 16 MiB.
    pub dependency_limit: usize,
    /// How much may be passed on so to all calls of the run together. Default: 1 GiB.
    pub dependency_total: usize,
    /// How large a call may be.
    pub limits: Limits,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            concurrent: 32,
            calls_per_turn: None,
            block_order: Order::Graph,
            emoji_order: Order::Sequential,
            turn_timeout: None,
            gate_timeout: Duration::from_hours(1),
            writes: Writes::default(),
            unclosed: Unclosed::default(),
            result_limit: 64 << 10,
            echoes: Echoes::default(),
            untrusted_limit: EchoGuard::KEPT_BYTES,
            dependency_limit: 16 << 20,
            dependency_total: 1 << 30,
            limits: Limits::for_running(),
        }
    }
}
