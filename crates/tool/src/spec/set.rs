//! A set of tools, by name.

use std::collections::HashMap;

use crate::SpecError;
use crate::ToolLookup;
use crate::ToolSpec;
use plaincall_names::nearest_name;

/// Definitions of tools with distinct names. Names match exactly.
#[derive(Clone, Debug, Default)]
pub struct ToolSet {
    tools: Vec<ToolSpec>,
    places: HashMap<String, usize>,
}

impl ToolSet {
    /// Creates a set of these tools.
    ///
    /// # Errors
    /// Returns the error of [`add`](Self::add).
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
    /// Returns an error if another tool has the same name.
    pub fn add(&mut self, tool: ToolSpec) -> Result<(), SpecError> {
        if self.places.contains_key(&tool.name) {
            let message = format!("duplicate tool name `{}`", tool.name);
            return Err(SpecError::new("/name", message));
        }
        self.places.insert(tool.name.clone(), self.tools.len());
        self.tools.push(tool);
        Ok(())
    }

    /// Returns the tool with exactly this name.
    pub fn get(&self, name: &str) -> Option<&ToolSpec> {
        Some(self.find(name)?.1)
    }

    /// Returns the tools in the order in which they were added.
    pub fn iter(&self) -> std::slice::Iter<'_, ToolSpec> {
        self.tools.iter()
    }

    /// Returns the tool that an unknown name probably means. Use it for suggestions only.
    pub fn nearest(&self, name: &str) -> Option<&ToolSpec> {
        self.get(nearest_name(name, self.names())?)
    }

    fn names(&self) -> impl Iterator<Item = &str> {
        self.tools.iter().map(|tool| tool.name.as_str())
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
