//! The async runtime.

use std::time::Duration;

use tokio::runtime::Builder;

use crate::status::Failure;

/// How long tasks may take to end after the command.
pub(crate) const SHUTDOWN_TIMEOUT: Duration = Duration::from_secs(1);

/// Runs a future on the current thread.
///
/// Dropping the runtime cancels its tasks and kills the processes that they started. Blocking tasks that cannot be
/// cancelled, such as a long search, are abandoned.
pub(crate) fn block_on<T>(future: impl Future<Output = Result<T, Failure>>) -> Result<T, Failure> {
    let runtime = Builder::new_current_thread().enable_all().build();
    let runtime = runtime.map_err(|error| Failure::Runtime(format!("cannot start: {error}")))?;
    let result = runtime.block_on(future);
    runtime.shutdown_timeout(SHUTDOWN_TIMEOUT);
    result
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
        let result = block_on(async move {
            tokio::task::spawn_blocking(move || {
                let _ = sender.send(());
                // Ends when the test ends.
                let _ = ended.recv();
            });
            let _ = started.await;
            Ok(())
        });
        assert!(result.is_ok());
        drop(end);
    }
}
