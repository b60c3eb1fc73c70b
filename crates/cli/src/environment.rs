//! The environment of the process. This is the only place that reads it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::PathBuf;

/// The variables as they were when the command began.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    #[allow(
        clippy::disallowed_methods,
        reason = "the command line reads the environment here, and hands it on"
    )]
    pub(crate) fn read() -> Self {
        Self {
            variables: env::vars_os().collect(),
        }
    }

    /// The value of a variable that is set, also to nothing.
    pub(crate) fn get_set(&self, name: &str) -> Option<&OsStr> {
        let value = self.variables.get(OsStr::new(name));
        value.map(OsString::as_os_str)
    }

    /// The value of a variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.get_set(name).filter(|value| !value.is_empty())
    }

    /// The names of the variables that begin with `prefix`, as far as they are texts.
    pub(crate) fn names_with<'e>(&'e self, prefix: &'e str) -> impl Iterator<Item = &'e str> {
        let names = self.variables.keys().filter_map(|name| name.to_str());
        names.filter(move |name| name.starts_with(prefix))
    }

    /// Where temporary directories are made.
    pub(crate) fn temporary_directory(&self) -> PathBuf {
        self.get("TMPDIR")
            .map_or_else(|| PathBuf::from("/tmp"), PathBuf::from)
    }

    /// Whether the terminal can move its cursor.
    pub(crate) fn has_capable_terminal(&self) -> bool {
        self.get("TERM").is_some_and(|name| name != "dumb")
    }

    /// Whether the terminal can show more than ASCII. Without a locale, it can.
    pub(crate) fn has_unicode(&self) -> bool {
        if self.get("TERM").is_some_and(|name| name == "linux") {
            return false;
        }
        let locale = ["LC_ALL", "LC_CTYPE", "LANG"]
            .into_iter()
            .find_map(|name| self.get(name));
        locale.is_none_or(|locale| {
            let locale = locale.to_string_lossy().to_lowercase();
            locale.contains("utf-8") || locale.contains("utf8")
        })
    }

    pub(crate) fn into_variables(self) -> BTreeMap<OsString, OsString> {
        self.variables
    }
}
