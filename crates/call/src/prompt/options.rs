//! What of a prompt is said.

/// What a prompt leaves out. Default: it says everything.
#[derive(Clone, Debug, Default)]
pub struct PromptOptions {
    pub(super) without_dependencies: bool,
    pub(super) one_call: bool,
}

impl PromptOptions {
    /// A prompt that says everything.
    pub fn new() -> Self {
        Self::default()
    }

    /// Says nothing of ids and dependencies, for readers that do not know them. The emoji syntax has none anyway.
    pub fn without_dependencies(mut self) -> Self {
        self.without_dependencies = true;
        self
    }

    /// Asks for at most one call in a reply.
    pub fn one_call(mut self) -> Self {
        self.one_call = true;
        self
    }
}
