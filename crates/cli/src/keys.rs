//! Where keys and secrets come from: a file, or the environment.
//!
//! An empty source is an error: without keys, the server would accept every client.

use std::fs;
use std::path::Path;

use plaincall_gateway::Secret;

use crate::environment::Environment;
use crate::status::Failure;

/// The shortest secret, in bytes: 128 bits, if they are random.
const SHORTEST_SECRET: usize = 16;

/// A text with keys, and its name.
pub(crate) struct Source {
    name: String,
    text: String,
    is_file: bool,
}

impl Source {
    /// The file, if one is named; else the variable, if it is set.
    pub(crate) fn of(
        file: Option<&Path>,
        variable: &str,
        environment: &Environment,
    ) -> Result<Option<Self>, Failure> {
        let is_file = file.is_some();
        let name = file.map_or(variable.to_owned(), |file| file.display().to_string());
        let text = match (file, environment.get_set(variable)) {
            (Some(file), _) => fs::read_to_string(file)
                .map_err(|error| Failure::Broken(format!("cannot read {name}: {error}")))?,
            (None, Some(value)) => {
                let no_text = || Failure::Usage(format!("{variable} is not valid UTF-8"));
                value.to_str().ok_or_else(no_text)?.to_owned()
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

    /// The only word in it.
    pub(crate) fn word(&self, what: &str) -> Result<String, Failure> {
        match self.text.trim() {
            "" => Err(self.nothing(what)),
            word => Ok(word.to_owned()),
        }
    }

    /// The secret in it.
    pub(crate) fn secret(&self) -> Result<Secret, Failure> {
        let secret = self.word("secret")?;
        if secret.len() < SHORTEST_SECRET {
            return Err(Failure::Usage(format!(
                "the secret in {} has only {} bytes; use at least {SHORTEST_SECRET} random bytes",
                self.name,
                secret.len()
            )));
        }
        Ok(Secret::new(secret))
    }

    /// The keys in it: one a line in a file, with commas between in a variable.
    pub(crate) fn keys(&self) -> Result<Vec<String>, Failure> {
        let is_end = |character| character == '\n' || (character == ',' && !self.is_file);
        let keys = self.text.split(is_end).map(str::trim);
        let keys = keys.filter(|key| !key.is_empty()).map(str::to_owned);
        let keys: Vec<String> = keys.collect();
        let found = (!keys.is_empty()).then_some(keys);
        found.ok_or_else(|| self.nothing("key"))
    }

    fn nothing(&self, what: &str) -> Failure {
        let name = &self.name;
        let instead = if self.is_file {
            "omit the option"
        } else {
            "unset it"
        };
        Failure::Usage(format!("{name} has no {what}; add one, or {instead}"))
    }
}
