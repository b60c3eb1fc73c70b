//! The accept loop of the server.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tower_service::Service as _;

use crate::server::Gateway;
use crate::server::socket::{Socket, Turns};

/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long clients can read the final errors before their connections close.
const FINAL_GRACE: Duration = Duration::from_secs(2);

/// Serves until `shutdown` completes, then completes the active requests. Returns how many were not complete in time.
///
/// All connections are tasks of this future, so they end with it.
pub(super) async fn serve(
    gateway: &Gateway,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> usize {
    let shared = gateway.shared();
    let config = &shared.config;
    let mut http = hyper::server::conn::http1::Builder::new();
    // `Socket` has its own timeouts.
    http.header_read_timeout(None)
        .max_buf_size(config.limits.head);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let free = Arc::new(Semaphore::new(config.limits.connections));
    let accept = async || {
        let permit = Arc::clone(&free).acquire_owned().await;
        (listener.accept().await, permit)
    };
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (accepted, permit) = tokio::select! {
            accepted = accept() => accepted,
            // Removes completed connections.
            Some(_) = connections.join_next() => continue,
            () = &mut shutdown => break,
        };
        let Ok((stream, _)) = accepted else {
            // Too many open files, or a client that has disconnected already.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let turns = Turns::default();
        let socket = Socket::new(stream, turns.clone(), &config.timeouts);
        let gateway = gateway.clone();
        let service = service_fn(move |request| {
            let turn = turns.begin();
            let response = gateway.clone().call(request);
            async move {
                let Ok(response) = response.await;
                // The body holds the turn until it has been read.
                Ok::<_, Infallible>(response.map(|body| {
                    body.map_frame(move |frame| {
                        let _ = &turn;
                        frame
                    })
                }))
            }
        });
        let watched = graceful.watch(http.serve_connection(TokioIo::new(socket), service));
        connections.spawn(async move {
            // An error ends only this connection.
            drop(watched.await);
            drop(permit);
        });
    }
    drop(listener);
    gateway.drain();
    let mut completed = std::pin::pin!(graceful.shutdown());
    let in_time = tokio::time::timeout(config.timeouts.drain, &mut completed).await;
    let mut incomplete = 0;
    if in_time.is_err() {
        incomplete = gateway.active();
        shared.process.is_stopped.send_replace(true);
        let _ = tokio::time::timeout(FINAL_GRACE, completed).await;
    }
    connections.shutdown().await;
    incomplete
}
