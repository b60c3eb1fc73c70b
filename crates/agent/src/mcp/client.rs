//! The client side of a connection. It supports neither sampling nor roots nor elicitation.
#![allow(
    deprecated,
    reason = "servers of earlier protocol versions still use it"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{ClientConfig, ErrorCode, Implementation, ListRootsResult};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};

/// The client of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    /// Whether the server has reported that its tool list changed.
    pub(super) has_changed: Arc<AtomicBool>,
}

impl ClientHandler for Client {
    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        let message = "roots are not supported";
        Err(ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None))
    }

    async fn on_tool_list_changed(&self, _: NotificationContext<RoleClient>) {
        self.has_changed.store(true, Ordering::Relaxed);
    }

    fn get_info(&self) -> ClientConfig {
        let name = Implementation::new("plaincall", env!("CARGO_PKG_VERSION"));
        // No capabilities.
        ClientConfig::new(rmcp::model::ClientCapabilities::default(), name)
    }
}
