//! Limits and retries of one tool, as plain data.

use std::num::NonZeroU32;
use std::time::Duration;

use plaincall_tool::Effect;
use serde::{Deserialize, Serialize};

use crate::milliseconds;

/// Limits and retries of one tool (`spec/running.md`).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[expect(
    clippy::struct_excessive_bools,
    reason = "independent properties of a tool"
)]
#[non_exhaustive]
pub struct ToolPolicy {
    /// The timeout of a call, from its start. Default: one minute.
    #[serde(rename = "timeout_ms", with = "milliseconds")]
    pub timeout: Duration,
    /// How long a call may take to end after it was asked to stop.
    #[serde(rename = "grace_ms", with = "milliseconds")]
    pub grace: Duration,
    /// The maximum number of calls of this tool at the same time. Default: no limit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_concurrent: Option<NonZeroU32>,
    /// Whether its calls run alone.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub exclusive: bool,
    /// Whether and how failed calls are retried.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub retry: Option<Retry>,
    /// Decides about calls that depend on a failed call.
    #[serde(default, skip_serializing_if = "Dependents::is_skip")]
    pub dependents: Dependents,
    /// Whether a call that ends `ok` ends the run after its turn.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub finishes: bool,
    /// Whether its calls only wait for calls that they submit, so they hold no slot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub delegates: bool,
    /// Whether only programs and other tools can call it: the model cannot.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub submitted_only: bool,
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
            delegates: false,
            submitted_only: false,
        }
    }
}

/// How failed calls are retried (`spec/running.md`, "Retries"). Only for tools that read or are idempotent.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Retry {
    /// The maximum number of attempts, including the first.
    pub attempts: u32,
    /// The delay before the second attempt; it doubles with each further attempt.
    #[serde(rename = "first_wait_ms", with = "milliseconds")]
    pub first_wait: Duration,
    /// The longest delay.
    #[serde(rename = "longest_wait_ms", with = "milliseconds")]
    pub longest_wait: Duration,
}

impl Retry {
    /// Creates a policy with this many attempts and delays from 0.5 to 30 seconds.
    pub fn attempts(attempts: u32) -> Self {
        Self {
            attempts,
            first_wait: Duration::from_millis(500),
            longest_wait: Duration::from_secs(30),
        }
    }

    /// Sets the delay before the second attempt, and the longest delay.
    pub fn waits(mut self, first: Duration, longest: Duration) -> Self {
        (self.first_wait, self.longest_wait) = (first, longest);
        self
    }

    /// Returns the delay after this many failed attempts. `chance` is from 0 to 1 and shortens the delay by up to half, so that
    /// calls that fail together do not retry together.
    pub(crate) fn wait(&self, failed: u32, chance: f64) -> Duration {
        let doublings = failed.saturating_sub(1).min(31);
        let whole = self.first_wait.saturating_mul(1 << doublings);
        let whole = whole.min(self.longest_wait);
        whole.mul_f64(0.5 + 0.5 * chance.clamp(0.0, 1.0))
    }
}

/// The treatment of calls that depend on a call that ran and failed (`spec/running.md`, "Skipping").
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Dependents {
    /// They are skipped.
    #[default]
    Skip,
    /// They run, and get the failure.
    Run,
    /// They run, and get the failure with this text as the output.
    Fallback(String),
}

impl Dependents {
    fn is_skip(&self) -> bool {
        *self == Self::Skip
    }
}

/// The settings of a tool, as the log contains them.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct ToolBegin {
    /// The effect of the tool.
    pub effect: Effect,
    /// Its limits and retries.
    #[serde(flatten)]
    pub policy: ToolPolicy,
}
