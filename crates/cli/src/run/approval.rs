//! Who decides whether a call may run that no rule decides about: its effect, `--yes`, or a person at the terminal. And
//! who says what became of a call that was cut off. A call that stands in a text from outside needs a person in any case.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, OnceLock};

use plaincall::{
    Arguments, BoxError, Decision, Directories, Effect, Gate, GateFuture, Request, Rules,
    Settlement, SettlementFuture, Toolbox, Verdict,
};

use crate::run::beginning::Beginning;
use crate::run::desk::{Desk, Question};
use crate::run::editor::{self, Edited};
use crate::run::news::About;
use crate::run::past::{CutOff, Past};
use crate::run::question::{self, AGAIN, ALL, DONE, Details, EDIT, LEAVE, NO, NOT_DONE, QUIT, YES};
use crate::run::terminal::{Controlling, Size};
use crate::run::word::{Word, Words};

/// The gate of a run.
#[derive(Clone, Debug)]
pub(crate) struct Approval {
    /// All may run, whatever they do.
    yes: bool,
    rules: Rules,
    words: Words,
    toolbox: Toolbox,
    /// The calls that were cut off.
    cut_off: Arc<BTreeMap<u32, CutOff>>,
    /// Whether the run was called off before it was cut off.
    was_called_off: bool,
    /// When the run began, in milliseconds since 1970.
    began: u64,
    directories: Arc<OnceLock<Directories>>,
    pub(crate) desk: Arc<Desk>,
}

impl Gate for Approval {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            let is_ruled = self.rules.verdict(request) == Some(Verdict::Ask);
            let is_free = self.yes || (request.effect != Effect::Write && !is_ruled);
            // What was said beforehand was not said of a held call.
            if is_free && request.held.is_none() {
                return Ok(Decision::Allow);
            }
            self.ask(request, is_ruled).await
        })
    }

    fn settle<'a>(&'a self, request: &'a Request) -> SettlementFuture<'a> {
        Box::pin(async move {
            match self.words.about(request.call) {
                Some(word) => Ok(word.settlement(None)),
                None => self.ask_what_became(request).await,
            }
        })
    }
}

impl Approval {
    pub(crate) fn new(beginning: &Beginning, toolbox: Toolbox, desk: Arc<Desk>) -> Self {
        Self {
            yes: beginning.yes,
            rules: beginning.tools.rules.clone(),
            words: beginning.words.clone(),
            toolbox,
            cut_off: Arc::new(beginning.past.cut_off()),
            was_called_off: beginning.past.was_called_off(),
            began: beginning
                .past
                .begin()
                .map_or(0, |begin| begin.began_unix_ms),
            directories: Arc::default(),
            desk,
        }
    }

    /// The gate of a conversation. `past` is what happened before it was taken up again.
    pub(crate) fn of_talk(
        yes: bool,
        rules: Rules,
        toolbox: Toolbox,
        past: Option<&Past>,
        desk: Arc<Desk>,
    ) -> Self {
        let begin = past.and_then(Past::begin);
        Self {
            yes,
            rules,
            words: Words::default(),
            toolbox,
            cut_off: Arc::new(past.map(Past::cut_off).unwrap_or_default()),
            was_called_off: past.is_some_and(Past::was_called_off),
            began: begin.map_or(0, |begin| begin.began_unix_ms),
            directories: Arc::default(),
            desk,
        }
    }

    /// Says where tools work.
    pub(crate) fn set_directories(&self, directories: Directories) {
        // They are set once.
        let _ = self.directories.set(directories);
    }

    /// Asks whether the call may run. `is_ruled` is whether a rule wants it.
    async fn ask(&self, request: &Request, is_ruled: bool) -> Result<Decision, BoxError> {
        // One question at a time.
        let mut allowed = self.desk.turn().await;
        let is_single = is_ruled || request.held.is_some();
        if !is_single && allowed.contains(&request.name) {
            return Ok(Decision::Allow);
        }
        let mut arguments = Arc::clone(&request.arguments);
        let mut edited: Option<Edited> = None;
        let mut remark = None;
        loop {
            let terminal = match Controlling::open() {
                Ok(terminal) => terminal,
                Err(reason) => return Ok(Decision::deny(nobody_to_ask(request, is_ruled, reason))),
            };
            let details = self.details(request, &arguments, is_ruled, terminal.size());
            let pages = question::pages(details, edited.is_some(), remark.take()).await;
            let mut answers = vec![&YES, &NO, &EDIT, &ALL, &QUIT];
            if is_single || edited.is_some() {
                // What is asked about every time, and changed arguments, are for this call alone.
                answers.retain(|answer| answer.key != ALL.key);
            }
            let asked = Question {
                call: request.call,
                id: Arc::clone(&request.id),
                about: About::Permission,
                pages,
                words: "May it run?",
                answers,
            };
            let reply = self.desk.ask(&asked, terminal).await?;
            if reply.key == YES.key {
                return Ok(match edited {
                    Some(Edited { arguments, .. }) => Decision::Edit { arguments },
                    None => Decision::Allow,
                });
            } else if reply.key == ALL.key {
                allowed.insert(Arc::clone(&request.name));
                return Ok(Decision::Always);
            } else if reply.key == EDIT.key {
                match self.edit(request, &arguments).await {
                    Ok(Some(changed)) => {
                        arguments = Arc::new(changed.bound.clone());
                        edited = Some(changed);
                    }
                    Ok(None) => remark = Some("the arguments are as they were".to_owned()),
                    Err(reason) => remark = Some(reason),
                }
            } else if reply.key == QUIT.key {
                if self.desk.quit() {
                    // The call ends as cancelled, and so do those whose questions wait behind this one.
                    pending::<()>().await;
                }
                return Ok(Decision::deny("the run was called off"));
            } else {
                return Ok(Decision::deny(match reply.text {
                    Some(reason) => format!("the user did not allow this call: {reason}"),
                    None => "the user did not allow this call".to_owned(),
                }));
            }
        }
    }

    async fn edit(
        &self,
        request: &Request,
        arguments: &Arguments,
    ) -> Result<Option<Edited>, String> {
        let tool = self.toolbox.get(&request.name);
        let tool = tool.ok_or("there is no such tool any more")?;
        editor::edit(&self.desk, tool.spec(), arguments).await
    }

    /// Asks what became of a call that was cut off.
    async fn ask_what_became(&self, request: &Request) -> Result<Settlement, BoxError> {
        let _turn = self.desk.turn().await;
        let Ok(terminal) = Controlling::open() else {
            return Ok(Settlement::Unknown);
        };
        let details = self.details(request, &request.arguments, false, terminal.size());
        let mut answers = vec![&AGAIN, &DONE, &NOT_DONE, &LEAVE, &QUIT];
        if self.was_called_off {
            answers.retain(|answer| answer.key != AGAIN.key);
        }
        let started = self.cut_off.get(&request.call).map(|call| call.started);
        let asked = Question {
            call: request.call,
            id: Arc::clone(&request.id),
            about: About::Fate,
            pages: question::pages_of_cut_off(details, started, self.began),
            words: "What became of it?",
            answers,
        };
        let reply = self.desk.ask(&asked, terminal).await?;
        if reply.key == QUIT.key && self.desk.quit() {
            // The call is left open, and all others are called off.
            pending::<()>().await;
        }
        Ok(if reply.key == AGAIN.key {
            Word::Again.settlement(None)
        } else if reply.key == DONE.key {
            Word::Done.settlement(reply.text)
        } else if reply.key == NOT_DONE.key {
            Word::NotDone.settlement(reply.text)
        } else {
            Settlement::Unknown
        })
    }

    fn details<'a>(
        &'a self,
        request: &'a Request,
        arguments: &'a Arguments,
        is_ruled: bool,
        size: Size,
    ) -> Details<'a> {
        Details {
            id: &request.id,
            name: &request.name,
            effect: request.effect,
            is_ruled,
            held: request.held.as_ref(),
            arguments,
            tool: self.toolbox.get(&request.name),
            directories: self.directories.get(),
            size,
        }
    }
}

fn nobody_to_ask(request: &Request, is_ruled: bool, reason: &str) -> String {
    let name = &request.name;
    if let Some(held) = &request.held {
        let advice = held.advice().map(|advice| format!(". Otherwise {advice}"));
        format!(
            "this call {held}. Such a call runs only if a person allows it, and {reason}; not even `--yes` does{}",
            advice.unwrap_or_default()
        )
    } else if is_ruled {
        format!(
            "a rule wants somebody to be asked about this call of `{name}`, and {reason}; `--yes` lets such calls run without asking"
        )
    } else {
        format!(
            "the tool `{name}` may change something, and {reason}; `--yes` lets such tools run without asking"
        )
    }
}
