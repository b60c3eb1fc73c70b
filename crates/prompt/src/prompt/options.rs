//! Options of the prompt.

use std::num::NonZeroUsize;

/// The default limit of all examples of calls together, in bytes.
const EXAMPLE_BYTES: usize = 4 << 10;

/// Contents of the prompt. By default, it explains what its tools need.
#[derive(Clone, Debug)]
#[allow(
    clippy::struct_excessive_bools,
    reason = "each is an option of its own, which callers set by name"
)]
pub struct PromptOptions {
    pub(super) without_dependencies: bool,
    pub(super) one_call: bool,
    pub(super) every_rule: bool,
    pub(super) example_bytes: usize,
    pub(super) has_few_shot: bool,
    pub(super) description_length: Option<NonZeroUsize>,
}

impl Default for PromptOptions {
    fn default() -> Self {
        Self {
            without_dependencies: false,
            one_call: false,
            every_rule: false,
            example_bytes: EXAMPLE_BYTES,
            has_few_shot: false,
            description_length: None,
        }
    }
}

impl PromptOptions {
    /// Creates the options of a complete prompt.
    pub fn new() -> Self {
        Self::default()
    }

    /// Omits ids and dependencies, for readers that do not support them. The emoji syntax never has them.
    pub fn without_dependencies(mut self) -> Self {
        self.without_dependencies = true;
        self
    }

    /// Allows at most one call in a reply.
    pub fn one_call(mut self) -> Self {
        self.one_call = true;
        self
    }

    /// Explains everything, also what no listed tool needs: for tools that a later message introduces.
    pub fn every_rule(mut self) -> Self {
        self.every_rule = true;
        self
    }

    /// Limits the total size of the tools' examples of calls. Default: 4 KiB. The first example of each tool comes first;
    /// [`Prompt::skipped_examples`](super::Prompt::skipped_examples) returns those that do not fit.
    pub fn example_bytes(mut self, most: usize) -> Self {
        self.example_bytes = most;
        self
    }

    /// Omits examples of calls with a question, because messages show them ([`few_shot`](crate::few_shot)).
    pub fn few_shot(mut self) -> Self {
        self.has_few_shot = true;
        self
    }

    /// Limits the length of each description, in characters (`spec/prompt.md` 3.2). Default: no limit.
    pub fn description_length(mut self, most: NonZeroUsize) -> Self {
        self.description_length = Some(most);
        self
    }
}
