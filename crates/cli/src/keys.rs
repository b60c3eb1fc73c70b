//! Sources of keys and secrets: files and environment variables.
//!
//! An empty source is an error: without keys, the server would accept every client.

use std::path::Path;

use plaincall_config::settings::{FilePath, MAX_REQUESTS, Model};
use plaincall_gateway::Secret;
use plaincall_gateway::server::KeyLimits;

use crate::environment::Environment;
use crate::status::Failure;
use crate::tools_file;

/// The minimum length of a secret, in bytes, and of a client's key, in characters. Shorter ones could be guessed.
const MIN_LENGTH: usize = 16;
/// How to make a key or a secret.
const HOW_TO_MAKE: &str = "to make one, use `openssl rand -hex 32`";

/// Returns the key of a model's server: from its file or variable, else from the usual variable for its server. `None` if the
/// variable is not set.
pub(crate) fn of_model(
    model: &Model,
    environment: &Environment,
) -> Result<Option<String>, Failure> {
    let Some(source) = model.key() else {
        return Ok(None);
    };
    let file = model.key_file.as_ref().map(|FilePath(file)| file.as_path());
    let source = Source::of(file, source.variable().unwrap_or_default(), environment)?;
    source.map(|source| source.value("key")).transpose()
}

/// Text with keys or a secret.
pub(crate) struct Source {
    name: String,
    text: String,
    is_file: bool,
}

impl Source {
    /// Reads the file if one is set, else the variable if it is set.
    pub(crate) fn of(
        file: Option<&Path>,
        variable: &str,
        environment: &Environment,
    ) -> Result<Option<Self>, Failure> {
        let is_file = file.is_some();
        let name = file.map_or(variable.to_owned(), |file| file.display().to_string());
        let text = match (file, environment.get_set(variable)) {
            (Some(file), _) => tools_file::read_small(file)?.1,
            (None, Some(value)) => {
                let not_utf8 = || Failure::Usage(format!("{variable} is not valid UTF-8"));
                value.to_str().ok_or_else(not_utf8)?.to_owned()
            }
            (None, None) => return Ok(None),
        };
        let source = Self {
            name,
            text,
            is_file,
        };
        Ok(Some(source))
    }

    /// Returns the trimmed text. `what` names it in the error for empty text.
    pub(crate) fn value(&self, what: &str) -> Result<String, Failure> {
        match self.text.trim() {
            "" => Err(self.empty(what)),
            value => Ok(value.to_owned()),
        }
    }

    pub(crate) fn secret(&self) -> Result<Secret, Failure> {
        let secret = self.value("secret")?;
        if secret.len() < MIN_LENGTH {
            return Err(Failure::Usage(format!(
                "the secret in {} has only {} bytes; use at least {MIN_LENGTH} random bytes ({HOW_TO_MAKE})",
                self.name,
                secret.len()
            )));
        }
        Ok(Secret::new(secret))
    }

    /// Returns the keys and their limits: one per line in a file, separated by commas or line breaks in a variable. A line of a
    /// file that begins with `#` is a comment. `limits` are those of keys without their own. Errors do not quote a key.
    pub(crate) fn keys(&self, limits: KeyLimits) -> Result<Vec<(String, KeyLimits)>, Failure> {
        let is_end = |character| character == ',' && !self.is_file;
        let mut keys = Vec::new();
        for (number, line) in (1..).zip(self.text.split('\n')) {
            if self.is_file && line.trim_start().starts_with('#') {
                continue;
            }
            let mut column = 1;
            for entry in line.split(is_end) {
                let mut key: Option<(String, KeyLimits)> = None;
                let mut given = Vec::new();
                for word in entry.split(char::is_whitespace) {
                    match &mut key {
                        _ if word.is_empty() => {}
                        None if word.starts_with("requests=") || word.starts_with("rate=") => {
                            return Err(Failure::Usage(format!(
                                "{}:{number}:{column}: expected a key before its limits",
                                self.name
                            )));
                        }
                        None if word.chars().count() < MIN_LENGTH => {
                            return Err(Failure::Usage(format!(
                                "{}:{number}:{column}: this key has only {} characters; use at least {MIN_LENGTH} ({HOW_TO_MAKE})",
                                self.name,
                                word.chars().count()
                            )));
                        }
                        None => key = Some((word.to_owned(), limits)),
                        Some((_, limits)) => {
                            let name = set_limit(limits, word);
                            let name = name.filter(|name| !given.contains(name));
                            // The word may be part of a key, so it is not quoted.
                            let name = name.ok_or_else(|| {
                                Failure::Usage(format!(
                                    "{}:{number}:{column}: expected `requests=N` or `rate=N` after the key, each at most once, with N from 1 to {MAX_REQUESTS}",
                                    self.name
                                ))
                            })?;
                            given.push(name);
                        }
                    }
                    // One separator follows each word.
                    column += word.chars().count() + 1;
                }
                keys.extend(key);
            }
        }
        if keys.is_empty() {
            return Err(self.empty("key"));
        }
        Ok(keys)
    }

    fn empty(&self, what: &str) -> Failure {
        let name = &self.name;
        let instead = if self.is_file {
            "do not name the file"
        } else {
            "unset it"
        };
        Failure::Usage(format!("{name} has no {what}; add one, or {instead}"))
    }
}

/// Sets a limit from `requests=N` or `rate=N`, and returns its name.
fn set_limit<'w>(limits: &mut KeyLimits, word: &'w str) -> Option<&'w str> {
    let (name, number) = word.split_once('=')?;
    let limit = match name {
        "requests" => &mut limits.concurrent,
        "rate" => &mut limits.per_minute,
        _ => return None,
    };
    let number = number.parse().ok();
    *limit = Some(number.filter(|number| (1..=MAX_REQUESTS).contains(number))?);
    Some(name)
}
