//! The tools that are known, by name.

use std::collections::HashMap;

use crate::arguments::Arguments;
use crate::bind::bind;
use crate::call::{ToolCall, problems_of_text};
use crate::nearest::nearest_name;
use crate::reply_diagnostic::ReplyDiagnostic;
use crate::spec_error::SpecError;
use crate::tool::ToolSpec;
use crate::tool::lookup::ToolLookup;

/// Definitions of tools with different names. A name means the tool that has exactly this name, or none.
#[derive(Clone, Debug, Default)]
pub struct ToolSet {
    tools: Vec<ToolSpec>,
    places: HashMap<String, usize>,
}

impl ToolSet {
    /// A set of these tools.
    ///
    /// # Errors
    /// As [`add`](Self::add).
    pub fn new(tools: impl IntoIterator<Item = ToolSpec>) -> Result<Self, SpecError> {
        let mut set = Self::default();
        for tool in tools {
            set.add(tool)?;
        }
        Ok(set)
    }

    /// Adds a tool.
    ///
    /// # Errors
    /// Refuses one whose name another has.
    pub fn add(&mut self, tool: ToolSpec) -> Result<(), SpecError> {
        if self.places.contains_key(&tool.name) {
            let message = format!("another tool is called `{}` too", tool.name);
            return Err(SpecError::new("/name", message));
        }
        self.places.insert(tool.name.clone(), self.tools.len());
        self.tools.push(tool);
        Ok(())
    }

    /// The tool with exactly this name.
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        Some(self.find(name)?.1)
    }

    /// The tools in the order in which they were added.
    pub fn iter(&self) -> std::slice::Iter<'_, ToolSpec> {
        self.tools.iter()
    }

    /// Holds a call against the definition of the tool that it names: [`bind`] where there is one.
    ///
    /// # Errors
    /// All problems at once; `unknown_tool` and those of the text if there is no such tool.
    pub fn bind(&self, call: &ToolCall) -> Result<Arguments, Vec<ReplyDiagnostic>> {
        if let Some(tool) = self.get(&call.name) {
            return bind(tool, call);
        }
        let unknown = std::iter::once(self.problem(call));
        Err(unknown.chain(problems_of_text(call)).collect())
    }

    /// The tool whose name was probably meant by one that is none: a suggestion, and nothing to act on.
    pub fn nearest(&self, name: &str) -> Option<&ToolSpec> {
        self.get(nearest_name(name, self.names())?)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
    }

    pub(crate) fn problem(&self, call: &ToolCall) -> ReplyDiagnostic {
        let message = self.unknown(&call.name);
        ReplyDiagnostic::new(ReplyDiagnostic::UNKNOWN_TOOL, "", call.header_span, message)
    }
}

impl ToolLookup for ToolSet {
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        let place = *self.places.get(name)?;
        Some((place, self.tools.get(place)?))
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.tools.iter()
    }
}

impl<'a> IntoIterator for &'a ToolSet {
    type Item = &'a ToolSpec;
    type IntoIter = std::slice::Iter<'a, ToolSpec>;

    fn into_iter(self) -> Self::IntoIter {
        self.iter()
    }
}
