//! Checks the model server before the first request.

use std::time::Duration;

use crate::error::GatewayError;
use crate::server::Shared;

/// The time limit for each request.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Shared {
    /// Requests the model list, and returns a message if that fails.
    pub(super) async fn preflight(&self) -> Option<String> {
        // A model in this process has no address to check.
        let base = self.connection.server()?.base();
        let error = self.ask_for_models("/models").await.err()?;
        let status = error.status;
        match status {
            404 if self.ask_for_models("/v1/models").await.is_ok() => Some(format!(
                "{base}/models does not exist, but {base}/v1/models does; did you mean {base}/v1?"
            )),
            404 => Some(format!(
                "{base}/models does not exist; check the URL of the model server"
            )),
            401 | 403 if self.config.upstream.key().is_some() => Some(format!(
                "the model server rejected the key (status {status})"
            )),
            // It gets the clients' keys.
            401 | 403 if self.keys.is_open() => None,
            401 | 403 => Some("the model server requires a key, but none is set".to_owned()),
            _ => Some(error.message().to_owned()),
        }
    }

    async fn ask_for_models(&self, path: &str) -> Result<(), GatewayError> {
        let asked = tokio::time::timeout(TIMEOUT, self.connection.fetch(path)).await;
        let late = |_| {
            let seconds = TIMEOUT.as_secs();
            let words = "the model server did not answer within";
            Err(GatewayError::upstream(format!("{words} {seconds} seconds")))
        };
        asked.unwrap_or_else(late).map(drop)
    }
}
