//! The user at the terminal, for questions of the model.

use std::sync::{Arc, OnceLock};

use plaincall::BoxError;
use plaincall_agent::{User, UserFuture};

use crate::terminal::line::{Line, indented};
use crate::terminal::palette::{NOTICE, PLAIN};
use crate::terminal::prompter::{Prompter, Question};
use crate::terminal::question::ANSWER;
use crate::terminal::tty::Tty;

/// The maximum number of lines of a question.
const MAX_LINES: usize = 60;

/// The user at the terminal. Can be asked once a prompter is set.
#[derive(Clone, Debug, Default)]
pub(crate) struct TerminalUser {
    prompter: Arc<OnceLock<Arc<Prompter>>>,
}

impl TerminalUser {
    /// Returns the user, if there is a terminal.
    pub(crate) fn at_terminal() -> Option<Self> {
        Tty::open().is_ok().then(Self::default)
    }

    pub(crate) fn set_prompter(&self, prompter: &Arc<Prompter>) {
        // Set only once.
        let _ = self.prompter.set(Arc::clone(prompter));
    }

    async fn ask(&self, question: &str) -> Result<String, BoxError> {
        let prompter = self.prompter.get().ok_or("no terminal is available yet")?;
        // Only one question at a time.
        let _turn = prompter.turn().await;
        let terminal = Tty::open()?;
        let mut lines = vec![Line::of(NOTICE, "? the model asks:")];
        let rows = question.trim().lines();
        lines.extend(rows.take(MAX_LINES).map(|row| indented(PLAIN, row)));
        let question = Question {
            id: "".into(),
            pages: vec![lines],
            text: "",
            answers: vec![&ANSWER],
        };
        let reply = prompter.ask(question, terminal).await?;
        Ok(reply.text.unwrap_or_default())
    }
}

impl User for TerminalUser {
    fn answer<'a>(&'a self, question: &'a str) -> UserFuture<'a> {
        Box::pin(self.ask(question))
    }
}
