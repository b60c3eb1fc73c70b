//! The threads that read long bodies and long replies, so that no other request waits for them.

use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex, OnceLock};
use std::thread;

use plaincall_wire::openai::ErrorObject;
use tokio::sync::{OwnedSemaphorePermit, Semaphore, oneshot};

use crate::error::GatewayError;

/// The number of threads. Each keeps megabytes, and a body may take a hundred while it is parsed.
const THREADS: usize = 2;

type Job = Box<dyn FnOnce() + Send>;

/// The threads, which start with the first job and end with this value. The threads of the runtime would not do: it starts more of
/// them than are needed, and each keeps its memory.
pub(in crate::server) struct LongReads {
    /// One permit for each thread, so there are never more jobs.
    permits: Arc<Semaphore>,
    jobs: OnceLock<Sender<Job>>,
}

impl LongReads {
    pub(in crate::server) fn new() -> Self {
        Self {
            permits: Arc::new(Semaphore::new(THREADS)),
            jobs: OnceLock::new(),
        }
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
        let sent = self.jobs.get_or_init(start).send(job);
        let result = match sent {
            // A runtime whose clock is paused lets time pass while it waits for threads that are not its own.
            Ok(()) => tokio::task::spawn_blocking(|| result.blocking_recv().ok()).await,
            Err(_) => Ok(None),
        };
        result.ok().flatten().ok_or_else(|| {
            let words = "internal error while processing the request";
            GatewayError::new(500, ErrorObject::new("gateway_error", words))
        })
    }
}

/// Starts the threads. If none can be started, sending a job fails.
fn start() -> Sender<Job> {
    let (sender, receiver) = channel();
    let receiver = Arc::new(Mutex::new(receiver));
    for _ in 0..THREADS {
        let receiver = Arc::clone(&receiver);
        let builder = thread::Builder::new().name("long reads".to_owned());
        if builder.spawn(move || work(&receiver)).is_err() {
            break;
        }
    }
    sender
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

    use super::{LongReads, THREADS};

    #[tokio::test]
    async fn other_requests_do_not_wait_for_long_work() {
        let (other, done) = mpsc::channel();
        // The only thread of the runtime must run this while the work below waits for it.
        tokio::spawn(async move { other.send(()) });
        let work = move || done.recv_timeout(Duration::from_mins(1));
        assert_eq!(LongReads::new().run(None, work).await.unwrap(), Ok(()));
    }

    #[tokio::test]
    async fn the_same_few_threads_do_all_work_also_after_a_panic() {
        let reads = LongReads::new();
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
        assert!(threads.len() <= THREADS, "{threads:?}");
    }
}
