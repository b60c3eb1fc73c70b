//! The tools of a run.

use std::collections::HashMap;
use std::fmt;

use plaincall_call::{Effect, ToolLookup, ToolSpec};

use crate::tool::Tool;

/// Why a tool that writes cannot be tried again.
pub(crate) const NO_RETRY_OF_WRITES: &str = "a tool with the effect `write` is not tried again: a call that failed may have changed something, and a second try would change it twice; if twice is the same as once, say that the effect is `idempotent`";

/// A set of tools with different names. A name means the tool that has exactly this name, or none.
#[derive(Clone, Debug, Default)]
pub struct Toolbox {
    tools: Vec<Tool>,
    places: HashMap<String, usize>,
}

impl Toolbox {
    /// A toolbox with these tools.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn new(tools: impl IntoIterator<Item = Tool>) -> Result<Self, ToolboxError> {
        let mut toolbox = Self::default();
        for tool in tools {
            toolbox.add(tool)?;
        }
        Ok(toolbox)
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// If there is a tool with this name, the definition contradicts itself, or a tool that [writes](Effect::Write) is to
    /// be tried again.
    pub fn add(&mut self, tool: Tool) -> Result<(), ToolboxError> {
        let name = tool.name().to_owned();
        if let Err(error) = tool.spec.check() {
            return Err(ToolboxError::Definition {
                name,
                problem: error.to_string(),
            });
        }
        if let Some(retry) = &tool.policy.retry {
            if tool.spec.effect == Effect::Write {
                return Err(ToolboxError::RetriedWrite { name });
            }
            if retry.attempts == 0 {
                let problem = "it may be started 0 times, so it would never run".to_owned();
                return Err(ToolboxError::Definition { name, problem });
            }
        }
        if self.places.contains_key(&name) {
            return Err(ToolboxError::NameTaken { name });
        }
        self.places.insert(name, self.tools.len());
        self.tools.push(tool);
        Ok(())
    }

    /// The tool with exactly this name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(*self.places.get(name)?)
    }

    /// The tools in the order in which they were added.
    pub fn iter(&self) -> std::slice::Iter<'_, Tool> {
        self.tools.iter()
    }

    /// How many tools there are.
    pub fn len(&self) -> usize {
        self.tools.len()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.tools.is_empty()
    }

    pub(crate) fn at(&self, place: usize) -> Option<&Tool> {
        self.tools.get(place)
    }
}

impl ToolLookup for Toolbox {
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        let place = *self.places.get(name)?;
        Some((place, &self.tools.get(place)?.spec))
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.iter().map(Tool::spec)
    }
}

impl<'a> IntoIterator for &'a Toolbox {
    type Item = &'a Tool;
    type IntoIter = std::slice::Iter<'a, Tool>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}

/// Why a tool cannot be added.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ToolboxError {
    /// Another tool has the name.
    NameTaken {
        /// The name.
        name: String,
    },
    /// The definition contradicts itself.
    Definition {
        /// The name of the tool.
        name: String,
        /// What is wrong with it.
        problem: String,
    },
    /// It may change something, and is to be tried again.
    RetriedWrite {
        /// The name of the tool.
        name: String,
    },
}

impl fmt::Display for ToolboxError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NameTaken { name } => write!(
                formatter,
                "there are two tools with the name `{name}`; give one of them another name"
            ),
            Self::Definition { name, problem } => {
                write!(formatter, "the definition of the tool `{name}`: {problem}")
            }
            Self::RetriedWrite { name } => {
                write!(formatter, "the tool `{name}`: {NO_RETRY_OF_WRITES}")
            }
        }
    }
}

impl std::error::Error for ToolboxError {}
