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
        match tokio::time::timeout(PATIENCE, self.ask_for_models("/models")).await {
            Ok(Ok(())) => None,
            Ok(Err(refusal)) if refusal.status == 404 => {
                let below = self.ask_for_models("/v1/models");
                let is_below = tokio::time::timeout(PATIENCE, below).await;
                Some(if matches!(is_below, Ok(Ok(()))) {
                    format!(
                        "there is no {base}/models, but there is {base}/v1/models: the address of the model's server probably is {base}/v1"
                    )
                } else {
                    format!("there is no {base}/models: is that the address of the model's server?")
                })
            }
            Ok(Err(refusal)) if matches!(refusal.status, 401 | 403) => {
                match (self.config.upstream.key(), self.keys.is_open()) {
                    (Some(_), _) => Some(format!(
                        "the model's server does not take the key (status {})",
                        refusal.status
                    )),
                    (None, false) => {
                        Some("the model's server wants a key, and there is none for it".to_owned())
                    }
                    // It gets those of the clients.
                    (None, true) => None,
                }
            }
            Ok(Err(refusal)) => Some(refusal.message().to_owned()),
            Err(_) => {
                let seconds = PATIENCE.as_secs();
                Some(format!(
                    "the model's server at {base} has not answered in {seconds} seconds"
                ))
            }
        }
    }

    async fn ask_for_models(&self, path: &str) -> Result<(), Refusal> {
        self.connection.fetch(path).await.map(drop)
    }
}
