//! What the text of an argument is for a rule, if it is more than a text.

use std::path::PathBuf;
use std::sync::Arc;

/// What the arguments of a tool mean.
#[derive(Clone, Debug, Default)]
pub(crate) struct Meanings(Arc<Vec<(String, Meaning)>>);

/// What a text means.
#[derive(Clone, Debug)]
pub(crate) enum Meaning {
    /// A shell runs it.
    CommandLine,
    /// It is a path below this directory, relative to it or absolute.
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
