//! The user at the terminal, for the model's questions.

use std::sync::{Arc, OnceLock};

use plaincall::BoxError;
use plaincall_agent::{User, UserFuture};

use crate::terminal::line::{Line, indented};
use crate::terminal::palette::{ASKING, PLAIN};
use crate::terminal::prompter::{Prompter, Question};
use crate::terminal::question::ANSWER;
use crate::terminal::tty::Tty;

/// How many lines of a question are shown.
const LINES: usize = 60;

/// The person, as soon as there is a prompter to ask with.
#[derive(Clone, Debug, Default)]
pub(crate) struct TerminalUser {
    prompter: Arc<OnceLock<Arc<Prompter>>>,
}

impl TerminalUser {
    /// The person at this terminal, if there is one.
    pub(crate) fn at_terminal() -> Option<Self> {
        Tty::open().is_ok().then(Self::default)
    }

    pub(crate) fn set_prompter(&self, prompter: &Arc<Prompter>) {
        // It is set once.
        let _ = self.prompter.set(Arc::clone(prompter));
    }

    async fn ask(&self, question: &str) -> Result<String, BoxError> {
        let prompter = self.prompter.get().ok_or("no terminal is available yet")?;
        // One question at a time.
        let _turn = prompter.turn().await;
        let terminal = Tty::open()?;
        let mut lines = vec![Line::of(ASKING, "? the model asks:")];
        let rows = question.trim().lines();
        lines.extend(rows.take(LINES).map(|row| indented(PLAIN, row)));
        let question = Question {
            id: "".into(),
            pages: vec![lines],
            words: "",
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
