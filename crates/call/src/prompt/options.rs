//! Options of the prompt.

/// Parts that the prompt omits. Default: none.
#[derive(Clone, Debug, Default)]
pub struct PromptOptions {
    pub(super) without_dependencies: bool,
    pub(super) one_call: bool,
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
}
