//! The HTTP/2 connections of a server.
//!
//! The SDK polls an invocation only when the connection asks for a part of its response. If the server does not take more of the
//! response until it could send more of the request (the large result of a call), neither side would proceed, and all
//! invocations of the connection would wait for them. So here each invocation is polled by a task of its own: it reads its
//! input while its output waits.

use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use futures_util::stream;
use http_body_util::{BodyExt as _, Either, Empty, Full, StreamBody};
use hyper::body::{Body, Bytes, Incoming};
use hyper::rt::Executor;
use hyper::server::conn::http2;
use hyper::service::{Service as _, service_fn};
use hyper::{Request, Response};
use hyper_util::rt::{TokioExecutor, TokioIo};
use hyper_util::server::graceful::GracefulShutdown;
use plaincall::BoxError;
use restate_sdk::endpoint::{Endpoint, ResponseBody};
use restate_sdk::hyper::HyperEndpoint;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};
use tokio_util::sync::CancellationToken;
use tokio_util::task::{AbortOnDropHandle, TaskTracker};

/// The most invocations of one connection at a time. The server opens a new connection after 128.
const STREAMS: u32 = 256;
/// The most bytes that the server sends to an invocation that does not read them. It may send them to all invocations of a
/// connection, so none of them stops the others.
const UNREAD: u32 = 1 << 20;
/// The delay after a connection that could not be accepted, for example because too many files are open.
const PAUSE: Duration = Duration::from_millis(100);
/// The longest time that another worker gets to answer.
const OTHER: Duration = Duration::from_secs(5);
/// The path of the checksum of a worker's definitions. It needs no key, and anyone who knows the tools can compute it.
const DEFINITIONS: &str = "/definitions";

/// Serves the endpoint of a worker with these definitions until `shutdown` completes. Then it waits for invocations in progress,
/// but not longer than `patience`, and ends the others.
pub(crate) async fn serve(
    endpoint: Endpoint,
    definitions: String,
    listener: TcpListener,
    shutdown: impl Future<Output = ()>,
    patience: Duration,
) {
    let served = Arc::new((HyperEndpoint::new(endpoint), definitions));
    let tasks = Tasks::default();
    // Also if this future is dropped.
    let _end = tasks.end.clone().drop_guard();
    let mut http = http2::Builder::new(tasks.clone());
    http.max_concurrent_streams(STREAMS)
        .initial_stream_window_size(UNREAD)
        .initial_connection_window_size(STREAMS * UNREAD);
    let graceful = GracefulShutdown::new();
    let mut shutdown = std::pin::pin!(shutdown);
    loop {
        let accepted = tokio::select! {
            accepted = listener.accept() => accepted,
            () = &mut shutdown => break,
        };
        let Ok((stream, _)) = accepted else {
            sleep(PAUSE).await;
            continue;
        };
        // Journal entries are small, and the server acknowledges them late.
        let _ = stream.set_nodelay(true);
        let served = Arc::clone(&served);
        let service = service_fn(move |request: Request<Incoming>| {
            let served = Arc::clone(&served);
            async move {
                let (endpoint, definitions) = &*served;
                if request.uri().path() == DEFINITIONS {
                    let body = Full::new(Bytes::from(definitions.clone()));
                    return Ok(Response::new(Either::Left(body)));
                }
                let response = endpoint.call(request).await;
                response.map(|response| decoupled(response).map(Either::Right))
            }
        });
        let connection = graceful.watch(http.serve_connection(TokioIo::new(stream), service));
        // A connection that fails ends its invocations, which the server starts again.
        tasks.execute(connection);
    }
    let _ = timeout(patience, graceful.shutdown()).await;
    tasks.end.cancel();
    tasks.all.close();
    tasks.all.wait().await;
}

/// The tasks of all connections.
#[derive(Clone, Default)]
struct Tasks {
    all: TaskTracker,
    end: CancellationToken,
}

impl<F: Future<Output: Send> + Send + 'static> Executor<F> for Tasks {
    fn execute(&self, task: F) {
        let end = self.end.clone();
        self.all
            .spawn(async move { end.run_until_cancelled(task).await });
    }
}

/// Returns the checksum of the definitions of the worker at an address, if there is one.
pub(crate) async fn definitions_at(address: SocketAddr) -> Option<String> {
    let asked = async {
        let stream = TokioIo::new(TcpStream::connect(address).await.ok()?);
        let (mut sender, connection) =
            hyper::client::conn::http2::handshake(TokioExecutor::new(), stream)
                .await
                .ok()?;
        let _connection = AbortOnDropHandle::new(tokio::spawn(connection));
        let uri = format!("http://{address}{DEFINITIONS}");
        let request = Request::get(uri).body(Empty::<Bytes>::new()).ok()?;
        let response = sender.send_request(request).await.ok()?;
        let body = response.into_body().collect().await.ok()?.to_bytes();
        String::from_utf8(body.into()).ok()
    };
    timeout(OTHER, asked).await.ok().flatten()
}

/// Polls the body of a response in a task, which ends with the response. What the server does not take yet is in memory, at
/// most what this invocation adds to its journal: if a limit stopped the task, it would not read its input again.
fn decoupled(
    response: Response<ResponseBody>,
) -> Response<impl Body<Data = Bytes, Error = BoxError> + Send> {
    response.map(|body| {
        let (sender, frames) = mpsc::unbounded_channel();
        let task = tokio::spawn(async move {
            let mut body = std::pin::pin!(body);
            while let Some(frame) = body.frame().await {
                if sender.send(frame).is_err() {
                    return;
                }
            }
        });
        let task = AbortOnDropHandle::new(task);
        StreamBody::new(stream::unfold(
            (frames, task),
            |(mut frames, task)| async move {
                let frame = frames.recv().await?;
                Some((frame, (frames, task)))
            },
        ))
    })
}
