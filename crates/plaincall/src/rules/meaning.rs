//! The interpretation of arguments by rules.

use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Debug, Default)]
pub(crate) struct Meanings(Arc<Vec<(String, Meaning)>>);

/// The meaning of an argument that is more than a text.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    /// A shell command line.
    CommandLine,
    /// A path below this directory, absolute or relative to it.
    PathBelow(PathBuf),
}

impl Meanings {
    pub(crate) fn set(&mut self, parameter: String, meaning: Meaning) {
        Arc::make_mut(&mut self.0).push((parameter, meaning));
    }

    pub(crate) fn get(&self, parameter: &str) -> Option<&Meaning> {
        let found = self.0.iter().find(|(name, _)| name == parameter);
        found.map(|(_, meaning)| meaning)
    }
}
