//! Limits and order of a run, as plain data.

use std::time::Duration;

use plaincall_call::{EchoGuard, Limits, Unclosed};
use plaincall_plan::Order;
use serde::{Deserialize, Serialize};

use crate::milliseconds;

/// How many calls of a run may be running at the same time if nothing is said.
///
/// A running command holds file descriptors, of which a process often has 1,024, and the machine has only so many
/// processors. A model can write thousands of calls in one reply.
pub const DEFAULT_CONCURRENT: u32 = 32;

/// How long a gate may take for its answer if nothing is said.
pub const DEFAULT_GATE_TIMEOUT: Duration = Duration::from_hours(1);

/// How long a result is at most that goes back to the model whole if nothing is said, in bytes.
pub const DEFAULT_RESULT_LIMIT: usize = 64 << 10;

/// How much of the texts from outside is kept if nothing is said, in bytes.
pub const DEFAULT_HEARD_LIMIT: usize = EchoGuard::KEPT_BYTES;

/// How much the calls that a call depends on pass on to it at most if nothing is said, in bytes.
pub const DEFAULT_DEPENDENCY_LIMIT: usize = 16 << 20;

/// How much is passed on so to all calls of a run together if nothing is said, in bytes.
pub const DEFAULT_DEPENDENCY_TOTAL: usize = 1 << 30;

/// What holds for all calls of a run (`spec/running.md`). The record of a run begins with it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
pub struct Policy {
    /// How many calls may run at the same time; 0 is any number.
    pub concurrent: u32,
    /// How many calls a turn may hold; those written after them are rejected.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_turn: Option<u32>,
    /// What orders the calls of a reply in the block syntax.
    #[serde(with = "order_name")]
    pub block_order: Order,
    /// What orders the calls of a reply in the emoji syntax, which names no dependencies.
    #[serde(with = "order_name")]
    pub emoji_order: Order,
    /// How long a turn may take, from its opening to the end of its last call.
    #[serde(
        rename = "turn_timeout_ms",
        default,
        skip_serializing_if = "Option::is_none",
        with = "milliseconds::optional"
    )]
    pub turn_timeout: Option<Duration>,
    /// How long a gate may take for its answer; without one in time the call is denied.
    #[serde(rename = "gate_timeout_ms", with = "milliseconds")]
    pub gate_timeout: Duration,
    /// When tools run that may change something.
    pub writes: Writes,
    /// What happens to calls without an end marker.
    pub unclosed: Unclosed,
    /// How long a result is at most that goes back to the model whole, in bytes.
    pub result_limit: usize,
    /// What becomes of calls that also stand in untrusted text.
    pub echoes: Echoes,
    /// How much of the texts from outside is kept to know such calls by, in bytes. When there is more, every call from
    /// then on is treated as one.
    pub heard_limit: usize,
    /// How much the calls that a call depends on may pass on to it, in bytes of their results. A call that would be
    /// given more is rejected.
    pub dependency_limit: usize,
    /// How much may be passed on so to all calls of the run together.
    pub dependency_total: usize,
    /// How large a call may be.
    pub limits: Limits,
}

impl Default for Policy {
    fn default() -> Self {
        Self {
            concurrent: DEFAULT_CONCURRENT,
            calls_per_turn: None,
            block_order: Order::Graph,
            emoji_order: Order::Sequential {
                stop_on_error: false,
            },
            turn_timeout: None,
            gate_timeout: DEFAULT_GATE_TIMEOUT,
            writes: Writes::default(),
            unclosed: Unclosed::default(),
            result_limit: DEFAULT_RESULT_LIMIT,
            echoes: Echoes::default(),
            heard_limit: DEFAULT_HEARD_LIMIT,
            dependency_limit: DEFAULT_DEPENDENCY_LIMIT,
            dependency_total: DEFAULT_DEPENDENCY_TOTAL,
            limits: Limits::for_running(),
        }
    }
}

/// When calls of tools run that may change something (`spec/running.md`, "Calls that wait for the end of the turn").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// As soon as they are complete, like all others.
    #[default]
    AtOnce,
    /// When the reply is over, and only if it is whole.
    AtEndOfTurn,
}

/// What becomes of calls that also stand in untrusted text (`spec/running.md`, "Echoes").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Echoes {
    /// They are held: only the gate can let them run, by an answer about this very call.
    #[default]
    Held,
    /// They run like all other calls, and nobody looks for them. What a text from outside says is then as good as what
    /// the model says.
    LikeOthers,
}

mod order_name {
    use plaincall_plan::Order;
    use serde::{Deserialize, Deserializer, Serializer};

    #[allow(
        clippy::trivially_copy_pass_by_ref,
        reason = "the form that serde asks for"
    )]
    pub(super) fn serialize<S: Serializer>(
        order: &Order,
        serializer: S,
    ) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(match order {
            Order::Graph => "graph",
            Order::Sequential {
                stop_on_error: false,
            } => "sequential",
            Order::Sequential {
                stop_on_error: true,
            } => "stop_on_error",
        })
    }

    pub(super) fn deserialize<'d, D: Deserializer<'d>>(deserializer: D) -> Result<Order, D::Error> {
        let name = String::deserialize(deserializer)?;
        match name.as_str() {
            "graph" => Ok(Order::Graph),
            "sequential" => Ok(Order::Sequential {
                stop_on_error: false,
            }),
            "stop_on_error" => Ok(Order::Sequential {
                stop_on_error: true,
            }),
            _ => Err(serde::de::Error::custom(format!(
                "there is no order `{name}`"
            ))),
        }
    }
}
