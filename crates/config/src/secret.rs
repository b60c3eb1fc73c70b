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
        let (scheme, rest) = match self.0.find("://") {
            Some(end) => self.0.split_at(end + 3),
            None => ("", self.0.as_str()),
        };
        let (host, path) = rest.split_at(rest.find(['/', '\\', '?', '#']).unwrap_or(rest.len()));
        formatter.write_str(scheme)?;
        match host.rsplit_once('@') {
            Some((_, host)) => write!(formatter, "{HIDDEN}@{host}")?,
            None => formatter.write_str(host)?,
        }
        match path.find(['?', '#']) {
            Some(end) => write!(
                formatter,
                "{}{HIDDEN}",
                path.get(..=end).unwrap_or_default()
            ),
            None => formatter.write_str(path),
        }
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

/// Writes the address without its secrets.
#[allow(clippy::ref_option, reason = "serde passes the field")]
pub(crate) fn show_address<S: Serializer>(
    url: &Option<String>,
    serializer: S,
) -> Result<S::Ok, S::Error> {
    url.clone().map(Address).serialize(serializer)
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
    let shown = |(place, argument): (usize, &String)| match argument.split_once('=') {
        None if place == 0 => argument.clone(),
        Some((name, _)) if place == 0 => format!("{name}={HIDDEN}"),
        _ => HIDDEN.to_owned(),
    };
    serializer.collect_seq(arguments.iter().enumerate().map(shown))
}
