//! Resumes a conversation from its log (`spec/agent.md` 7).

use std::collections::{BTreeSet, HashSet};
use std::mem::take;
use std::sync::Arc;

use plaincall::call::{PromptTextBuilder, Untrusted};
use plaincall::{CallResult, RunEvent, Stop, events::Author};

use crate::answer::{AgentError, AgentErrorKind};
use crate::conversation::Conversation;

/// The beginning of a message about tools.
const GONE: &str = "Tools that are no longer available: ";

impl Conversation {
    /// Rebuilds the history from the log, and ends an interrupted turn, unless subagents may continue in it.
    pub(crate) async fn replay(&mut self, past: &[RunEvent]) -> Result<(), AgentError> {
        let mut written = Vec::new();
        let mut results: Vec<CallResult> = Vec::new();
        let mut submitted = HashSet::new();
        let text = |written: &mut Vec<u8>| String::from_utf8_lossy(&take(written)).into_owned();
        for event in past {
            match event {
                RunEvent::Message(message) => {
                    self.agent_loop
                        .history
                        .add_message(Arc::clone(&message.text));
                }
                RunEvent::Turn(_) => {
                    self.opened += 1;
                    written.clear();
                    results.clear();
                }
                RunEvent::Text(delta) => written.extend_from_slice(delta.source.as_bytes()),
                RunEvent::Call(call) if call.submitted.is_some() => {
                    submitted.insert(call.call);
                }
                RunEvent::Result(result) if !submitted.contains(&result.call) => {
                    results.push(self.run.for_model(result));
                }
                RunEvent::TurnEnd(_) => {
                    results.sort_by_key(|result| result.call);
                    self.add_turn(text(&mut written), take(&mut results))?;
                }
                _ => {}
            }
        }
        if self.recorded < self.opened {
            let unfinished = self.run.unfinished();
            let continuing = unfinished.map_or_else(Vec::new, |last| last.continuing.clone());
            if let Some(submissions) = self.submissions.as_ref().filter(|_| !continuing.is_empty())
            {
                submissions.read(past, &continuing);
                self.written = text(&mut written);
                self.interrupted = Some(submitted);
                return Ok(());
            }
            let results = self.run.resume_turn().finish(Stop::Broken).await;
            if let Some(failure) = results.log_failure() {
                return Err(AgentErrorKind::Log(failure.into()).into());
            }
            self.add_turn(text(&mut written), results.into_iter().collect())?;
        }
        self.agent_loop.is_resumed = !past.is_empty();
        Ok(())
    }

    /// Adds a message about tools that the model had before and that no longer exist, unless the model has it.
    pub(crate) fn report_gone_tools(&mut self, past: &[RunEvent]) {
        let mut known = BTreeSet::new();
        let mut submitted = HashSet::new();
        let mut before: Option<Arc<str>> = None;
        for event in past {
            match event {
                RunEvent::Run(begin) => {
                    let offered = begin.tools.iter();
                    let offered = offered.filter(|(_, tool)| !tool.policy.submitted_only);
                    known.extend(offered.map(|(name, _)| name.clone()));
                }
                RunEvent::Call(call) if call.submitted.is_some() => {
                    submitted.insert(call.call);
                }
                RunEvent::Waiting(call) if !submitted.contains(&call.call) => {
                    known.insert(call.name.to_string());
                }
                RunEvent::Message(message) if message.text.starts_with(GONE) => {
                    before = Some(Arc::clone(&message.text));
                }
                _ => {}
            }
        }
        known.retain(|name| self.settings.run_tools.get(name).is_none());
        self.gone_tools = known.into_iter().collect();
        let names = match self.gone_tools.join(", ") {
            names if names.is_empty() && before.is_none() => return,
            names if names.is_empty() => "none".to_owned(),
            names => names,
        };
        // The dialect was checked when the agent was built.
        let Ok(mut text) = PromptTextBuilder::new(std::slice::from_ref(self.dialect())) else {
            return;
        };
        text.trusted(GONE).untrusted(&Untrusted::new(names));
        let text = text.finish().into_text();
        // A turn that continues gets no message.
        if self.interrupted.is_none() && before.is_none_or(|before| *before != *text) {
            self.agent_loop.add_message(Author::Program, text.into());
            self.carry_out();
        }
    }
}
