//! Redacts the secrets of a server's configuration from its messages.

use plaincall_config::secret::is_secret_name;

use crate::model::Key;

use super::config::{McpServer, McpTransport};

/// The least length of letters and digits that look like a key.
const LIKE_A_KEY: usize = 16;

#[derive(Default)]
pub(super) struct Secrets {
    keys: Vec<Key>,
    /// Files and URLs with the name of a secret; they are redacted only as a whole.
    places: Vec<String>,
}

impl Secrets {
    /// Collects the secrets of a configuration: values of variables, headers, options and URL parts that are named like a
    /// secret or look like one. Ordinary words are not redacted.
    pub(super) fn of(server: &McpServer) -> Self {
        let mut secrets = Self::default();
        match &server.transport {
            McpTransport::Stdio { args, env, .. } => {
                for (name, value) in env {
                    secrets.add(name, value);
                }
                let mut option = "";
                for argument in args {
                    if let Some((name, value)) = argument.split_once('=') {
                        secrets.add(name, value);
                        option = "";
                    } else {
                        secrets.add(option, argument);
                        option = if argument.starts_with('-') {
                            argument
                        } else {
                            ""
                        };
                    }
                }
            }
            McpTransport::Http { url, headers } => {
                for (name, value) in headers {
                    secrets.add(name, value);
                }
                if let Ok(url) = url::Url::parse(url) {
                    secrets.add("password", url.password().unwrap_or_default());
                    for (name, value) in url.query_pairs() {
                        secrets.add(&name, &value);
                    }
                }
                // As written, too.
                let query = url.split_once('?').map_or("", |(_, query)| query);
                for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
                    secrets.add(name, value);
                }
            }
        }
        // One may be a prefix of another.
        secrets
            .keys
            .sort_by_key(|key| std::cmp::Reverse(key.secret().len()));
        secrets
    }

    fn add(&mut self, name: &str, value: &str) {
        let is_secret = is_secret_name(name);
        let is_place = value.starts_with(['/', '~', '.']) || value.contains("://");
        if is_secret && is_place {
            self.places.push(value.to_owned());
        } else if is_secret {
            // Servers quote a key with and without a prefix such as `Bearer `.
            self.keys.push(Key::new(value));
            self.keys.extend(value.split_whitespace().map(Key::new));
        } else {
            let words = value.split_whitespace().filter(|word| is_like_a_key(word));
            self.keys.extend(words.map(Key::new));
        }
        if let Some((_, rest)) = value.split_once("://")
            && let Some((user, _)) = rest.split_once('@')
            && let Some((_, password)) = user.split_once(':')
        {
            self.keys.push(Key::new(password));
        }
    }

    pub(super) fn redact(&self, text: String) -> String {
        let mut text = text;
        for key in &self.keys {
            text = key.redact(&text);
        }
        for place in &self.places {
            text = text.replace(place, "[key]");
        }
        text
    }
}

fn is_like_a_key(word: &str) -> bool {
    let has = |is: fn(&u8) -> bool| word.bytes().any(|byte| is(&byte));
    word.len() >= LIKE_A_KEY
        && !word.contains(['/', '\\', '@', ':', ','])
        && has(u8::is_ascii_digit)
        && has(u8::is_ascii_alphabetic)
}
