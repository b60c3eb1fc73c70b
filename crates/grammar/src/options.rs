//! Which calls a grammar allows.

use std::num::NonZeroUsize;

use crate::error::GrammarError;
use plaincall_tool::ToolSpec;

/// The calls that a reply may have by default: a weak model repeats its last call without end.
const MOST_CALLS: usize = 8;

/// Which calls a grammar allows. Default: prose, and up to eight calls after it, without ids.
#[derive(Clone, Debug, Default)]
pub struct GrammarOptions {
    choice: Choice,
    most: Option<usize>,
    pub(crate) has_ids: bool,
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
        self.most = Some(1);
        self
    }

    /// Sets the maximum number of calls. Default: 8.
    pub fn most_calls(mut self, count: NonZeroUsize) -> Self {
        self.most = Some(count.get());
        self
    }

    /// Allows ids and dependencies. The emoji syntax has none.
    pub fn ids(mut self) -> Self {
        self.has_ids = true;
        self
    }

    /// Returns the tools that may be called.
    pub(crate) fn chosen<'t>(
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

    pub(crate) fn needs_call(&self) -> bool {
        matches!(self.choice, Choice::Required | Choice::Tool(_))
    }

    pub(crate) fn most(&self) -> usize {
        match self.choice {
            Choice::None => 0,
            _ => self.most.unwrap_or(MOST_CALLS),
        }
    }
}
