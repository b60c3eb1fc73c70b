//! Decides what a turn means: the answer, or a message to the model (`spec/agent.md` 3).

use std::sync::Arc;

use plaincall::call::{
    CallError, ModelText, PromptText, PromptTextBuilder, Untrusted,
    repair::{repair_after_results, repair_reply},
};
use plaincall::syntax::near_misses;
use plaincall::{Effect, Received, Status, Stop, events::Author};

use crate::agent_loop::repeats::{Failures, Repeated};
use crate::agent_loop::turned::Turned;
use crate::agent_loop::{AgentLoop, Next};
use crate::answer::{AgentErrorKind, Answer};
use crate::limits::OnNoToolCall;
use crate::model::Finish;

/// How many replies in a row with calls may be truncated by their length.
const MOST_TRUNCATED: u32 = 2;

#[derive(Clone, Copy, Debug)]
enum NearMissOf {
    Marker,
    Format,
}

impl AgentLoop {
    /// Counts a turn, and decides what follows from it.
    ///
    /// # Errors
    /// Returns the error that ends the question.
    pub fn evaluate(
        &mut self,
        turned: Turned,
        received: &Received,
    ) -> Result<Next, AgentErrorKind> {
        self.count(&turned);
        if let Some(failure) = turned.results.log_failure() {
            return Err(AgentErrorKind::Log(failure.into()));
        }
        if let Some((name, output)) = &turned.read.finished
            && turned.results.is_last()
            // Calls over the limit do not take the result away.
            && matches!(turned.end, None | Some(AgentErrorKind::Calls))
        {
            return self.accept(output, Some(name), &turned.finish);
        }
        if let Some(end) = turned.end {
            return Err(end);
        }
        if turned.results.is_empty() {
            return self.without_calls(&turned, received);
        }
        self.with_calls(&turned, received)?;
        Ok(Next::Request)
    }

    fn with_calls(&mut self, turned: &Turned, received: &Received) -> Result<(), AgentErrorKind> {
        let ended = |status| turned.results.iter().any(|one| one.status == status);
        if ended(Status::Ok) {
            self.counts.wrong = 0;
        } else if ended(Status::Rejected) {
            self.counts.wrong += 1;
        }
        let changes = |name: &str| {
            let tool = self.tools.get(name);
            tool.is_some_and(|tool| tool.spec().effect != Effect::Read)
        };
        let mut results = turned.results.iter();
        if results.any(|one| one.status == Status::Ok && changes(&one.name)) {
            // Earlier failures may succeed now.
            self.counts.failures = Failures::default();
        }
        let mut message = self.rejections(turned, received);
        // A call was truncated with its reply.
        let is_truncated = turned.finish.stop == Stop::Length && !message.is_empty();
        self.counts.truncated = if is_truncated {
            self.counts.truncated + 1
        } else {
            0
        };
        if self.counts.truncated > MOST_TRUNCATED {
            return Err(AgentErrorKind::Length);
        }
        // A truncated call does not count as a failure.
        let repeated = if is_truncated {
            None
        } else {
            self.counts.failures.count(turned, self.limits.same_failure)
        };
        if let Some(Repeated::End(name)) = repeated {
            return Err(AgentErrorKind::SameFailure { name });
        }
        let same = self
            .counts
            .same_results
            .count(turned, self.limits.same_result);
        if let Some(Repeated::End(name)) = same {
            return Err(AgentErrorKind::SameResult { name });
        }
        if self.counts.wrong > self.limits.repairs {
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
            let dialect = std::slice::from_ref(&self.dialect);
            let mut prompt_text =
                PromptTextBuilder::new(dialect).map_err(AgentErrorKind::Dialect)?;
            prompt_text
                .trusted("The same call of ")
                .untrusted(&Untrusted::new(&*name))
                .trusted(words);
            message.push_str(prompt_text.finish().text());
        }
        if !message.is_empty() {
            self.send_message(message);
        }
        Ok(())
    }

    fn without_calls(
        &mut self,
        turned: &Turned,
        received: &Received,
    ) -> Result<Next, AgentErrorKind> {
        match (turned.finish.stop, &turned.finish.reason) {
            (Stop::Length, _) => return Err(AgentErrorKind::Length),
            // A reply without a reason counts as complete, but its open calls do not run.
            (Stop::Natural | Stop::EndOfFile, _) | (Stop::Broken, None) => {}
            (Stop::Broken, Some(reason)) if Stop::from_reason(reason) == Stop::Natural => {}
            (Stop::Broken, Some(_)) => return Err(AgentErrorKind::Ended(turned.finish.clone())),
        }
        let schema = self.schema.as_ref();
        // Valid JSON is the answer, even if a part of it looks like a call.
        let is_valid = schema.is_some_and(|schema| schema.read(&turned.read.text).is_ok());
        let near = self.near_miss(turned, received).filter(|_| !is_valid);
        if let Some((message, NearMissOf::Marker)) = near {
            self.counts.wrong += 1;
            if self.counts.wrong > self.limits.repairs {
                return Err(AgentErrorKind::Repairs);
            }
            self.budget.count(|used| used.repairs += 1);
            self.send_message(message);
            return Ok(Next::Request);
        }
        let may_remind = self.counts.reminders < self.limits.reminders;
        let text = turned.read.text.trim();
        // A call in another format may be part of an answer.
        if let (true, Some((message, NearMissOf::Format))) = (may_remind, near) {
            self.budget.count(|used| used.repairs += 1);
            return Ok(self.remind(&message));
        }
        if text.is_empty() {
            if !may_remind {
                return Err(AgentErrorKind::Empty);
            }
            return Ok(self.remind("Your reply was empty. Answer or call a tool.\n"));
        }
        match self.on_no_tool_call {
            OnNoToolCall::Remind if may_remind => {
                let words = "Your reply has no tool call. Continue with tool calls, or finish with the tool for that.\n";
                Ok(self.remind(words))
            }
            OnNoToolCall::AskUser => Ok(Next::AskUser(text.to_owned())),
            _ => self.accept(text, None, &turned.finish),
        }
    }

    /// Returns the answer, unless it does not match the schema.
    fn accept(
        &mut self,
        text: &str,
        by: Option<&Arc<str>>,
        finish: &Finish,
    ) -> Result<Next, AgentErrorKind> {
        let Some(schema) = &self.schema else {
            return Ok(self.answered(text, by, finish));
        };
        let problems = match schema.read(text) {
            Ok(json) => return Ok(self.answered(json, by, finish)),
            Err(problems) => problems,
        };
        self.counts.mismatches += 1;
        // A finishing tool has ended the run, so nothing can be repaired.
        if by.is_some() || self.counts.mismatches > self.limits.repairs {
            return Err(AgentErrorKind::Schema(problems));
        }
        let message = schema.repair(&problems, &self.dialect);
        let message = message.map_err(AgentErrorKind::Dialect)?;
        self.budget.count(|used| used.repairs += 1);
        self.send_message(message.into_text());
        Ok(Next::Request)
    }

    fn remind(&mut self, text: &str) -> Next {
        self.counts.reminders += 1;
        self.send_message(text.to_owned());
        Next::Request
    }

    /// The repair message for a reply with near misses only. None if an untrusted text mentions them: the reply may quote
    /// it.
    fn near_miss(&self, turned: &Turned, received: &Received) -> Option<(String, NearMissOf)> {
        if self.tools.is_empty() || received.is_quotation(&turned.written) {
            return None;
        }
        let near = near_misses(&turned.read.text, &self.dialect).ok()?;
        let of = if near.iter().any(|miss| miss.format.is_none()) {
            NearMissOf::Marker
        } else {
            NearMissOf::Format
        };
        let written = ModelText::new(turned.written.as_str());
        let prompt_text = repair_reply(&written, &self.tools, &self.dialect);
        Some((prompt_text.ok().flatten()?.into_text(), of))
    }

    /// The repair message for calls that were rejected because of their text.
    fn rejections(&self, turned: &Turned, received: &Received) -> String {
        let rejected = turned.results.iter().filter_map(|result| {
            let error = result.call_error.as_deref()?;
            let call = turned.call(result.call)?;
            // The call may come from an untrusted text, so no repair is requested. The result states the error.
            let is_wanted = !received.is_mentioned(&call.name);
            // The result states everything that the model needs.
            let is_in_result = matches!(
                error,
                CallError::MaybeReasoning(_) | CallError::UnknownIds(_)
            );
            (is_wanted && !is_in_result).then_some((call, error))
        });
        let rejected: Vec<_> = rejected.collect();
        // The dialect was checked when the agent was built.
        let message = repair_after_results(rejected, &self.tools, &self.dialect);
        message.map(PromptText::into_text).unwrap_or_default()
    }

    fn send_message(&mut self, text: String) {
        self.add_message(Author::Program, text.into());
    }

    fn answered(&self, text: &str, by: Option<&Arc<str>>, finish: &Finish) -> Next {
        Next::Answer(Box::new(Answer {
            text: text.to_owned(),
            finished_by: by.cloned(),
            finish: finish.clone(),
            progress: self.budget.used(),
        }))
    }
}
