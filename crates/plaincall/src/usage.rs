//! The tokens of replies.

use serde::{Deserialize, Serialize};

/// The token usage of replies.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[non_exhaustive]
pub struct Usage {
    /// The tokens that the model read.
    pub input: u64,
    /// The part of `input` that was cached.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub cached: u64,
    /// The tokens that the model wrote, including reasoning.
    pub output: u64,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "the signature that serde requires"
)]
fn is_zero(count: &u64) -> bool {
    *count == 0
}

impl Usage {
    /// Creates a usage without cached tokens.
    pub const fn new(input: u64, output: u64) -> Self {
        Self {
            input,
            cached: 0,
            output,
        }
    }

    /// Sets the part of the input that was cached.
    pub const fn cached(mut self, cached: u64) -> Self {
        self.cached = cached;
        self
    }

    /// Returns the sum of input and output.
    pub const fn total(self) -> u64 {
        self.input.saturating_add(self.output)
    }

    /// Adds the usage of another reply.
    pub const fn add(&mut self, other: Self) {
        self.input = self.input.saturating_add(other.input);
        self.cached = self.cached.saturating_add(other.cached);
        self.output = self.output.saturating_add(other.output);
    }
}
