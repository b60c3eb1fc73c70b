//! Work that waits for the disk, away from the threads that run tasks.

use std::time::{Duration, Instant};

use plaincall::{Context, ToolResult};
use tokio::task::spawn_blocking;
use tokio_util::sync::CancellationToken;

/// How long a walk over many files goes on before it tells what it has.
const PATIENCE: Duration = Duration::from_secs(15);

/// Says when work is to end.
#[derive(Debug)]
pub(super) struct Stop {
    token: CancellationToken,
    until: Instant,
}

impl Stop {
    /// One that is set.
    #[cfg(test)]
    pub(super) fn set() -> Self {
        let token = CancellationToken::new();
        token.cancel();
        Self {
            token,
            until: Instant::now() + PATIENCE,
        }
    }

    /// Whether nobody waits for the work any more.
    pub(super) fn is_set(&self) -> bool {
        self.token.is_cancelled()
    }

    /// Whether it has taken so long that it should tell what it has.
    pub(super) fn is_late(&self) -> bool {
        Instant::now() >= self.until
    }

    /// # Errors
    /// Nobody waits for the work any more, or it takes too long.
    pub(super) fn check(&self) -> Result<(), String> {
        if self.is_set() {
            return Err("the call was stopped; nothing was changed".to_owned());
        }
        if self.is_late() {
            return Err(format!(
                "this took longer than {} seconds and was given up; nothing was changed",
                PATIENCE.as_secs()
            ));
        }
        Ok(())
    }
}

/// Does work that may wait for the disk. When the call ends early, the work hears of it.
pub(super) async fn blocking<F>(context: &Context, work: F) -> ToolResult
where
    F: FnOnce(&Stop) -> Result<String, String> + Send + 'static,
{
    let token = context.cancellation().child_token();
    // The call may also end by being dropped.
    let _guard = token.clone().drop_guard();
    let stop = Stop {
        token,
        until: Instant::now() + PATIENCE,
    };
    match spawn_blocking(move || work(&stop)).await {
        Ok(result) => result.map_err(Into::into),
        Err(_) => Err("the tool broke down; look at what it was to do before you go on".into()),
    }
}
