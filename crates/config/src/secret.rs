//! Secrets: what holds one is not shown.

mod redact;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

pub use redact::{Hide, not_shown, redacted, redacted_prose, starred};

/// What is shown in the place of a secret.
const HIDDEN: &str = "(not shown)";

/// Parts of the names of variables, headers, options and parts of an address that hold secrets.
const TELLING: [&str; 10] = [
    "key", "token", "secret", "pass", "auth", "cred", "cookie", "session", "private", "pwd",
];

/// Whether a variable, a header, an option or a key of a configuration is called like something that holds a secret.
pub fn names_a_secret(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|part| name.contains(part))
}

/// An address. It shows itself without what is before `@` in it, and without its query.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Address(pub String);

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let scheme = self.0.find("://").map_or(0, |end| end + 3);
        let (scheme, rest) = self.0.split_at(scheme);
        let (host, path) = rest.split_at(rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()));
        formatter.write_str(scheme)?;
        match host.rsplit_once('@') {
            Some((_, host)) => write!(formatter, "{HIDDEN}@{host}")?,
            None => formatter.write_str(host)?,
        }
        let query = path.find(['?', '#']).map(|at| at + 1);
        formatter.write_str(path.get(..query.unwrap_or(path.len())).unwrap_or_default())?;
        formatter.write_str(query.map_or("", |_| HIDDEN))
    }
}

impl fmt::Debug for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{self}")
    }
}

impl Serialize for Address {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

/// Writes the keys of a table whose values may be secrets.
pub(crate) fn hide_values<'t, T: 't, V, S: Serializer>(
    table: &'t T,
    serializer: S,
) -> Result<S::Ok, S::Error>
where
    &'t T: IntoIterator<Item = (&'t String, V)>,
{
    serializer.collect_map(table.into_iter().map(|(key, _)| (key, HIDDEN)))
}

/// Writes the arguments of a program as far as they may be shown: the first, without the value behind its `=`.
pub(crate) fn hide_arguments<S: Serializer>(
    arguments: &[String],
    serializer: S,
) -> Result<S::Ok, S::Error> {
    let first = |argument: &String| match argument.split_once('=') {
        Some((name, _)) => format!("{name}={HIDDEN}"),
        None => argument.clone(),
    };
    let rest = arguments.iter().skip(1).map(|_| HIDDEN.to_owned());
    serializer.collect_seq(arguments.first().map(first).into_iter().chain(rest))
}
