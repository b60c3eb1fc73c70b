//! A proxy that distributes requests to several servers.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use tokio::io::{AsyncReadExt, AsyncWriteExt, copy_bidirectional};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::{JoinHandle, JoinSet};

/// The maximum size of a request head.
const LONGEST_HEAD: usize = 64 << 10;

/// Forwards each request to the next of several servers in turn, over HTTP on localhost.
///
/// It asks the servers to close the connection after each answer, and forwards that to the clients. So the next
/// request of a client that keeps connections goes to another server too. When this value is dropped, all connections
/// are closed.
pub struct RoundRobin {
    /// The address.
    pub address: SocketAddr,
    given: Arc<[AtomicUsize]>,
    task: JoinHandle<()>,
}

impl RoundRobin {
    /// Starts a proxy in front of these servers.
    ///
    /// # Panics
    /// Panics if it cannot listen, or if there are no servers.
    pub async fn start(servers: Vec<SocketAddr>) -> Self {
        assert!(!servers.is_empty(), "there are servers");
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let given: Arc<[AtomicUsize]> = servers.iter().map(|_| AtomicUsize::new(0)).collect();
        let counts = Arc::clone(&given);
        let task = tokio::spawn(async move {
            // Dropped with this task, and with it all connections.
            let mut connections = JoinSet::new();
            let mut turn = 0;
            while let Ok((client, _)) = listener.accept().await {
                while connections.try_join_next().is_some() {}
                let server = turn % servers.len();
                turn += 1;
                counts[server].fetch_add(1, Ordering::Relaxed);
                connections.spawn(forward(client, servers[server]));
            }
        });
        Self {
            address,
            given,
            task,
        }
    }

    /// Returns the number of requests of each server.
    pub fn given(&self) -> Vec<usize> {
        let counts = self.given.iter();
        counts.map(|count| count.load(Ordering::Relaxed)).collect()
    }
}

impl Drop for RoundRobin {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn forward(mut client: TcpStream, server: SocketAddr) -> io::Result<()> {
    let mut read = Vec::new();
    let line_end = loop {
        if let Some(at) = read.windows(2).position(|two| two == b"\r\n") {
            break at + 2;
        }
        if read.len() > LONGEST_HEAD || client.read_buf(&mut read).await? == 0 {
            return Ok(());
        }
    };
    let mut server = TcpStream::connect(server).await?;
    server.set_nodelay(true)?;
    client.set_nodelay(true)?;
    server.write_all(&read[..line_end]).await?;
    server.write_all(b"connection: close\r\n").await?;
    server.write_all(&read[line_end..]).await?;
    copy_bidirectional(&mut client, &mut server).await?;
    Ok(())
}
