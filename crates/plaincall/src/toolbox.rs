//! Sets of tools.

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::ops::Deref;
use std::sync::Arc;

use plaincall_tool::{Effect, ToolLookup, ToolSpec};

use crate::tool::Tool;
use crate::tool_policy::ToolBegin;

/// The error for retries of a tool that writes.
pub(crate) const NO_RETRY_OF_WRITES: &str = "tools with the effect `write` cannot be retried, because a failed call may have changed something; if repeating a call is harmless, set the effect `idempotent`";

/// A set of tools with different names, in the order in which they were added. Dereferences to a slice. Names are matched
/// exactly.
#[derive(Clone, Debug, Default)]
pub struct Toolbox {
    tools: Vec<Tool>,
    places: HashMap<String, usize>,
}

impl Toolbox {
    /// Creates a toolbox with these tools.
    ///
    /// # Errors
    /// Returns the errors of [`add`](Self::add).
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
    /// Returns an error if the name is taken, the definition is inconsistent, or the tool [writes](Effect::Write) and has
    /// retries.
    pub fn add(&mut self, tool: Tool) -> Result<(), ToolboxError> {
        let retry = tool.policy.retry.as_ref();
        let problem = match tool.spec.check() {
            Err(error) => error.to_string(),
            Ok(()) if retry.is_some() && tool.spec.effect == Effect::Write => {
                NO_RETRY_OF_WRITES.to_owned()
            }
            Ok(()) if retry.is_some_and(|retry| retry.attempts == 0) => {
                "`attempts` is 0, so the tool would never run".to_owned()
            }
            Ok(()) if self.places.contains_key(tool.name()) => {
                "another tool has this name; rename one of them".to_owned()
            }
            Ok(()) => {
                self.places.insert(tool.name().to_owned(), self.tools.len());
                self.tools.push(tool);
                return Ok(());
            }
        };
        let tool = tool.spec.name;
        Err(ToolboxError { tool, problem })
    }

    /// Returns the tool with this name.
    pub fn get(&self, name: &str) -> Option<&Tool> {
        self.tools.get(*self.places.get(name)?)
    }

    /// Returns these tools as a log knows them: with its settings, and after them those that no longer exist.
    pub(crate) fn as_recorded(
        &self,
        recorded: &BTreeMap<String, ToolBegin>,
        called: &BTreeSet<Arc<str>>,
    ) -> Self {
        let mut all = self.clone();
        let names = recorded.keys().map(String::as_str);
        for name in names.chain(called.iter().map(|name| &**name)) {
            let next = all.tools.len();
            let place = *all.places.entry(name.to_owned()).or_insert(next);
            if place == next {
                all.tools.push(Tool::gone(name));
            }
            if let Some((tool, begin)) = all.tools.get_mut(place).zip(recorded.get(name)) {
                tool.set_begin(begin);
            }
        }
        all
    }

    /// Returns the tool that a submitted call means, with its position.
    pub(crate) fn submittable(&self, name: &str) -> Option<(usize, &Tool)> {
        let place = *self.places.get(name)?;
        Some((place, self.tools.get(place)?))
    }
}

impl Deref for Toolbox {
    type Target = [Tool];

    fn deref(&self) -> &[Tool] {
        &self.tools
    }
}

impl ToolLookup for Toolbox {
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        self.submittable(name)
            .filter(|(_, tool)| !tool.policy.submitted_only)
            .map(|(place, tool)| (place, &tool.spec))
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        let written = self.iter().filter(|tool| !tool.policy.submitted_only);
        written.map(Tool::spec)
    }
}

/// The error of [`Toolbox::add`].
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
#[error("the tool `{tool}`: {problem}")]
pub struct ToolboxError {
    /// The name of the tool.
    pub tool: String,
    /// The problem and the fix.
    pub problem: String,
}
