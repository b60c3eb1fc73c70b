//! The grammar of replies (`spec/agent.md` 10).

use std::future::pending;
use std::panic::resume_unwind;
use std::sync::{Arc, Mutex, PoisonError};

use plaincall::call::grammar::{Constrain, Grammar, GrammarError, GrammarOptions, grammar};
use plaincall::{Dialect, Tool};
use tokio::task::spawn_blocking;

use crate::answer::AgentErrorKind;
use crate::model::Model;
use crate::settings::Settings;

/// The grammar that was made last, with its dialect. Conversations without keyed markers share it, and so do the conversations
/// of a subagent with the same parent.
#[derive(Debug, Default)]
pub(crate) struct KnownGrammar(Mutex<Option<(Dialect, Made)>>);

/// A grammar, or why there is none.
type Made = Result<Arc<Grammar>, GrammarError>;

impl KnownGrammar {
    fn get(&self, dialect: &Dialect) -> Option<Made> {
        let known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let known = known.as_ref().filter(|(known, _)| known == dialect);
        known.map(|(_, made)| made.clone())
    }

    fn keep(&self, dialect: Dialect, made: Made) {
        let mut known = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        *known = Some((dialect, made));
    }
}

impl Settings {
    /// Returns the grammar of replies in this dialect; `None` if the model does not constrain them, or there are no tools. If
    /// the tools have no grammar, the outer result is an error only if the model demands one.
    pub(crate) async fn grammar(
        self: &Arc<Self>,
        model: &dyn Model,
        dialect: &Dialect,
    ) -> Result<Result<Option<Arc<Grammar>>, GrammarError>, AgentErrorKind> {
        let constrain = model.constrains();
        if constrain == Constrain::Never || self.tools.is_empty() {
            return Ok(Ok(None));
        }
        let made = match self.known_grammar.get(dialect) {
            Some(known) => known,
            None => self.make_grammar(dialect.clone()).await,
        };
        match made {
            Err(error) if constrain.is_demanded() => Err(AgentErrorKind::Settings(format!(
                "replies cannot be constrained: {error}"
            ))),
            made => Ok(made.map(Some)),
        }
    }

    async fn make_grammar(self: &Arc<Self>, dialect: Dialect) -> Made {
        let settings = Arc::clone(self);
        without_blocking(move || {
            let tools = settings.tools.iter().map(Tool::spec);
            let made = grammar(tools, &dialect, &GrammarOptions::new().ids()).map(Arc::new);
            settings.known_grammar.keep(dialect, made.clone());
            made
        })
        .await
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
