//! Limits and order of a run, as plain data.

use std::time::Duration;

pub use plaincall_config::tools::{Echoes, Order, Writes};
use plaincall_reply::{Unclosed, untrusted::EchoGuard};
use plaincall_tool::Limits;
use serde::{Deserialize, Serialize};

use crate::milliseconds;

pub use crate::tool_policy::{Dependents, Retry, ToolPolicy};

/// Limits and order of all calls of a run (`spec/running.md`). The first line of a log contains it.
///
/// ```
/// use std::time::Duration;
/// use plaincall::Policy;
///
/// let policy = Policy::default().concurrent(4).turn_timeout(Some(Duration::from_mins(5)));
/// ```
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct Policy {
    /// The maximum number of calls at the same time; 0 means no limit. Default: 32, because a running command holds file
    /// descriptors, and a model can write thousands of calls in one reply.
    pub concurrent: u32,
    /// The maximum number of calls in a turn; further calls are rejected. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub calls_per_turn: Option<u32>,
    /// The order of calls in the block syntax.
    pub block_order: Order,
    /// The order of calls in the emoji syntax, which has no dependencies.
    pub emoji_order: Order,
    /// The time limit of a turn, from its start to the end of its last call. Default: no limit.
    #[serde(rename = "turn_timeout_ms", with = "milliseconds::optional")]
    #[serde(skip_serializing_if = "Option::is_none")]
    pub turn_timeout: Option<Duration>,
    /// The time limit for an answer of the gate; then the call is denied, at once if it is zero. Default: one hour.
    #[serde(rename = "gate_timeout_ms", with = "milliseconds")]
    pub gate_timeout: Duration,
    /// When calls of tools that write run.
    pub writes: Writes,
    /// Decides about calls without an end marker.
    pub unclosed: Unclosed,
    /// The maximum length of a result for the model, in bytes; longer ones are truncated. Default: 64 KiB.
    pub result_limit: usize,
    /// Decides about calls that also appear in untrusted text.
    pub echoes: Echoes,
    /// How much untrusted text is kept to detect such calls, in bytes. If there is more, every later call is held.
    pub untrusted_limit: usize,
    /// The maximum size of the results that a call gets from its dependencies, in bytes; with more, it is rejected. Default:
    /// 16 MiB.
    pub dependency_limit: usize,
    /// The same limit for all calls of the run together. Default: 1 GiB.
    pub dependency_total: usize,
    /// Size limits of a call.
    pub limits: Limits,
}

macro_rules! setters {
    ($($field:ident: $type:ty,)*) => {
        impl Policy {
            $(
                #[doc = concat!("Sets [`", stringify!($field), "`](field@Self::", stringify!($field), ").")]
                pub fn $field(self, $field: $type) -> Self {
                    Self { $field, ..self }
                }
            )*
        }
    };
}

setters! {
    concurrent: u32,
    calls_per_turn: Option<u32>,
    block_order: Order,
    emoji_order: Order,
    turn_timeout: Option<Duration>,
    gate_timeout: Duration,
    writes: Writes,
    unclosed: Unclosed,
    result_limit: usize,
    echoes: Echoes,
    untrusted_limit: usize,
    dependency_limit: usize,
    dependency_total: usize,
    limits: Limits,
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
