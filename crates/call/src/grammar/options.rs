//! Which calls a grammar allows.

use super::{GrammarError, MostCalls};
use crate::tool::ToolSpec;

/// Which calls a grammar allows. Default: prose and any number of calls, without ids.
#[derive(Clone, Debug, Default)]
pub struct GrammarOptions {
    choice: Choice,
    is_one_call: bool,
    pub(super) has_ids: bool,
}

/// Whether a reply calls a tool.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub enum Choice {
    /// The model decides.
    #[default]
    Auto,
    /// At least one call.
    Required,
    /// At least one call, of this tool only.
    Tool(String),
    /// No call.
    None,
}

impl GrammarOptions {
    /// Creates the default options.
    pub fn new() -> Self {
        Self::default()
    }

    /// Sets whether a reply calls a tool.
    pub fn choice(mut self, choice: Choice) -> Self {
        self.choice = choice;
        self
    }

    /// Requires a call.
    pub fn required(self) -> Self {
        self.choice(Choice::Required)
    }

    /// Allows at most one call.
    pub fn one_call(mut self) -> Self {
        self.is_one_call = true;
        self
    }

    /// Allows ids and dependencies. The emoji syntax has none.
    pub fn ids(mut self) -> Self {
        self.has_ids = true;
        self
    }

    /// Returns the tools that may be called.
    pub(super) fn chosen<'t>(
        &self,
        tools: &[&'t ToolSpec],
    ) -> Result<Vec<&'t ToolSpec>, GrammarError> {
        match &self.choice {
            Choice::None => Ok(Vec::new()),
            Choice::Required if tools.is_empty() => Err(GrammarError::NoTools),
            Choice::Auto | Choice::Required => Ok(tools.to_vec()),
            Choice::Tool(name) => match tools.iter().find(|tool| tool.name == *name) {
                Some(tool) => Ok(vec![*tool]),
                None => Err(GrammarError::UnknownTool { name: name.clone() }),
            },
        }
    }

    pub(super) fn needs_call(&self) -> bool {
        matches!(self.choice, Choice::Required | Choice::Tool(_))
    }

    pub(super) fn most_calls(&self) -> MostCalls {
        match (&self.choice, self.is_one_call) {
            (Choice::None, _) => MostCalls::None,
            (_, true) => MostCalls::One,
            (_, false) => MostCalls::Any,
        }
    }
}
