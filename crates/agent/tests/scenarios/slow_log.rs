//! A log whose disk does not respond while a long reply is read.

use std::io;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::time::Duration;

use plaincall_agent::Agent;
use plaincall_agent::model::{Finish, Model, ModelRequest, Reply};
use plaincall_agent::plaincall::{Log, log::Storage};
use tokio::time::{sleep, timeout};

/// A log whose first write waits until it is released.
struct Disk(Option<Receiver<()>>);

impl Storage for Disk {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        let is_text = bytes.windows(14).any(|part| part == b"\"event\":\"text\"");
        if is_text && let Some(resume) = self.0.take() {
            let _ = resume.recv();
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }

    fn sync(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Writes endlessly while it is polled.
struct Endless(Arc<()>);

impl Model for Endless {
    fn name(&self) -> &'static str {
        "endless"
    }

    fn reply(&self, _: ModelRequest) -> Reply {
        let live = Arc::clone(&self.0);
        Reply::new(|out| async move {
            // Less than the limit for a reply.
            for _ in 0..100 {
                out.text("x".repeat(64 << 10)).await;
            }
            std::future::pending::<()>().await;
            drop(live);
            Ok(Finish::stop())
        })
    }
}

#[tokio::test]
async fn a_request_is_withdrawn_even_if_the_log_blocks() {
    let live = Arc::new(());
    let (release, resume) = channel();
    let agent = Agent::builder(Endless(Arc::clone(&live))).build().unwrap();
    let log = Log::to(Disk(Some(resume)));
    let mut talk = agent.session(log, serde_json::Value::Null).await.unwrap();
    let mut asking = talk.stream("Continue.");
    let cancel = asking.cancellation();
    let ((), is_back) = tokio::join!(async { while asking.next().await.is_some() {} }, async {
        sleep(Duration::from_millis(500)).await;
        assert_eq!(Arc::strong_count(&live), 3);
        cancel.cancel();
        let back = async {
            while Arc::strong_count(&live) > 2 {
                sleep(Duration::from_millis(5)).await;
            }
        };
        let is_back = timeout(Duration::from_secs(5), back).await.is_ok();
        release.send(()).unwrap();
        is_back
    });
    assert!(is_back);
}
