//! The threads that read long bodies and long replies, so that no other request waits for them.

use std::io;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use plaincall_wire::openai::ErrorObject;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::GatewayError;

type Job = Box<dyn FnOnce() + Send>;

/// A few threads, which end with this value. Each keeps megabytes; the runtime would start more of its own than are needed.
pub(in crate::server) struct LongReads {
    /// One permit for each thread, so there are never more jobs.
    permits: Arc<Semaphore>,
    jobs: Sender<Job>,
}

impl LongReads {
    /// Starts so many threads.
    pub(in crate::server) fn start(threads: usize) -> io::Result<Self> {
        let (jobs, receiver) = channel();
        let receiver = Arc::new(Mutex::new(receiver));
        for _ in 0..threads {
            let receiver = Arc::clone(&receiver);
            let builder = thread::Builder::new().name("long reads".to_owned());
            builder.spawn(move || work(&receiver))?;
        }
        let permits = Arc::new(Semaphore::new(threads));
        Ok(Self { permits, jobs })
    }

    /// Waits for a thread.
    pub(in crate::server) async fn permit(&self) -> Option<OwnedSemaphorePermit> {
        Arc::clone(&self.permits).acquire_owned().await.ok()
    }

    /// Works on the thread of this permit to the end, even if the client disconnects.
    pub(in crate::server) async fn run<T: Send + 'static>(
        &self,
        permit: Option<OwnedSemaphorePermit>,
        work: impl FnOnce() -> T + Send + 'static,
    ) -> Result<T, GatewayError> {
        let (done, result) = oneshot::channel();
        let job = Box::new(move || {
            let result = work();
            drop(permit);
            // A client that has left does not receive it.
            let _ = done.send(result);
        });
        let result = match self.jobs.send(job) {
            // A runtime with a paused clock, as in tests, lets time pass unless a thread of its own waits.
            Ok(()) => tokio::task::spawn_blocking(|| result.blocking_recv().ok()).await,
            Err(_) => Ok(None),
        };
        result.ok().flatten().ok_or_else(|| {
            let words = "internal error while processing the request";
            GatewayError::new(500, ErrorObject::new("gateway_error", words))
        })
    }
}

fn work(jobs: &Mutex<Receiver<Job>>) {
    loop {
        let job = jobs.lock().map(|jobs| jobs.recv());
        let Ok(Ok(job)) = job else {
            return;
        };
        // A panic ends its request, not the thread.
        let _ = catch_unwind(AssertUnwindSafe(job));
    }
}

#[cfg(test)]
mod tests {
    use std::collections::HashSet;
    use std::sync::mpsc;
    use std::thread::{self, ThreadId};
    use std::time::Duration;

    use super::LongReads;

    #[tokio::test]
    async fn other_requests_do_not_wait_for_long_work() {
        let (other, done) = mpsc::channel();
        // The only thread of the runtime must run this while the work below waits for it.
        tokio::spawn(async move { other.send(()) });
        let work = move || done.recv_timeout(Duration::from_mins(1));
        let reads = LongReads::start(1).unwrap();
        assert_eq!(reads.run(None, work).await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn the_same_few_threads_do_all_work_also_after_a_panic() {
        let reads = LongReads::start(2).unwrap();
        let mut threads: HashSet<ThreadId> = HashSet::new();
        for number in 0..20 {
            let permit = reads.permit().await;
            let work = move || {
                assert!(number % 5 != 0, "a fault of this request");
                thread::current().id()
            };
            match reads.run(permit, work).await {
                Ok(thread) => _ = threads.insert(thread),
                Err(error) => assert_eq!((number % 5, error.status), (0, 500)),
            }
        }
        assert!(threads.len() <= 2, "{threads:?}");
    }
}
