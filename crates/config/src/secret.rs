//! Hides secrets in output.

mod redact;

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize, Serializer};

pub(crate) use redact::is_variable_name;
pub use redact::{Hide, not_shown, redacted, redacted_prose, starred};

/// The placeholder for a secret.
const HIDDEN: &str = "(not shown)";

/// Parts of names of variables, headers, options and URL components that contain secrets.
const TELLING: [&str; 10] = [
    "key", "token", "secret", "pass", "auth", "cred", "cookie", "session", "private", "pwd",
];

/// Returns whether the name of a variable, header, option or key suggests that its value is secret.
pub fn is_secret_name(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    TELLING.iter().any(|part| name.contains(part))
}

/// A URL. Displaying it hides the user information and the query.
#[derive(Clone, PartialEq, Eq, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)]
pub struct Address(pub String);

impl Address {
    pub(crate) fn is_web(&self) -> bool {
        self.0.starts_with("http://") || self.0.starts_with("https://")
    }
}

impl fmt::Display for Address {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut url = self.0.as_str();
        let scheme = scheme_end(url);
        // If `://` is misspelled, only the last `@` shows where the user information ends.
        if let Some((_, host)) = url.rsplit_once('@').filter(|_| scheme == 0) {
            write!(formatter, "{HIDDEN}@")?;
            url = host;
        }
        let (scheme, rest) = url.split_at(scheme);
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

/// Returns where the host or the user information of a URL begins: 0 without `://` after its first word.
fn scheme_end(url: &str) -> usize {
    let end = url.find(|c: char| !(c.is_ascii_alphanumeric() || "+.-".contains(c)));
    let end = end.filter(|end| url.get(*end..).is_some_and(|rest| rest.starts_with("://")));
    end.map_or(0, |end| end + 3)
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

/// Serializes a table with hidden values.
pub(crate) fn hide_values<'t, T: 't, V, S: Serializer>(
    table: &'t T,
    serializer: S,
) -> Result<S::Ok, S::Error>
where
    &'t T: IntoIterator<Item = (&'t String, V)>,
{
    serializer.collect_map(table.into_iter().map(|(key, _)| (key, HIDDEN)))
}

/// Serializes the arguments of a program without secrets: only the first, without the value after `=`.
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
