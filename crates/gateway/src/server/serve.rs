//! The server on a socket.

use std::convert::Infallible;
use std::future::Future;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::http::Request;
use http_body_util::BodyExt as _;
use hyper::body::Incoming;
use hyper::service::{Service as _, service_fn};
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use hyper_util::service::TowerToHyperService;
use tokio::net::TcpListener;
use tokio::sync::Semaphore;
use tokio::task::JoinSet;

use crate::server::Gateway;
use crate::server::socket::{Socket, Turns};

/// How long the server waits when it cannot take a connection, before it tries again.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long clients have, at the end, to hear that there will be no answer.
const FINAL_GRACE: Duration = Duration::from_secs(2);

/// Serves these paths until `shutdown` completes, and what has started then to its end; how many requests had none in time.
///
/// All connections are tasks of this future: none is left when it has ended or is dropped.
pub(super) async fn serve(
    gateway: &Gateway,
    paths: TowerToHyperService<Router>,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
) -> usize {
    let config = &gateway.shared.config;
    let mut http = hyper::server::conn::http1::Builder::new();
    // Sockets have deadlines of their own: see `Socket`.
    http.header_read_timeout(None)
        .max_buf_size(config.limits.head);
    let graceful = GracefulShutdown::new();
    let mut connections = JoinSet::new();
    let free = Arc::new(Semaphore::new(config.limits.connections));
    let accept = async || {
        let place = Arc::clone(&free).acquire_owned().await;
        (listener.accept().await, place)
    };
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let (accepted, place) = tokio::select! {
            accepted = accept() => accepted,
            // It has ended, and has taken what it held with it.
            Some(_) = connections.join_next() => continue,
            () = &mut shutdown => break,
        };
        let Ok((stream, _)) = accepted else {
            // Too many files, or a client that has gone again: neither ends the server.
            tokio::time::sleep(ACCEPT_PAUSE).await;
            continue;
        };
        let _ = stream.set_nodelay(true);
        let turns = Turns::default();
        let socket = Socket::new(stream, turns.clone(), &config.timeouts);
        let paths = paths.clone();
        let service = service_fn(move |request: Request<Incoming>| {
            let turn = turns.begin();
            let answered = paths.call(request);
            async move {
                let Ok(response) = answered.await;
                // Its body keeps the turn until it has been taken.
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
            // What goes wrong with one connection is its own matter.
            drop(watched.await);
            drop(place);
        });
    }
    drop(listener);
    gateway.drain();
    let mut answered = std::pin::pin!(graceful.shutdown());
    let in_time = tokio::time::timeout(config.timeouts.drain, &mut answered).await;
    let mut cut = 0;
    if in_time.is_err() {
        cut = gateway.active();
        gateway.shared.is_over.send_replace(true);
        let _ = tokio::time::timeout(FINAL_GRACE, answered).await;
    }
    connections.shutdown().await;
    cut
}
