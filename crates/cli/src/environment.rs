//! The environment of the process. No other module reads it.

use std::collections::BTreeMap;
use std::env;
use std::ffi::{OsStr, OsString};
use std::path::{Path, PathBuf};

use crate::platform;

/// The environment variables at startup.
#[derive(Clone, Debug)]
pub(crate) struct Environment {
    variables: BTreeMap<OsString, OsString>,
}

impl Environment {
    #[allow(
        clippy::disallowed_methods,
        reason = "the command line reads the environment here and passes it on"
    )]
    pub(crate) fn read() -> Self {
        Self {
            variables: env::vars_os()
                .map(|(name, value)| (platform::variable_name(name), value))
                .collect(),
        }
    }

    /// Returns the value of a variable that is set, even to the empty string.
    pub(crate) fn get_set(&self, name: &str) -> Option<&OsStr> {
        let value = self.variables.get(&platform::variable_name(name.into()));
        value.map(OsString::as_os_str)
    }

    /// Returns the value of a variable that is set and not empty.
    pub(crate) fn get(&self, name: &str) -> Option<&OsStr> {
        self.get_set(name).filter(|value| !value.is_empty())
    }

    /// Returns the names of the variables that start with `prefix`. Names that are not UTF-8 are skipped.
    pub(crate) fn names_with<'e>(&'e self, prefix: &'e str) -> impl Iterator<Item = &'e str> {
        let names = self.variables.keys().filter_map(|name| name.to_str());
        names.filter(move |name| name.starts_with(prefix))
    }

    /// Returns the directory for temporary files.
    pub(crate) fn temporary_directory(&self) -> PathBuf {
        platform::temporary_directory(self)
    }

    /// Returns the home directory of the user.
    pub(crate) fn home(&self) -> Option<&Path> {
        self.get(platform::HOME).map(Path::new)
    }

    /// Returns the directory of Plaincall in the directory of a variable, or else below the home directory.
    pub(crate) fn directory(&self, (variable, otherwise): (&str, &[&str])) -> Option<PathBuf> {
        // The XDG specification ignores relative paths.
        let value = self.get(variable).map(Path::new);
        let base = match value.filter(|path| path.is_absolute()) {
            Some(path) => path.to_owned(),
            None => otherwise
                .iter()
                .fold(self.home()?.to_owned(), |path, name| path.join(name)),
        };
        Some(base.join("plaincall"))
    }

    /// Returns whether the terminal can move its cursor.
    pub(crate) fn has_capable_terminal(&self) -> bool {
        platform::has_capable_terminal(self)
    }

    /// Returns whether the terminal can show more than ASCII: yes, unless the locale is not UTF-8.
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
