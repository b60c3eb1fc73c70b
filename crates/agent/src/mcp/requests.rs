//! Limits the unanswered requests of a server.

use std::collections::HashSet;
use std::sync::Arc;
use std::time::Duration;

use rmcp::RoleClient;
use rmcp::model::{JsonRpcMessage, RequestId, ServerNotification};
use rmcp::service::{RxJsonRpcMessage, TxJsonRpcMessage};
use rmcp::transport::Transport;
use tokio::sync::Semaphore;
use tokio::time::{Instant, timeout_at};
use tokio_util::sync::CancellationToken;

use super::messages::{Reason, answered};

/// The most requests of a server without an answer that it has read.
const MOST_REQUESTS: usize = 64;
/// How long such a server may take to read an answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// A transport that pauses reading while too many requests are unanswered, and ends if that does not change. Otherwise a
/// server that never reads could fill the memory with answers.
pub(super) struct Requests<T> {
    transport: T,
    /// The requests without an answer.
    open: HashSet<RequestId>,
    /// A permit for each further request. Until it is sent, an answer keeps that of its request.
    room: Arc<Semaphore>,
    /// Set when nothing is sent any more: a server that does not read would also block the end.
    ended: CancellationToken,
    /// Since when there is no room.
    since: Option<Instant>,
    /// Set if the server stopped reading.
    reason: Reason,
}

impl<T> Requests<T> {
    pub(super) fn new(transport: T, reason: Reason) -> Self {
        Self {
            transport,
            open: HashSet::new(),
            room: Arc::new(Semaphore::new(MOST_REQUESTS)),
            ended: CancellationToken::new(),
            since: None,
            reason,
        }
    }
}

impl<T: Transport<RoleClient>> Transport<RoleClient> for Requests<T> {
    type Error = T::Error;

    fn send(
        &mut self,
        item: TxJsonRpcMessage<RoleClient>,
    ) -> impl Future<Output = Result<(), Self::Error>> + Send + 'static {
        let is_answer = answered(&item).is_some_and(|id| self.open.remove(id));
        let room = Arc::clone(&self.room);
        let sending = self.transport.send(item);
        let ended = self.ended.clone();
        async move {
            let sent = tokio::select! {
                sent = sending => sent,
                () = ended.cancelled() => Ok(()),
            };
            room.add_permits(is_answer.into());
            sent
        }
    }

    async fn receive(&mut self) -> Option<RxJsonRpcMessage<RoleClient>> {
        // This future may be dropped and called again.
        let since = *self.since.get_or_insert_with(Instant::now);
        if timeout_at(since + PATIENCE, self.room.acquire())
            .await
            .is_err()
        {
            self.reason
                .get_or_init(|| format!("sent {MOST_REQUESTS} requests and read no answers"));
            self.ended.cancel();
            return None;
        }
        self.since = None;
        let Some(received) = self.transport.receive().await else {
            self.ended.cancel();
            return None;
        };
        match &received {
            JsonRpcMessage::Request(request) => {
                let is_new = self.open.insert(request.id.clone());
                self.room.forget_permits(is_new.into());
            }
            JsonRpcMessage::Notification(notification) => {
                // It gets no answer.
                if let ServerNotification::CancelledNotification(cancelled) =
                    &notification.notification
                    && let Some(id) = &cancelled.params.request_id
                {
                    self.room.add_permits(self.open.remove(id).into());
                }
            }
            _ => {}
        }
        Some(received)
    }

    async fn close(&mut self) -> Result<(), Self::Error> {
        self.ended.cancel();
        self.transport.close().await
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use rmcp::service::serve_client;
    use rmcp::transport::async_rw::AsyncRwTransport;
    use tokio::io::{AsyncBufReadExt as _, AsyncWriteExt as _, BufReader};

    use super::{Reason, Requests};
    use crate::mcp::client::Client;

    /// A server that asks so much, and reads the answers or does not: whether it asked in vain.
    async fn stops_reading(pings: usize, reads: bool) -> bool {
        let (ours, theirs) = tokio::io::duplex(512);
        let server = tokio::spawn(async move {
            let (read, mut write) = tokio::io::split(theirs);
            let mut lines = BufReader::new(read).lines();
            let _ = lines.next_line().await;
            let begun = r#"{"jsonrpc":"2.0","id":0,"result":{"protocolVersion":"2025-06-18","capabilities":{},"serverInfo":{"name":"a","version":"1"}}}"#;
            let mut written = write
                .write_all(format!("{begun}\n").as_bytes())
                .await
                .is_ok();
            for number in 0..pings {
                let ping = format!("{{\"jsonrpc\":\"2.0\",\"id\":{number},\"method\":\"ping\"}}\n");
                written = written && write.write_all(ping.as_bytes()).await.is_ok();
                if reads {
                    let _ = lines.next_line().await;
                }
            }
            // Where it stops reading, it stays there.
            while reads && lines.next_line().await.is_ok_and(|line| line.is_some()) {}
            if !reads {
                std::future::pending::<()>().await;
            }
        });
        let reason = Reason::default();
        let (read, write) = tokio::io::split(ours);
        let transport = AsyncRwTransport::new_client(read, write);
        let transport = Requests::new(transport, Arc::clone(&reason));
        let service = serve_client(Client::default(), transport).await;
        let service = service.expect("it begins");
        let peer = service.peer().clone();
        let minute = std::time::Duration::from_mins(1);
        tokio::time::sleep(minute).await;
        let has_ended = peer.is_transport_closed();
        assert_eq!(has_ended, reason.get().is_some());
        server.abort();
        has_ended
    }

    #[tokio::test(start_paused = true)]
    async fn a_server_that_does_not_read_its_answers() {
        assert!(stops_reading(10_000, false).await);
        assert!(!stops_reading(10_000, true).await);
        assert!(!stops_reading(20, false).await);
    }
}
