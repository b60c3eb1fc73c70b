//! What speaks against the model's server, before anybody has asked it for something.

use std::time::Duration;

use crate::refusal::Refusal;
use crate::server::Shared;

/// How long it may take.
const PATIENCE: Duration = Duration::from_secs(5);

impl Shared {
    /// Asks the model's server for its models, and says what is wrong with the answer.
    pub(super) async fn doubts(&self) -> Option<String> {
        // A model in this process has no address that could be wrong.
        let base = self.connection.server()?.base();
        let refusal = self.ask_for_models("/models").await.err()?;
        let status = refusal.status;
        match status {
            404 if self.ask_for_models("/v1/models").await.is_ok() => Some(format!(
                "there is no {base}/models, but there is {base}/v1/models: the address of the model's server probably is {base}/v1"
            )),
            404 => Some(format!(
                "there is no {base}/models: is that the address of the model's server?"
            )),
            401 | 403 if self.config.upstream.key().is_some() => Some(format!(
                "the model's server does not take the key (status {status})"
            )),
            // It gets those of the clients.
            401 | 403 if self.keys.is_open() => None,
            401 | 403 => {
                Some("the model's server wants a key, and there is none for it".to_owned())
            }
            _ => Some(refusal.message().to_owned()),
        }
    }

    async fn ask_for_models(&self, path: &str) -> Result<(), Refusal> {
        let asked = tokio::time::timeout(PATIENCE, self.connection.fetch(path)).await;
        let late = |_| {
            let seconds = PATIENCE.as_secs();
            let words = "the model's server has not answered in";
            Err(Refusal::upstream(format!("{words} {seconds} seconds")))
        };
        asked.unwrap_or_else(late).map(drop)
    }
}
