//! The version and the tools of a worker, which must not change while a call or a conversation is in progress.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use plaincall::Tool;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

/// The version of this worker.
const VERSION: &str = env!("CARGO_PKG_VERSION");

/// What a conversation was started with.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Definitions {
    version: String,
    /// The checksums of the definitions, by tool.
    tools: BTreeMap<String, String>,
}

impl Definitions {
    pub(crate) fn of(tools: &[Tool]) -> Self {
        let tools = tools.iter().map(|tool| {
            let mut text = format!("{:?}", tool.spec());
            let _ = write!(text, "{:?}", tool.policy());
            let digest = Sha256::digest(text.as_bytes());
            let mut checksum = String::new();
            for byte in digest.iter().take(16) {
                let _ = write!(checksum, "{byte:02x}");
            }
            (tool.name().to_owned(), checksum)
        });
        Self {
            version: VERSION.to_owned(),
            tools: tools.collect(),
        }
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
