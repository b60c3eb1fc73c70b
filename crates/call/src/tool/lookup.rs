//! Where the tools of a reply come from.

use std::sync::Arc;

use crate::nearest::unknown_tool;
use crate::tool::ToolSpec;

/// Tools that calls can name. A name means the tool that has exactly this name, or none.
pub trait ToolLookup {
    /// The tool with exactly this name, and its place among the tools.
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)>;

    /// All tools, in their order.
    fn specs(&self) -> impl Iterator<Item = &ToolSpec>;

    /// The sentence about a name that no tool has: the tools there are, and the nearest as a suggestion.
    fn unknown(&self, name: &str) -> String {
        unknown_tool(name, self.specs().map(|tool| tool.name.as_str()))
    }
}

impl<T: ToolLookup + ?Sized> ToolLookup for &T {
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        T::find(self, name)
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        T::specs(self)
    }
}

impl<T: ToolLookup> ToolLookup for Arc<T> {
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        T::find(self, name)
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        T::specs(self)
    }
}

impl ToolLookup for [&ToolSpec] {
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        let place = self.iter().position(|tool| tool.name == name)?;
        Some((place, self.get(place)?))
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.iter().map(|tool| &**tool)
    }
}
