//! What a server hears that asks something of its client: nothing here is at its service.
#![allow(
    deprecated,
    reason = "servers of earlier versions of the protocol still ask"
)]

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use rmcp::model::{
    ClientConfig, CreateMessageRequestParams, CreateMessageResult, ElicitRequestParams,
    ElicitResult, ElicitationAction, ErrorCode, Implementation, ListRootsResult,
};
use rmcp::service::{NotificationContext, RequestContext, RoleClient};
use rmcp::{ClientHandler, ErrorData};

/// The client of one connection.
#[derive(Clone, Debug, Default)]
pub(super) struct Client {
    /// Whether the server has said that its tools are others by now.
    pub(super) has_changed: Arc<AtomicBool>,
}

fn refused(message: &'static str) -> ErrorData {
    ErrorData::new(ErrorCode::METHOD_NOT_FOUND, message, None)
}

impl ClientHandler for Client {
    async fn create_message(
        &self,
        _: CreateMessageRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<CreateMessageResult, ErrorData> {
        Err(refused("this client lends its model to nobody"))
    }

    async fn list_roots(
        &self,
        _: RequestContext<RoleClient>,
    ) -> Result<ListRootsResult, ErrorData> {
        Err(refused("this client has no roots"))
    }

    async fn create_elicitation(
        &self,
        _: ElicitRequestParams,
        _: RequestContext<RoleClient>,
    ) -> Result<ElicitResult, ErrorData> {
        Ok(ElicitResult::new(ElicitationAction::Decline))
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
