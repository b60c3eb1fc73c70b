//! The accept loop of the server.

use std::convert::Infallible;
use std::future::Future;
use std::io::ErrorKind;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use http_body_util::BodyExt as _;
use hyper::service::service_fn;
use hyper_util::rt::TokioIo;
use hyper_util::server::graceful::GracefulShutdown;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{Semaphore, watch};
use tokio::task::JoinSet;

use crate::server::Gateway;
use crate::server::socket::{Socket, Turns};
use crate::server::waiting::Waiting;

/// The pause after a failed accept.
const ACCEPT_PAUSE: Duration = Duration::from_millis(50);

/// How long a new connection can take to send its first request before it is closed during shutdown.
const FIRST_REQUEST: Duration = Duration::from_secs(1);

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
    // The number of connections that have not sent a request yet.
    let unused = Arc::new(watch::Sender::new(0));
    let waiting = Waiting::default();
    let add = |stream: TcpStream, permit| {
        let _ = stream.set_nodelay(true);
        let turns = Turns::new(&waiting);
        let socket = Socket::new(stream, turns.clone(), &config.timeouts);
        let gateway = gateway.clone();
        let first = Unused::new(&unused);
        let service = service_fn(move |request| {
            first.end();
            let turn = turns.begin();
            let gateway = gateway.clone();
            async move {
                let response = gateway.handle_from_socket(request).await;
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
        async move {
            // An error ends only this connection.
            drop(watched.await);
            drop(permit);
        }
    };
    let mut shutdown = std::pin::pin!(shutdown);
    // A connection without a place, and whether another was closed for it.
    let (mut arrived, mut is_freed): (Option<TcpStream>, bool) = (None, false);
    loop {
        tokio::select! {
            accepted = listener.accept(), if arrived.is_none() => match accepted {
                Ok((stream, _)) => {
                    arrived = Some(stream);
                    is_freed = free.available_permits() > 0;
                }
                // A client that has disconnected already.
                Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
                Err(_) => {
                    // Too many open files.
                    waiting.close_longest();
                    tokio::time::sleep(ACCEPT_PAUSE).await;
                }
            },
            permit = Arc::clone(&free).acquire_owned(), if arrived.is_some() => {
                let stream = arrived.take();
                stream.map(|stream| connections.spawn(add(stream, permit.ok())));
            }
            () = waiting.begun(), if arrived.is_some() && !is_freed => {}
            // Removes completed connections.
            Some(_) = connections.join_next() => {}
            () = &mut shutdown => break,
        }
        // Clients that send no request keep no other from being served.
        if arrived.is_some() && !is_freed {
            is_freed = waiting.close_longest();
        }
    }
    gateway.drain();
    // Their clients may have sent a request, and get an error if the listener closes before they are accepted.
    for stream in arrived.into_iter().chain(queued(listener)) {
        connections.spawn(add(stream, None));
    }
    let mut first_requests = unused.subscribe();
    let first_requests = first_requests.wait_for(|count| *count == 0);
    // `GracefulShutdown` closes connections that have not sent a request yet.
    let wait = FIRST_REQUEST.min(config.timeouts.drain);
    let _ = tokio::time::timeout(wait, first_requests).await;
    let mut completed = std::pin::pin!(graceful.shutdown());
    let in_time = tokio::time::timeout(config.timeouts.drain, &mut completed).await;
    let mut incomplete = 0;
    if in_time.is_err() {
        incomplete = gateway.active();
        shared.process.stop.cancel();
        let _ = tokio::time::timeout(FINAL_GRACE, completed).await;
    }
    connections.shutdown().await;
    incomplete
}

/// Accepts the connections that are waiting, and closes the listener. No task runs in between, so hardly any connection can arrive
/// between the last one and the end.
fn queued(listener: TcpListener) -> Vec<TcpStream> {
    let Ok(listener) = listener.into_std() else {
        return Vec::new();
    };
    let mut streams = Vec::new();
    loop {
        match listener.accept() {
            Ok((stream, _)) => streams.push(stream),
            // A client that has disconnected already.
            Err(error) if error.kind() == ErrorKind::ConnectionAborted => {}
            Err(_) => break,
        }
    }
    drop(listener);
    let streams = streams.into_iter().filter_map(|stream| {
        stream.set_nonblocking(true).ok()?;
        TcpStream::from_std(stream).ok()
    });
    streams.collect()
}

/// Counts a connection until its first request or its end.
struct Unused {
    count: Arc<watch::Sender<usize>>,
    is_counted: AtomicBool,
}

impl Unused {
    fn new(count: &Arc<watch::Sender<usize>>) -> Self {
        count.send_modify(|count| *count += 1);
        Self {
            count: Arc::clone(count),
            is_counted: AtomicBool::new(true),
        }
    }

    fn end(&self) {
        if self.is_counted.swap(false, Ordering::Relaxed) {
            self.count.send_modify(|count| *count -= 1);
        }
    }
}

impl Drop for Unused {
    fn drop(&mut self) {
        self.end();
    }
}
