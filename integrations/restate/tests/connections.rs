//! The connections of a worker. This test needs no server.

use std::net::SocketAddr;
use std::path::Path;
use std::time::Duration;

use plaincall_restate::Worker;
use rustix::process::{PidfdFlags, PidfdGetfdFlags, getpid, pidfd_getfd, pidfd_open};
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::Handle;
use tokio::sync::oneshot;
use tokio::time::timeout;

use crate::server::PATIENCE;
use crate::tools::Change;

/// What a client of HTTP/2 sends first, with empty settings.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n\0\0\0\x04\0\0\0\0\0";

/// Programs with different tools at one address would each get calls of the other. A worker with a key takes requests of its server
/// alone.
#[tokio::test]
async fn a_worker_refuses_other_workers_and_foreign_servers() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let worker = |change| Worker::new(crate::workers::settings(Path::new("."), change)).unwrap();
    let key = "publickeyv1_ChjENKeMvCtRnqG2mrBK1HmPKufgFUc98K8B3ononQvp";
    assert!(worker(Change::None).identity_key("publickeyv1").is_err());
    let served = worker(Change::None).identity_key(key).unwrap();
    // It is checked when nobody answers, too.
    assert_eq!(
        worker(Change::Added)
            .check_address("127.0.0.1:1".parse().unwrap())
            .await,
        Ok(())
    );
    let serving = tokio::spawn(async move {
        served.serve(listener, std::future::pending()).await;
    });
    assert_eq!(worker(Change::None).check_address(address).await, Ok(()));
    let problem = worker(Change::Added)
        .check_address(address)
        .await
        .unwrap_err();
    assert!(
        problem.contains("a worker with other tools or settings listens on"),
        "{problem}"
    );
    let _ = rustls::crypto::ring::default_provider().install_default();
    let client = reqwest::Client::builder()
        .http2_prior_knowledge()
        .build()
        .unwrap();
    let response = client
        .get(format!("http://{address}/discover"))
        .send()
        .await
        .unwrap();
    assert_eq!(response.status(), 401);
    serving.abort();
}

/// Otherwise a small part of a response waits until the server has acknowledged the one before, which takes up to 40 ms.
#[tokio::test]
async fn small_parts_of_a_response_are_sent_at_once() {
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let settings = crate::workers::settings(Path::new("."), Change::None);
    let worker = Worker::new(settings).unwrap();
    let serving = tokio::spawn(async move {
        worker.serve(listener, std::future::pending()).await;
    });
    let mut client = TcpStream::connect(address).await.unwrap();
    client.write_all(PREFACE).await.unwrap();
    // The worker has accepted the connection.
    client.read_u8().await.unwrap();
    let accepted = socket_to(client.local_addr().unwrap());
    assert!(accepted.nodelay().unwrap());
    serving.abort();
}

/// A server that keeps its connection open keeps no task alive, also if the worker is dropped.
#[tokio::test]
async fn every_task_ends_with_the_worker() {
    for is_dropped in [false, true] {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let settings = crate::workers::settings(Path::new("."), Change::None);
        let worker = Worker::new(settings).unwrap();
        let worker = worker.shutdown_timeout(Duration::from_millis(200));
        let (end, ended) = oneshot::channel();
        let serving = tokio::spawn(async move {
            worker.serve(listener, async { drop(ended.await) }).await;
        });
        let mut client = TcpStream::connect(address).await.unwrap();
        client.write_all(PREFACE).await.unwrap();
        client.read_u8().await.unwrap();
        if is_dropped {
            serving.abort();
        } else {
            end.send(()).unwrap();
        }
        assert_eq!(serving.await.is_ok(), !is_dropped);
        let mut rest = Vec::new();
        timeout(PATIENCE, client.read_to_end(&mut rest))
            .await
            .unwrap()
            .ok();
        let tasks = Handle::current().metrics();
        assert!(is_dropped || tasks.num_alive_tasks() == 0);
    }
}

/// Returns the socket of this process that is connected to an address.
fn socket_to(address: SocketAddr) -> std::net::TcpStream {
    let own = pidfd_open(getpid(), PidfdFlags::empty()).unwrap();
    let numbers = std::fs::read_dir("/proc/self/fd").unwrap();
    let numbers = numbers.map(|entry| entry.unwrap().file_name().into_string().unwrap());
    let mut sockets = numbers.filter_map(|number| {
        let copy = pidfd_getfd(&own, number.parse().unwrap(), PidfdGetfdFlags::empty());
        Some(std::net::TcpStream::from(copy.ok()?))
    });
    let found = sockets.find(|socket| socket.peer_addr().is_ok_and(|peer| peer == address));
    found.expect("the socket that was accepted")
}
