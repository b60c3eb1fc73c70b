//! The gate of a run: approves calls that no rule decides, and recovers interrupted calls.
//!
//! The decision depends on the effect of the tool, `--yes` and the user at the terminal. A call that also appears in
//! untrusted text always needs the user.

use std::collections::BTreeMap;
use std::future::pending;
use std::sync::{Arc, OnceLock};

use plaincall::{
    BoxError, Decision, Effect, Gate, ReadOnly, Recovery, Request, Rules, Toolbox,
    command::Directories,
    gate::{GateFuture, RecoveryFuture},
    rules::Verdict,
};

use crate::history::{History, Interrupted};
use crate::terminal::prompter::{Prompter, Question};
use crate::terminal::question::{self, AGAIN, ALL, DONE, Details, LEAVE, NO, NOT_DONE, QUIT, YES};
use crate::terminal::tty::{Size, Tty};

/// The gate of `run`, `ask`, `chat` and `tools call`.
#[derive(Clone, Debug)]
pub(crate) struct Approval {
    yes: bool,
    rules: Rules,
    toolbox: Toolbox,
    /// The interrupted calls by number.
    interrupted: Arc<BTreeMap<u32, Interrupted>>,
    answers: BTreeMap<u32, RecoveryAnswer>,
    /// Whether the run was cancelled before the interruption.
    was_cancelled: bool,
    /// The start of the run, in milliseconds since 1970.
    began: u64,
    directories: Arc<OnceLock<Directories>>,
    pub(crate) prompter: Arc<Prompter>,
}

/// The outcome of an interrupted call, according to the user.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum RecoveryAnswer {
    Again,
    Done,
    NotDone,
}

impl RecoveryAnswer {
    /// Converts the answer. `text` is the text that the user added, if any.
    fn recovery(self, text: Option<String>) -> Recovery {
        match self {
            Self::Again => Recovery::RunAgain,
            Self::Done => Recovery::Done {
                output: text.unwrap_or_default(),
            },
            Self::NotDone => Recovery::NotDone {
                reason: text.unwrap_or_else(|| {
                    "the run was interrupted before this call completed, and the call was not run again"
                        .to_owned()
                }),
            },
        }
    }
}

impl Gate for Approval {
    fn decide<'a>(&'a self, request: &'a Request) -> GateFuture<'a> {
        Box::pin(async move {
            let rule_asks = self.rules.verdict(request) == Some(Verdict::Ask);
            // Effects and `--yes` do not apply to held calls.
            if request.held.is_some() {
                self.ask(request, rule_asks).await
            } else if (request.effect != Effect::Write || request.delegates) && !rule_asks {
                ReadOnly.decide(request).await
            } else if self.yes {
                Ok(Decision::allow("`--yes` approves every call"))
            } else {
                self.ask(request, rule_asks).await
            }
        })
    }

    fn recover<'a>(&'a self, request: &'a Request) -> RecoveryFuture<'a> {
        Box::pin(async move {
            match self.answers.get(&request.call) {
                Some(answer) => Ok(answer.recovery(None)),
                None => self.ask_for_outcome(request).await,
            }
        })
    }
}

impl Approval {
    /// `history` is the history of a resumed run; `answers` are the recovery answers of the command line.
    pub(crate) fn new(
        yes: bool,
        rules: Rules,
        toolbox: Toolbox,
        history: &History,
        answers: BTreeMap<u32, RecoveryAnswer>,
        prompter: Arc<Prompter>,
    ) -> Self {
        Self {
            yes,
            rules,
            toolbox,
            interrupted: Arc::new(history.interrupted()),
            answers,
            was_cancelled: history.was_cancelled(),
            began: history.begin().map_or(0, |begin| begin.began_unix_ms),
            directories: Arc::default(),
            prompter,
        }
    }

    pub(crate) fn set_directories(&self, directories: Directories) {
        // Set only once.
        let _ = self.directories.set(directories);
    }

    /// Asks for approval. `rule_asks` is whether a rule requires it.
    async fn ask(&self, request: &Request, rule_asks: bool) -> Result<Decision, BoxError> {
        // Only one question at a time.
        let mut allowed = self.prompter.turn().await;
        let is_for_one_call = rule_asks || request.held.is_some();
        if !is_for_one_call && allowed.contains(&request.name) {
            return Ok(Decision::Allow);
        }
        let terminal = match Tty::open() {
            Ok(terminal) => terminal,
            Err(reason) => {
                self.prompter.note_once(unapproved(request, reason)).await;
                return deny_unasked(request, rule_asks).await;
            }
        };
        let mut answers = vec![&YES, &NO, &ALL, &QUIT];
        if is_for_one_call {
            // If every call needs approval, an answer applies to one call only.
            answers.retain(|answer| answer.key != ALL.key);
        }
        let question = Question {
            id: label(request),
            pages: question::pages(self.details(request, rule_asks, terminal.size())).await,
            text: "Allow this call?",
            answers,
        };
        let reply = self.prompter.ask(question, terminal).await?;
        if reply.key == YES.key {
            return Ok(Decision::Allow);
        }
        if reply.key == ALL.key {
            allowed.insert(Arc::clone(&request.name));
            return Ok(Decision::Always);
        }
        if reply.key == QUIT.key {
            self.quit().await;
            return Ok(Decision::deny("the run was cancelled"));
        }
        Ok(Decision::deny(match reply.text {
            Some(reason) => format!("the user denied this call: {reason}"),
            None => "the user denied this call".to_owned(),
        }))
    }

    /// Asks for the outcome of an interrupted call.
    async fn ask_for_outcome(&self, request: &Request) -> Result<Recovery, BoxError> {
        let _turn = self.prompter.turn().await;
        let Ok(terminal) = Tty::open() else {
            return Ok(Recovery::Unknown);
        };
        let mut answers = vec![&AGAIN, &DONE, &NOT_DONE, &LEAVE, &QUIT];
        if self.was_cancelled {
            answers.retain(|answer| answer.key != AGAIN.key);
        }
        let details = self.details(request, false, terminal.size());
        let started = self.interrupted.get(&request.call).map(|call| call.started);
        let question = Question {
            id: label(request),
            pages: question::pages_of_interrupted(details, started, self.began),
            text: "What happened to this call?",
            answers,
        };
        let reply = self.prompter.ask(question, terminal).await?;
        let answer = match reply.key {
            key if key == AGAIN.key => RecoveryAnswer::Again,
            key if key == DONE.key => RecoveryAnswer::Done,
            key if key == NOT_DONE.key => RecoveryAnswer::NotDone,
            key => {
                if key == QUIT.key {
                    self.quit().await;
                }
                return Ok(Recovery::Unknown);
            }
        };
        Ok(answer.recovery(reply.text))
    }

    /// Cancels the run, if possible. Then this call and those with pending questions end as cancelled, so this function
    /// never returns.
    async fn quit(&self) {
        if self.prompter.quit() {
            pending::<()>().await;
        }
    }

    fn details<'a>(&'a self, request: &'a Request, rule_asks: bool, size: Size) -> Details<'a> {
        Details {
            id: request.parent.as_ref().unwrap_or(&request.id),
            name: &request.name,
            effect: request.effect,
            rule_asks,
            held: request.held.as_ref(),
            arguments: &request.arguments,
            tool: self.toolbox.get(&request.name),
            directories: self.directories.get(),
            size,
        }
    }
}

/// Returns the id of a call, or the name of a subagent and that of its tool.
fn label(request: &Request) -> Arc<str> {
    match &request.parent {
        Some(parent) => format!("{parent}/{}", request.name).into(),
        None => Arc::clone(&request.id),
    }
}

/// Returns why the user was not asked, for the user.
fn unapproved(request: &Request, reason: &str) -> String {
    let (calls, advice) = match request.held {
        Some(_) => ("held calls always need approval, even with `--yes`", ""),
        None => (
            "some calls need approval",
            "; to approve all such calls, use `--yes`",
        ),
    };
    format!("{calls}, but {reason}{advice}")
}

/// Denies a call without asking anyone, with a reason for the model.
async fn deny_unasked(request: &Request, rule_asks: bool) -> Result<Decision, BoxError> {
    if request.held.is_some() {
        return ReadOnly.decide(request).await;
    }
    Ok(Decision::deny(if rule_asks {
        "a rule requires approval for this call, and no one can be asked".to_owned()
    } else {
        let name = &request.name;
        format!(
            "the tool `{name}` may change something and needs approval, and no one can be asked"
        )
    }))
}
