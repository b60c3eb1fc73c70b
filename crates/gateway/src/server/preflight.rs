//! Checks the model server before the first request.

use std::time::Duration;

use futures_util::future::join_all;
use http::HeaderMap;
use plaincall_wire::paths;

use crate::error::GatewayError;
use crate::server::Shared;
use crate::server::upstream::Connection;

/// The time limit for each request.
const TIMEOUT: Duration = Duration::from_secs(5);

impl Shared {
    /// Requests the model lists, and returns a message for each that fails.
    pub(super) async fn preflight(&self) -> Vec<String> {
        let servers = self.routes.all();
        let problems = join_all(servers.into_iter().map(|server| self.problem(server))).await;
        problems.into_iter().flatten().collect()
    }

    async fn problem(&self, server: &Connection) -> Option<String> {
        // A model in this process has no address to check.
        let base = server.base()?;
        let error = ask_for_models(server, paths::after_base(paths::MODELS))
            .await
            .err()?;
        let at = match self.routes.only() {
            Some(_) => String::new(),
            None => format!("{base}: "),
        };
        match error.status {
            404 if ask_for_models(server, paths::MODELS).await.is_ok() => Some(format!(
                "{base}/models does not exist, but {base}/v1/models does; did you mean {base}/v1?"
            )),
            404 => Some(format!(
                "{base}/models does not exist; check the URL of the model server"
            )),
            status @ (401 | 403) if server.key().is_some() => Some(format!(
                "{at}the model server rejected the key (status {status})"
            )),
            401 | 403 if server.forwards_client_keys() => None,
            401 | 403 => Some(format!(
                "{at}the model server requires a key, but none is set"
            )),
            _ => Some(format!(
                "{at}{}; requests fail until it answers",
                error.message()
            )),
        }
    }
}

async fn ask_for_models(server: &Connection, path: &str) -> Result<(), GatewayError> {
    let asked = tokio::time::timeout(TIMEOUT, server.fetch(path, HeaderMap::new())).await;
    let late = |_| {
        let seconds = TIMEOUT.as_secs();
        let words = "the model server did not answer within";
        Err(GatewayError::upstream(format!("{words} {seconds} seconds")))
    };
    asked.unwrap_or_else(late).map(drop)
}
