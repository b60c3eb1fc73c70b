//! The loop: a question goes in, the model writes text and calls, the calls run while it writes, their results go back,
//! until it answers.

mod mending;
mod reading;
mod request;
mod turn;

use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;

use plaincall::call::{Foreign, ModelText, Passage, PassageBuilder, repair_reply};
use plaincall::{CallResult, Status, Stop, Teller, Tool};
use tokio::select;
use tokio::sync::mpsc::Sender;
use tokio::time::Instant;
use tokio_util::sync::CancellationToken;

use crate::answer::{AgentError, AgentErrorKind, Answer, Progress};
use crate::asking::turn::{Bounds, Turned};
use crate::conversation::Conversation;
use crate::event::AgentEvent;
use crate::flow::{Flow, Next};
use crate::limits::{AgentLimits, WithoutCall};
use crate::model::{Finish, Usage};

/// A time so far away that it does not matter, in place of one that no clock can tell.
const FAR_AWAY: Duration = Duration::from_hours(24 * 365);

/// A question that is being worked on.
#[derive(Debug)]
pub struct Asking<'c> {
    flow: Flow<'c, AgentEvent, Result<Answer, AgentError>>,
    end: Option<Result<Answer, AgentError>>,
    cancel: CancellationToken,
}

impl<'c> Asking<'c> {
    pub(crate) fn new(talk: &'c mut Conversation, question: String) -> Self {
        let cancel = CancellationToken::new();
        let cancelled = cancel.clone();
        let flow = Flow::new(|out| async move {
            let mut work = Work::new(talk, out, cancelled);
            let ended = work.answer(&question).await;
            ended.map_err(|kind| AgentError {
                kind,
                progress: Box::new(work.progress),
                said: work.said,
            })
        });
        Self {
            flow,
            end: None,
            cancel,
        }
    }

    /// What happens next; `None` when the answer is there. Dropping the future loses nothing.
    pub async fn next(&mut self) -> Option<AgentEvent> {
        match self.flow.next().await? {
            Next::Item(event) => Some(event),
            Next::End(end) => {
                self.end = Some(end);
                None
            }
        }
    }

    /// A token that cancels it: the request to the model's server, the tools, questions to the user. What has been done
    /// stays in the conversation.
    pub fn cancellation(&self) -> CancellationToken {
        self.cancel.clone()
    }

    /// The answer. Events that nobody has asked for are passed over.
    ///
    /// # Errors
    /// See [`Conversation::ask`].
    pub async fn answer(mut self) -> Result<Answer, AgentError> {
        while self.next().await.is_some() {}
        self.end
            .unwrap_or_else(|| Err(AgentErrorKind::Cancelled.into()))
    }
}

/// What is known of the question that is worked on.
struct Work<'c> {
    talk: &'c mut Conversation,
    out: Sender<AgentEvent>,
    bounds: Bounds,
    limits: AgentLimits,
    progress: Progress,
    /// The text of the last reply.
    said: String,
    /// How many turns in a row had only wrong calls.
    wrong: u32,
    reminders: u32,
    /// How often a call of this tool with this text behind its header has failed.
    failures: HashMap<(Arc<str>, String), u32>,
}

impl<'c> Work<'c> {
    fn new(talk: &'c mut Conversation, out: Sender<AgentEvent>, cancel: CancellationToken) -> Self {
        let limits = talk.settings.limits;
        let now = Instant::now();
        let deadline = now.checked_add(limits.time).unwrap_or(now + FAR_AWAY);
        Self {
            talk,
            out,
            bounds: Bounds { cancel, deadline },
            limits,
            progress: Progress::default(),
            said: String::new(),
            wrong: 0,
            reminders: 0,
            failures: HashMap::new(),
        }
    }

    async fn tell(&self, event: AgentEvent) {
        // It fails only if nobody listens any more, and then nobody polls this either.
        let _ = self.out.send(event).await;
    }

    /// Works until there is an answer.
    async fn answer(&mut self, question: &str) -> Result<Answer, AgentErrorKind> {
        self.catch_up().await?;
        self.talk.tell_question(question);
        loop {
            self.within_limits()?;
            let number = self.talk.turns();
            self.tell(AgentEvent::TurnBegin { turn: number }).await;
            let (reply, sent) = self.request().await?;
            let turned = self.turn(reply).await?;
            self.count(&turned, sent);
            self.tell(AgentEvent::TurnEnd {
                turn: number,
                finish: turned.finish.clone(),
                usage: turned.written.usage,
            })
            .await;
            if let Some(answer) = self.judge(turned).await? {
                return Ok(answer);
            }
        }
    }

    /// Hears the end of a turn that was dropped.
    async fn catch_up(&mut self) -> Result<(), AgentErrorKind> {
        while self.talk.recounting.told() < self.talk.opened {
            let Conversation {
                events,
                recounting,
                history,
                ..
            } = &mut *self.talk;
            let counted = select! {
                biased;
                kind = self.bounds.over() => return Err(kind),
                event = events.next() => match event {
                    Some(event) => recounting.take(&event, history),
                    // The runtime is gone, and nothing more is heard.
                    None => recounting.add(recounting.written(), Vec::new(), history),
                },
            };
            counted.map_err(AgentErrorKind::Dialect)?;
        }
        Ok(())
    }

    fn within_limits(&self) -> Result<(), AgentErrorKind> {
        let Progress { turns, usage, .. } = self.progress;
        if turns >= self.limits.turns {
            return Err(AgentErrorKind::Turns);
        }
        if self.progress.calls.total() > self.limits.calls {
            return Err(AgentErrorKind::Calls);
        }
        if self.limits.tokens.is_some_and(|most| usage.total() >= most) {
            return Err(AgentErrorKind::Tokens);
        }
        Ok(())
    }

    fn calls_left(&self) -> u32 {
        let written = self.progress.calls.total();
        self.limits.calls.saturating_sub(written)
    }

    /// Counts what a turn took.
    fn count(&mut self, turned: &Turned, sent: u64) {
        self.progress.turns += 1;
        let written = turned.written.text.len() as u64;
        let cost = if let Some(usage) = turned.written.usage {
            self.talk.learn(sent, usage);
            usage
        } else {
            self.progress.is_usage_estimated = true;
            Usage::new(self.talk.tokens(sent), self.talk.tokens(written))
        };
        self.progress.usage.add(cost);
        for result in &turned.results {
            self.progress.calls.add(result.status);
            if let Some(output) = &result.output {
                self.talk.heed(output);
            }
        }
        self.said.clone_from(&turned.said);
    }

    /// Decides what a turn means: the answer, or what the model hears next.
    async fn judge(&mut self, turned: Turned) -> Result<Option<Answer>, AgentErrorKind> {
        if let Some(failure) = turned.results.log_failure() {
            return Err(AgentErrorKind::Log(failure.into()));
        }
        if let Some(end) = turned.end {
            return Err(end);
        }
        if turned.results.is_last() {
            let finished = turned.results.iter().rev().find(|result| {
                let tool = self.talk.run.toolbox().get(&result.name);
                result.status == Status::Ok && tool.is_some_and(|tool| tool.policy().finishes)
            });
            if let Some(finished) = finished {
                let text = finished.output.as_deref().unwrap_or_default();
                return Ok(Some(self.answered(
                    text,
                    Some(&finished.name),
                    &turned.finish,
                )));
            }
        }
        if turned.results.is_empty() {
            return self.without_call(&turned).await;
        }
        self.with_calls(&turned).await?;
        Ok(None)
    }

    async fn with_calls(&mut self, turned: &Turned) -> Result<(), AgentErrorKind> {
        let any_ok = turned.results.iter().any(|one| one.status == Status::Ok);
        let mut complaints = self.complaints(turned);
        if any_ok {
            self.wrong = 0;
        } else if !complaints.is_empty() {
            self.wrong += 1;
        }
        let repeated = self.same_failures(turned)?;
        if complaints.is_empty() && repeated.is_none() {
            return Ok(());
        }
        if self.wrong > self.limits.repairs {
            return Err(AgentErrorKind::Repairs);
        }
        if !complaints.is_empty() {
            self.progress.repairs += 1;
        }
        if let Some(name) = repeated {
            let mut passage = self.passage()?;
            passage
                .own("The very same call of ")
                .foreign(&Foreign::new(&*name))
                .own(" has failed again. Do not repeat it: change it, do something else, or answer.\n");
            complaints.push_str(passage.finish().text());
        }
        self.say(complaints).await;
        Ok(())
    }

    /// Counts calls that fail again and again; returns the tool of one that must not do so once more.
    fn same_failures(&mut self, turned: &Turned) -> Result<Option<Arc<str>>, AgentErrorKind> {
        let most = self.limits.same_failure;
        let mut last_chance = None;
        let failed =
            |result: &&CallResult| matches!(result.status, Status::Error | Status::Rejected);
        for result in turned.results.iter().filter(failed) {
            let written = turned
                .calls
                .iter()
                .find(|call| call.index == result.call as usize);
            let values = written.map(|call| [call.raw_args().unwrap_or_default(), call.raw()]);
            let key = (
                Arc::clone(&result.name),
                values.unwrap_or_default().join("]"),
            );
            let count = self.failures.entry(key).or_default();
            *count += 1;
            if *count >= most && most > 0 {
                return Err(AgentErrorKind::SameFailure {
                    name: Arc::clone(&result.name),
                });
            }
            if *count > 1 && *count + 1 == most {
                last_chance = Some(Arc::clone(&result.name));
            }
        }
        Ok(last_chance)
    }

    fn passage(&self) -> Result<PassageBuilder, AgentErrorKind> {
        let dialect = std::slice::from_ref(&self.talk.dialect);
        PassageBuilder::new(dialect).map_err(AgentErrorKind::Dialect)
    }

    async fn without_call(&mut self, turned: &Turned) -> Result<Option<Answer>, AgentErrorKind> {
        if turned.finish.stop == Stop::Length {
            return Err(AgentErrorKind::Length);
        }
        if let Some(complaint) = self.near_miss(turned) {
            self.wrong += 1;
            if self.wrong > self.limits.repairs {
                return Err(AgentErrorKind::Repairs);
            }
            self.progress.repairs += 1;
            self.say(complaint).await;
            return Ok(None);
        }
        let may_remind = self.reminders < self.limits.reminders;
        let said = turned.said.trim();
        if said.is_empty() {
            if !may_remind {
                return Err(AgentErrorKind::Empty);
            }
            self.reminders += 1;
            self.say("Your reply was empty. Answer, or call a tool.\n".to_owned())
                .await;
            return Ok(None);
        }
        match (self.talk.settings.without_call, &self.talk.settings.user) {
            (WithoutCall::Remind, _) if may_remind => {
                self.reminders += 1;
                self.say(
                    "Your reply holds no call. Go on with the work by calls, or end it with the tool for that.\n"
                        .to_owned(),
                )
                .await;
                Ok(None)
            }
            (WithoutCall::AskBack, Some(user)) => {
                let user = Arc::clone(user);
                let answer = select! {
                    biased;
                    kind = self.bounds.over() => return Err(kind),
                    answer = user.answer(said) => answer,
                };
                let answer = answer.map_err(|error| AgentErrorKind::User(error.to_string()))?;
                self.talk.tell_question(&answer);
                Ok(None)
            }
            _ => Ok(Some(self.answered(said, None, &turned.finish))),
        }
    }

    /// What is to be said about a reply that only looks as if it held a call. What may be a quotation is not asked for.
    fn near_miss(&self, turned: &Turned) -> Option<String> {
        if self.talk.is_quotable || self.talk.run.toolbox().is_empty() {
            return None;
        }
        let specs: Vec<_> = self.talk.run.toolbox().iter().map(Tool::spec).collect();
        let written = ModelText::new(turned.written.text.as_str());
        let passage = repair_reply(&written, &specs, &self.talk.dialect);
        passage.ok().flatten().map(Passage::into_text)
    }

    /// Tells the model something that the program has to say.
    async fn say(&mut self, text: String) {
        let text: Arc<str> = text.into();
        self.talk.tell(Teller::Program, Arc::clone(&text));
        self.tell(AgentEvent::Told { text }).await;
    }

    fn answered(&self, text: &str, by: Option<&Arc<str>>, finish: &Finish) -> Answer {
        Answer {
            text: text.to_owned(),
            finished_by: by.cloned(),
            finish: finish.clone(),
            progress: self.progress,
        }
    }
}
