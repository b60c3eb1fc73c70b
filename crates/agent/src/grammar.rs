//! The grammar of replies (`spec/agent.md` 9).

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};

use plaincall::Dialect;
use plaincall_grammar::{Grammar, GrammarError};
use tokio::task::spawn_blocking;

/// The grammar that was made last, with its dialect. Conversations without keyed markers share it, and so do the conversations
/// of a subagent with the same parent.
#[derive(Debug, Default)]
pub(crate) struct KnownGrammar(Mutex<Option<(Dialect, Made)>>);

/// A grammar, or why there is none.
pub(crate) type Made = Result<Arc<Grammar>, GrammarError>;

impl KnownGrammar {
    pub(crate) fn get(&self, dialect: &Dialect) -> Option<Made> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|(known, _)| known == dialect);
        known.map(|(_, made)| made.clone())
    }

    pub(crate) fn keep(&self, dialect: Dialect, made: Made) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((dialect, made));
    }
}

/// Does work that takes milliseconds on a thread for such work.
pub(crate) async fn without_blocking<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> T {
    match spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => resume_unwind(panic),
            // The runtime shuts down, which ends this task too.
            Err(_) => pending().await,
        },
    }
}
