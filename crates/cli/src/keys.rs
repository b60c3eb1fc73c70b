//! Sources of keys and secrets: files and environment variables.
//!
//! An empty source is an error: without keys, the server would accept every client.

use std::fs;
use std::path::Path;

use plaincall_gateway::Secret;

use crate::environment::Environment;
use crate::status::Failure;

/// The minimum length of a secret, in bytes: 128 bits if they are random.
const MIN_SECRET: usize = 16;

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
            (Some(file), _) => fs::read_to_string(file)
                .map_err(|error| Failure::Runtime(format!("cannot read {name}: {error}")))?,
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

    /// Returns the secret.
    pub(crate) fn secret(&self) -> Result<Secret, Failure> {
        let secret = self.value("secret")?;
        if secret.len() < MIN_SECRET {
            return Err(Failure::Usage(format!(
                "the secret in {} has only {} bytes; use at least {MIN_SECRET} random bytes",
                self.name,
                secret.len()
            )));
        }
        Ok(Secret::new(secret))
    }

    /// Returns the keys: one per line in a file, separated by commas or line breaks in a variable.
    pub(crate) fn keys(&self) -> Result<Vec<String>, Failure> {
        let is_end = |character| character == '\n' || (character == ',' && !self.is_file);
        let keys = self.text.split(is_end).map(str::trim);
        let keys = keys.filter(|key| !key.is_empty()).map(str::to_owned);
        let keys: Vec<String> = keys.collect();
        let found = (!keys.is_empty()).then_some(keys);
        found.ok_or_else(|| self.empty("key"))
    }

    fn empty(&self, what: &str) -> Failure {
        let name = &self.name;
        let instead = if self.is_file {
            "omit the option"
        } else {
            "unset it"
        };
        Failure::Usage(format!("{name} has no {what}; add one, or {instead}"))
    }
}
