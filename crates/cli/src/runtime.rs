//! Where async code runs, and how it ends.

use std::time::Duration;

use tokio::runtime::Builder;

use crate::status::Failure;

/// How long what still runs may take to go away when a command ends.
pub(crate) const LAST_TASKS: Duration = Duration::from_secs(1);

/// Runs this on the thread of the command.
///
/// With the runtime all that still runs is dropped, and what it has started is killed. What runs on a thread of its own
/// and cannot be cancelled, such as a long search, is not waited for.
///
/// # Errors
/// Its own, or that it cannot begin.
pub(crate) fn block_on<T>(work: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Broken(format!("cannot start: {error}")))?;
    let ended = runtime.block_on(work);
    runtime.shutdown_timeout(LAST_TASKS);
    ended
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use tokio::sync::oneshot;

    use super::block_on;

    #[test]
    fn blocking_work_is_not_waited_for() {
        let (end, ended) = channel::<()>();
        let (sender, started) = oneshot::channel();
        let worked = block_on(async move {
            tokio::task::spawn_blocking(move || {
                let _ = sender.send(());
                // It ends with the test alone.
                let _ = ended.recv();
            });
            let _ = started.await;
            Ok(())
        });
        assert!(worked.is_ok());
        drop(end);
    }
}
