//! The client of a connection. It serves nothing: it has no model, no roots and no user for a server.
#![allow(
    deprecated,
    reason = "servers of earlier versions of the protocol still ask"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{ClientConfig, ErrorCode, Implementation, ListRootsResult};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};

/// The client of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    /// Whether the server has said that its tools are others by now.
    pub(super) has_changed: Arc<AtomicBool>,
}

impl ClientHandler for Client {
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let message = "this client has no roots";
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.has_changed.store(true, Ordering::Relaxed);
    }

    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("plaincall", env!("CARGO_PKG_VERSION"));
        // It announces nothing that a server may ask for.
        ClientConfig::new(rmcp::model::ClientCapabilities::default(), name)
    }
}
