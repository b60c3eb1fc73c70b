//! What a server is told in confidence, and what may not be read in what it says.

use plaincall_config::names_a_secret;

use crate::model::Key;

use super::config::{McpServer, McpTransport};

/// From so many characters on, letters and digits without a blank or a slash between them look like a key.
const LIKE_A_KEY: usize = 16;

#[derive(Default)]
pub(super) struct Secrets {
    keys: Vec<Key>,
    /// Files and addresses that are called like a secret. Their beginnings stand everywhere.
    places: Vec<String>,
}

impl Secrets {
    /// What of a server's configuration is secret: values of variables, headers, options of its command line and parts of
    /// its address that are called like one or look like one. Ordinary words stay readable, which stand in results too.
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
                // As it is written, too.
                let query = url.split_once('?').map_or("", |(_, query)| query);
                for (name, value) in query.split('&').filter_map(|pair| pair.split_once('=')) {
                    secrets.add(name, value);
                }
            }
        }
        // One may begin with another.
        secrets
            .keys
            .sort_by_key(|key| std::cmp::Reverse(key.secret().len()));
        secrets
    }

    fn add(&mut self, name: &str, value: &str) {
        let is_secret = names_a_secret(name);
        let is_place = value.starts_with(['/', '~', '.']) || value.contains("://");
        if is_secret && is_place {
            self.places.push(value.to_owned());
        } else if is_secret {
            // Servers quote a key with and without the word before it, as in `Bearer …`.
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

    pub(super) fn conceal(&self, text: String) -> String {
        let mut text = text;
        for key in &self.keys {
            text = key.conceal(&text);
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
