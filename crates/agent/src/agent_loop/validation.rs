//! Decides what a turn means: the answer, or a message to the model (`spec/agent.md` 3).

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use plaincall::call::{
    CallError, ModelText, PromptText, PromptTextBuilder, Untrusted,
    repair::{repair_after_results, repair_reply},
};
use plaincall::syntax::near_misses;
use plaincall::{Effect, Status, Stop, events::Author};
use plaincall_wire::openai::is_natural_end;
use tokio::select;

use crate::agent_loop::AgentRun;
use crate::agent_loop::turn::Turned;
use crate::answer::{AgentErrorKind, Answer};
use crate::event::AgentEvent;
use crate::limits::OnNoToolCall;
use crate::model::Finish;

/// How many replies in a row with calls may be truncated by their length.
const MOST_TRUNCATED: u32 = 2;

/// Failed calls: the number of turns, by tool and by the text after the header.
#[derive(Debug, Default)]
pub(super) struct Failures(HashMap<(Arc<str>, String), u32>);

#[derive(Clone, Copy, Debug)]
enum NearMissOf {
    Marker,
    Format,
}

enum Repeated {
    /// The next failure ends the agent run.
    Warn(Arc<str>),
    /// The agent run ends.
    End(Arc<str>),
}

/// The calls and results of the last turn: tool, text after the header and output of each, and the number of equal turns in a row.
#[derive(Debug, Default)]
pub(super) struct SameResults {
    last: Vec<(Arc<str>, String, Option<Arc<str>>)>,
    count: u32,
}

/// After how many equal turns the model gets a message.
const EQUAL_TURNS: u32 = 3;

impl SameResults {
    /// Counts a turn whose calls all ended `ok`.
    fn count(&mut self, turned: &Turned, most: u32) -> Option<Repeated> {
        let results = || turned.results.iter();
        let now = results().map(|result| {
            let name = Arc::clone(&result.name);
            (name, values(turned, result.call), result.output.clone())
        });
        let now: Vec<_> = now.collect();
        let is_same = now == self.last && results().all(|result| result.status == Status::Ok);
        self.count = if is_same { self.count + 1 } else { 1 };
        self.last = now;
        let name = Arc::clone(&self.last.first()?.0);
        match self.count {
            count if most > 0 && count >= most => Some(Repeated::End(name)),
            EQUAL_TURNS => Some(Repeated::Warn(name)),
            _ => None,
        }
    }
}

/// Returns the text of a call after its header.
fn values(turned: &Turned, call: u32) -> String {
    let written = turned.call(call);
    let values = written.map(|call| [call.raw_args.as_deref().unwrap_or_default(), call.raw()]);
    values.unwrap_or_default().join("]")
}

impl Failures {
    /// Counts each failed call of a turn once.
    fn count(&mut self, turned: &Turned, most: u32) -> Option<Repeated> {
        let mut counted = HashSet::new();
        let mut warned = None;
        for result in &turned.results {
            if !matches!(result.status, Status::Error | Status::Rejected) {
                continue;
            }
            let key = (Arc::clone(&result.name), values(turned, result.call));
            if !counted.insert(key.clone()) {
                continue;
            }
            let count = self.0.entry(key).or_default();
            *count += 1;
            if most > 0 && *count >= most {
                return Some(Repeated::End(Arc::clone(&result.name)));
            }
            if *count > 1 && *count + 1 == most {
                warned = Some(Repeated::Warn(Arc::clone(&result.name)));
            }
        }
        warned
    }
}

impl AgentRun<'_> {
    pub(super) async fn evaluate(
        &mut self,
        turned: Turned,
    ) -> Result<Option<Answer>, AgentErrorKind> {
        if let Some(failure) = turned.results.log_failure() {
            return Err(AgentErrorKind::Log(failure.into()));
        }
        if let Some((name, output)) = &turned.read.finished
            // Calls over the limit do not take the result away.
            && matches!(turned.end, None | Some(AgentErrorKind::Calls))
        {
            return self.accept(output, Some(name), &turned.finish).await;
        }
        if let Some(end) = turned.end {
            return Err(end);
        }
        if turned.results.is_empty() {
            return self.handle_no_tool_call(&turned).await;
        }
        self.with_calls(&turned).await?;
        Ok(None)
    }

    async fn with_calls(&mut self, turned: &Turned) -> Result<(), AgentErrorKind> {
        let ended = |status| turned.results.iter().any(|one| one.status == status);
        if ended(Status::Ok) {
            self.wrong = 0;
        } else if ended(Status::Rejected) {
            self.wrong += 1;
        }
        let changes = |name: &str| {
            let tool = self.talk.tools().get(name);
            tool.is_some_and(|tool| tool.spec().effect != Effect::Read)
        };
        let mut results = turned.results.iter();
        if results.any(|one| one.status == Status::Ok && changes(&one.name)) {
            // Earlier failures may succeed now.
            self.failures = Failures::default();
        }
        let mut message = self.rejections(turned);
        // A call was truncated with its reply.
        let is_truncated = turned.finish.stop == Stop::Length && !message.is_empty();
        self.truncated = if is_truncated { self.truncated + 1 } else { 0 };
        if self.truncated > MOST_TRUNCATED {
            return Err(AgentErrorKind::Length);
        }
        // A truncated call does not count as a failure.
        let repeated = if is_truncated {
            None
        } else {
            self.failures.count(turned, self.limits.same_failure)
        };
        if let Some(Repeated::End(name)) = repeated {
            return Err(AgentErrorKind::SameFailure { name });
        }
        let same = self.same_results.count(turned, self.limits.same_result);
        if let Some(Repeated::End(name)) = same {
            return Err(AgentErrorKind::SameResult { name });
        }
        if self.wrong > self.limits.repairs {
            return Err(AgentErrorKind::Repairs);
        }
        if is_truncated {
            message.insert_str(
                0,
                "Your reply was truncated at the length limit. Write less per reply; split long values into parts.\n\n",
            );
        }
        if !message.is_empty() {
            self.budget.count(|used| used.repairs += 1);
        }
        let failed = " failed again. Do not repeat it: change it, try something else, or answer.\n";
        let equal =
            " had the same result three times. Do not repeat it unless you wait for a change.\n";
        for (repeated, words) in [(repeated, failed), (same, equal)] {
            let Some(Repeated::Warn(name)) = repeated else {
                continue;
            };
            let dialect = std::slice::from_ref(&self.talk.dialect);
            let mut prompt_text =
                PromptTextBuilder::new(dialect).map_err(AgentErrorKind::Dialect)?;
            prompt_text
                .trusted("The same call of ")
                .untrusted(&Untrusted::new(&*name))
                .trusted(words);
            message.push_str(prompt_text.finish().text());
        }
        if !message.is_empty() {
            self.send_message(message).await;
        }
        Ok(())
    }

    async fn handle_no_tool_call(
        &mut self,
        turned: &Turned,
    ) -> Result<Option<Answer>, AgentErrorKind> {
        match (turned.finish.stop, &turned.finish.reason) {
            (Stop::Length, _) => return Err(AgentErrorKind::Length),
            // A reply without a reason counts as complete, but its open calls do not run.
            (Stop::Natural | Stop::EndOfFile, _) | (Stop::Broken, None) => {}
            (Stop::Broken, Some(reason)) if is_natural_end(reason) => {}
            (Stop::Broken, Some(_)) => return Err(AgentErrorKind::Ended(turned.finish.clone())),
        }
        let schema = self.talk.answer_schema.as_ref();
        // Valid JSON is the answer, even if a part of it looks like a call.
        let is_valid = schema.is_some_and(|schema| schema.read(&turned.read.text).is_ok());
        let near = self.near_miss(turned).filter(|_| !is_valid);
        if let Some((message, NearMissOf::Marker)) = near {
            self.wrong += 1;
            if self.wrong > self.limits.repairs {
                return Err(AgentErrorKind::Repairs);
            }
            self.budget.count(|used| used.repairs += 1);
            self.send_message(message).await;
            return Ok(None);
        }
        let may_remind = self.reminders < self.limits.reminders;
        let text = turned.read.text.trim();
        // A call in another format may be part of an answer.
        if let (true, Some((message, NearMissOf::Format))) = (may_remind, near) {
            self.budget.count(|used| used.repairs += 1);
            return self.remind(&message).await;
        }
        if text.is_empty() {
            if !may_remind {
                return Err(AgentErrorKind::Empty);
            }
            return self
                .remind("Your reply was empty. Answer or call a tool.\n")
                .await;
        }
        match (self.talk.settings.on_no_tool_call, &self.talk.settings.user) {
            (OnNoToolCall::Remind, _) if may_remind => {
                let words = "Your reply has no tool call. Continue with tool calls, or finish with the tool for that.\n";
                self.remind(words).await
            }
            (OnNoToolCall::AskUser, Some(user)) => {
                let user = Arc::clone(user);
                let answer = select! {
                    biased;
                    kind = self.bounds.over() => return Err(kind),
                    answer = user.answer(text) => answer,
                };
                let answer = answer.map_err(|error| AgentErrorKind::User(error.to_string()))?;
                self.talk.add_question(&answer);
                Ok(None)
            }
            _ => self.accept(text, None, &turned.finish).await,
        }
    }

    /// Returns the answer, unless it does not match the schema.
    async fn accept(
        &mut self,
        text: &str,
        by: Option<&Arc<str>>,
        finish: &Finish,
    ) -> Result<Option<Answer>, AgentErrorKind> {
        let Some(schema) = &self.talk.answer_schema else {
            return Ok(Some(self.answered(text, by, finish)));
        };
        let problems = match schema.read(text) {
            Ok(json) => return Ok(Some(self.answered(json, by, finish))),
            Err(problems) => problems,
        };
        self.mismatches += 1;
        // A finishing tool has ended the run, so nothing can be repaired.
        if by.is_some() || self.mismatches > self.limits.repairs {
            return Err(AgentErrorKind::Schema(problems));
        }
        let message = schema.repair(&problems, &self.talk.dialect);
        let message = message.map_err(AgentErrorKind::Dialect)?;
        self.budget.count(|used| used.repairs += 1);
        self.send_message(message.into_text()).await;
        Ok(None)
    }

    async fn remind(&mut self, text: &str) -> Result<Option<Answer>, AgentErrorKind> {
        self.reminders += 1;
        self.send_message(text.to_owned()).await;
        Ok(None)
    }

    /// The repair message for a reply with near misses only. None if an untrusted text mentions them: the reply may quote
    /// it.
    fn near_miss(&mut self, turned: &Turned) -> Option<(String, NearMissOf)> {
        if self.talk.tools().is_empty() || self.talk.run.is_quotation(&turned.written) {
            return None;
        }
        let toolbox = self.talk.tools();
        let near = near_misses(&turned.read.text, &self.talk.dialect).ok()?;
        let of = if near.iter().any(|miss| miss.format.is_none()) {
            NearMissOf::Marker
        } else {
            NearMissOf::Format
        };
        let written = ModelText::new(turned.written.as_str());
        let prompt_text = repair_reply(&written, toolbox, &self.talk.dialect);
        Some((prompt_text.ok().flatten()?.into_text(), of))
    }

    /// The repair message for calls that were rejected because of their text.
    fn rejections(&mut self, turned: &Turned) -> String {
        let rejected = turned.results.iter().filter_map(|result| {
            let error = result.call_error.as_deref()?;
            let call = turned.call(result.call)?;
            // The call may come from an untrusted text, so no repair is requested. The result states the error.
            let is_wanted = !self.talk.run.is_mentioned(&call.name);
            // The result states everything that the model needs.
            let is_in_result = matches!(
                error,
                CallError::MaybeReasoning(_) | CallError::UnknownIds(_)
            );
            (is_wanted && !is_in_result).then_some((call, error))
        });
        let rejected: Vec<_> = rejected.collect();
        // The dialect was checked when the agent was built.
        let message = repair_after_results(rejected, self.talk.tools(), &self.talk.dialect);
        message.map(PromptText::into_text).unwrap_or_default()
    }

    pub(super) async fn send_message(&mut self, text: String) {
        let text: Arc<str> = text.into();
        self.talk.add_message(Author::Program, Arc::clone(&text));
        self.emit(AgentEvent::Message { text }).await;
    }

    fn answered(&self, text: &str, by: Option<&Arc<str>>, finish: &Finish) -> Answer {
        Answer {
            text: text.to_owned(),
            finished_by: by.cloned(),
            finish: finish.clone(),
            progress: self.budget.used(),
        }
    }
}
