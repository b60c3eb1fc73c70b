//! The version and the tools of a worker, which must not change while a call or a conversation is in progress.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plaincall::durable::DurableSettings;
use serde::{Deserialize, Serialize};
use serde_json::Value;
use sha2::{Digest as _, Sha256};

/// The version of this worker.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a conversation was started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definitions {
    version: String,
    /// The checksum of what decides about calls: policy, rules, syntax and `approve_all`.
    settings: String,
    /// The checksums of the definitions, by tool.
    tools: BTreeMap<String, String>,
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
    pub(crate) fn of(settings: &DurableSettings) -> Self {
        let tools = settings.tools().iter().map(|tool| {
            let text = format!("{:?}{:?}", tool.spec(), tool.policy());
            (tool.name().to_owned(), checksum(&text))
        });
        let begin = settings.begin(Value::Null);
        let rules = serde_json::to_string(&begin.rules).unwrap_or_default();
        let (policy, dialect) = (begin.policy, settings.model_dialect());
        Self {
            version: VERSION.to_owned(),
            settings: checksum(&format!("{policy:?}{rules}{dialect:?}")),
            tools: tools.collect(),
        }
    }

    pub(crate) fn approve_all(self) -> Self {
        let settings = format!("{}, approve all", self.settings);
        Self { settings, ..self }
    }

    pub(crate) fn release(self, name: &str) -> Self {
        let version = format!("{VERSION} ({name})");
        Self { version, ..self }
    }

    /// Returns those of one tool.
    pub(crate) fn only(&self, tool: &str) -> Self {
        let own = self.tools.get_key_value(tool);
        let own = own.map(|(name, checksum)| (name.clone(), checksum.clone()));
        Self {
            version: self.version.clone(),
            settings: self.settings.clone(),
            tools: own.into_iter().collect(),
        }
    }

    /// Checks that this worker can continue what was started with other definitions. More tools are harmless for a call.
    ///
    /// # Errors
    /// Returns the difference.
    pub(crate) fn check(&self, started: &Self) -> Result<(), String> {
        let help = "this worker runs nothing; start a worker of the old definition at the same address, or cancel the invocation";
        if self.version != started.version {
            return Err(format!(
                "this worker is version {}, but the conversation was started by version {}; {help}",
                self.version, started.version
            ));
        }
        if self.settings != started.settings {
            return Err(format!(
                "this worker has another policy, other rules, another syntax or another `--yes` than the conversation was started with; {help}"
            ));
        }
        for (name, checksum) in &started.tools {
            let problem = match self.tools.get(name) {
                None => "no longer exists",
                Some(now) if now != checksum => "has changed",
                Some(_) => continue,
            };
            return Err(format!(
                "the tool `{name}` {problem} since the conversation was started; {help}"
            ));
        }
        Ok(())
    }
}
