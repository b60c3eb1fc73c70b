//! The source of the tools for a reply.

use std::iter;
use std::sync::Arc;

use crate::ToolSpec;
use plaincall_names::unknown_tool;

/// Tools that calls can name. Names match exactly.
pub trait ToolLookup {
    /// Returns the tool with exactly this name, and its index.
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)>;

    /// Returns all tools in order.
    fn specs(&self) -> impl Iterator<Item = &ToolSpec>;

    /// Returns whether the definitions are known. If not, calls are read without them.
    fn are_known(&self) -> bool {
        true
    }

    /// Returns the message for an unknown name: the available tools, and the nearest one as a suggestion.
    fn unknown(&self, name: &str) -> String {
        unknown_tool(name, self.specs().map(|tool| tool.name.as_str()))
    }
}

/// Looks up a tool behind a pointer.
macro_rules! behind {
    ($($pointer:ty),*) => {$(
        impl<T: ToolLookup + ?Sized> ToolLookup for $pointer {
            fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
                T::find(self, name)
            }

            fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
                T::specs(self)
            }

            fn are_known(&self) -> bool {
                T::are_known(self)
            }
        }
    )*};
}

behind!(&T, Arc<T>);

impl ToolLookup for [&ToolSpec] {
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        let place = self.iter().position(|tool| tool.name == name)?;
        Some((place, self.get(place)?))
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.iter().map(|tool| &**tool)
    }
}

/// No definitions: calls are read without them. A program that uses only this contains no code for definitions.
#[derive(Clone, Copy, Debug, Default)]
pub struct NoTools;

impl ToolLookup for NoTools {
    fn find(&self, _: &str) -> Option<(usize, &ToolSpec)> {
        None
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        iter::empty()
    }

    #[inline]
    fn are_known(&self) -> bool {
        false
    }
}

/// `None` if the definitions are not known.
impl<T: ToolLookup> ToolLookup for Option<T> {
    fn find(&self, name: &str) -> Option<(usize, &ToolSpec)> {
        self.as_ref()?.find(name)
    }

    fn specs(&self) -> impl Iterator<Item = &ToolSpec> {
        self.iter().flat_map(T::specs)
    }

    fn are_known(&self) -> bool {
        self.is_some()
    }
}
