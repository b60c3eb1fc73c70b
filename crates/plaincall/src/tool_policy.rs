//! How the calls of one tool may run, as plain data.

use std::num::NonZeroU32;
use std::time::Duration;

use plaincall_call::Effect;
use serde::{Deserialize, Serialize};

use crate::milliseconds;

/// How the calls of one tool may run (`spec/running.md`).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolPolicy {
    /// How long a call may run, from its start. Default: one minute.
    #[serde(rename = "timeout_ms", with = "milliseconds")]
    pub timeout: Duration,
    /// How long a call that is to stop may take to end by itself.
    #[serde(rename = "grace_ms", with = "milliseconds")]
    pub grace: Duration,
    /// How many calls of this tool may run at the same time; `None` for any number.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<NonZeroU32>,
    /// Its calls run only when nothing else runs.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// Whether a call that has failed is tried again.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// What becomes of the calls that depend on one that has failed.
    #[serde(default, skip_serializing_if = "Dependents::is_skip")]
    pub dependents: Dependents,
    /// A call of it that ends `ok` ends the run after its turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finishes: bool,
}

impl Default for ToolPolicy {
    fn default() -> Self {
        Self {
            timeout: Duration::from_mins(1),
            grace: Duration::ZERO,
            max_concurrent: None,
            exclusive: false,
            retry: None,
            dependents: Dependents::default(),
            finishes: false,
        }
    }
}

/// How a call that has failed is tried again (`spec/running.md`, "Retries"). Only for tools that read or can be
/// repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Retry {
    /// How often it is started at most, the first start counted.
    pub attempts: u32,
    /// How long it waits before the second start; before each further one twice as long.
    #[serde(rename = "first_wait_ms", with = "milliseconds")]
    pub first_wait: Duration,
    /// How long it waits at most.
    #[serde(rename = "longest_wait_ms", with = "milliseconds")]
    pub longest_wait: Duration,
}

impl Retry {
    /// So many starts at most, with waits from half a second to half a minute.
    pub fn attempts(attempts: u32) -> Self {
        Self {
            attempts,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
        }
    }

    /// How long to wait after so many failed starts. `chance` is from 0 to 1: the wait is between half and the whole of
    /// its length, so that many calls that fail together do not come back together.
    pub(crate) fn wait(&self, failed: u32, chance: f64) -> Duration {
        let doublings = failed.saturating_sub(1).min(31);
        let whole = self.first_wait.saturating_mul(1 << doublings);
        let whole = whole.min(self.longest_wait);
        whole.mul_f64(0.5 + 0.5 * chance.clamp(0.0, 1.0))
    }
}

/// What becomes of the calls that depend on one that ran and failed (`spec/running.md`, "Skipping").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependents {
    /// They are skipped.
    #[default]
    Skip,
    /// They run, and see that it failed.
    Run,
    /// They run, and see that it failed, with this text as its output.
    Fallback(String),
}

impl Dependents {
    fn is_skip(&self) -> bool {
        *self == Self::Skip
    }
}

/// What the record says of a tool.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ToolBegin {
    /// What the tool may do to the world.
    pub effect: Effect,
    /// How its calls may run.
    #[serde(flatten)]
    pub policy: ToolPolicy,
}
