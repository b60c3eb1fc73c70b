//! The version, the tools and the settings of a worker, which must not change while a conversation is in progress.

use std::collections::BTreeMap;
use std::fmt::{Debug, Write as _};

use plaincall::durable::DurableSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The version of this worker.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a conversation was started with.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definitions {
    version: String,
    /// The checksums of the definitions, by tool.
    tools: BTreeMap<String, String>,
    /// The checksum of everything else that decides about replies and calls.
    settings: String,
}

fn checksum(text: &str) -> String {
    let digest = Sha256::digest(text.as_bytes());
    let mut checksum = String::new();
    for byte in digest.iter().take(16) {
        let _ = write!(checksum, "{byte:02x}");
    }
    checksum
}

impl Definitions {
    /// Returns those of a worker. `others` is what it has beside the settings of its runs.
    pub(crate) fn of(
        settings: &DurableSettings,
        release: Option<&str>,
        others: impl Debug,
    ) -> Self {
        let tools = settings.tools().iter();
        let tools = tools.map(|tool| (tool.name().to_owned(), checksum(&tool.fingerprint())));
        let begin = settings.begin(Value::Null);
        let rules = serde_json::to_string(&begin.rules).unwrap_or_default();
        let (policy, dialect) = (begin.policy, settings.model_dialect());
        Self {
            version: release.map_or(VERSION.to_owned(), |name| format!("{VERSION} ({name})")),
            tools: tools.collect(),
            settings: checksum(&format!("{policy:?}{rules}{dialect:?}{others:?}")),
        }
    }

    pub(crate) fn checksum(&self) -> String {
        checksum(&serde_json::to_string(self).unwrap_or_default())
    }

    /// Returns whether a tool is the same in other definitions.
    pub(crate) fn has(&self, tool: &str, started: &Self) -> bool {
        self.version == started.version && self.tools.get(tool) == started.tools.get(tool)
    }

    /// Checks that this worker can continue what was started with other definitions.
    ///
    /// # Errors
    /// Returns the difference.
    pub(crate) fn check(&self, started: &Self) -> Result<(), String> {
        let mut names = started.tools.keys().chain(self.tools.keys());
        let changed = names.find(|name| self.tools.get(*name) != started.tools.get(*name));
        let difference = if self.version != started.version {
            format!(
                "this worker is version {}, but the conversation was started by version {}",
                self.version, started.version
            )
        } else if let Some(name) = changed {
            let change = match (started.tools.get(name), self.tools.get(name)) {
                (Some(_), None) => "no longer exists",
                (None, _) => "is new",
                _ => "has changed",
            };
            format!("the tool `{name}` {change} since the conversation was started")
        } else if self.settings != started.settings {
            "this worker has another policy, other rules, another syntax, model or system prompt, or another `--yes` than the conversation was started with".to_owned()
        } else {
            return Ok(());
        };
        Err(format!(
            "{difference}; this worker runs nothing of the reply in progress, which continues on its own workers; if they no longer exist, start one at their address and register the address again, or kill the invocation"
        ))
    }
}
