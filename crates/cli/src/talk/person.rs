//! Whoever sits at the terminal, for the model's questions.

use std::sync::{Arc, OnceLock};

use plaincall::BoxError;
use plaincall_agent::{User, UserFuture};

use crate::picture::line::Line;
use crate::picture::palette::{ASKING, PLAIN};
use crate::run::desk::{Desk, Question};
use crate::run::listing::indented;
use crate::run::news::About;
use crate::run::question::ANSWER;
use crate::run::terminal::Controlling;

/// How many lines of a question are shown.
const LINES: usize = 60;
/// No call has this number: the question is about none.
const NO_CALL: u32 = u32::MAX;

/// The person, as soon as there is a desk to ask at.
#[derive(Clone, Debug, Default)]
pub(crate) struct Person {
    desk: Arc<OnceLock<Arc<Desk>>>,
}

impl Person {
    /// The person at this terminal, if there is one.
    pub(crate) fn at_terminal() -> Option<Self> {
        Controlling::open().is_ok().then(Self::default)
    }

    /// Says where questions are asked.
    pub(crate) fn set_desk(&self, desk: &Arc<Desk>) {
        // It is set once.
        let _ = self.desk.set(Arc::clone(desk));
    }

    async fn ask(&self, question: &str) -> Result<String, BoxError> {
        let desk = self.desk.get().ok_or("nobody can be asked yet")?;
        // One question at a time.
        let _turn = desk.turn().await;
        let terminal = Controlling::open()?;
        let mut lines = vec![Line::of(ASKING, "? the model asks:")];
        let rows = question.trim().lines();
        lines.extend(rows.take(LINES).map(|row| indented(PLAIN, row)));
        let asked = Question {
            call: NO_CALL,
            id: "".into(),
            about: About::Permission,
            pages: vec![lines],
            words: "",
            answers: vec![&ANSWER],
        };
        let reply = desk.ask(&asked, terminal).await?;
        Ok(reply.text.unwrap_or_default())
    }
}

impl User for Person {
    fn answer<'a>(&'a self, question: &'a str) -> UserFuture<'a> {
        Box::pin(self.ask(question))
    }
}
