//! Resumes a conversation from its log (`spec/agent.md` 7).

use std::collections::BTreeMap;
use std::sync::Arc;

use plaincall::reply::{PromptTextBuilder, Untrusted};
use plaincall::{
    RunEvent, Stop,
    events::{Author, ToolBegin},
};

use crate::answer::{AgentError, AgentErrorKind};
use crate::conversation::Conversation;

/// The beginning of a message about tools.
const GONE: &str = "Tools that are no longer available: ";

impl Conversation {
    /// Rebuilds the history from the log, and ends an interrupted turn, unless subagents may continue in it.
    pub(crate) async fn replay(&mut self, past: &[RunEvent]) -> Result<(), AgentError> {
        let read = self.agent_loop.replay(past, self.run.received())?;
        (self.opened, self.recorded) = (read.opened, read.recorded);
        if self.recorded < self.opened {
            let unfinished = self.run.unfinished();
            let continuing = unfinished.map_or_else(Vec::new, |last| last.continuing.clone());
            if let Some(submissions) = self.submissions.as_ref().filter(|_| !continuing.is_empty())
            {
                submissions.read(past, &continuing);
                self.written = read.written;
                self.interrupted = Some(read.submitted);
                return Ok(());
            }
            let results = self.run.resume_turn().finish(Stop::Broken).await;
            if let Some(failure) = results.log_failure() {
                return Err(AgentErrorKind::Log(failure.into()).into());
            }
            self.add_turn(read.written, results.into_iter().collect())?;
            self.agent_loop.is_resumed = true;
        }
        Ok(())
    }

    /// Adds a message about tools that the model had before and that no longer exist, unless the model has it. A turn that
    /// continues gets it when it ends.
    pub(crate) fn report_gone_tools(&mut self, past: &[RunEvent]) {
        let (mut gone, mut before) = (BTreeMap::new(), None);
        for event in past {
            gone.extend(settings(event).into_iter().flatten());
            if let RunEvent::Message(message) = event
                && message.text.starts_with(GONE)
            {
                before = Some(&message.text);
            }
        }
        gone.retain(|name, _| self.settings.run_tools.get(name).is_none());
        self.gone_tools = gone.keys().map(|name| (*name).clone()).collect();
        gone.retain(|_, tool| !tool.policy.submitted_only);
        if gone.is_empty() && before.is_none() {
            return;
        }
        let text = self.gone_message(gone.keys().map(|name| name.as_str()), "");
        match text.filter(|text| before != Some(text)) {
            Some(text) if self.interrupted.is_none() => {
                self.agent_loop.add_message(Author::Program, text);
                self.carry_out();
            }
            text => self.after_turn = text,
        }
    }

    /// Returns a message that names the tools that are no longer available, with a note.
    pub(crate) fn gone_message<'n>(
        &self,
        names: impl Iterator<Item = &'n str>,
        note: &'static str,
    ) -> Option<Arc<str>> {
        let names = Some(names.collect::<Vec<_>>().join(", ")).filter(|names| !names.is_empty());
        let names = Untrusted::new(names.unwrap_or_else(|| "none".to_owned()));
        // The dialect was checked when the agent was built.
        let mut text = PromptTextBuilder::new(std::slice::from_ref(self.dialect())).ok()?;
        text.trusted(GONE).untrusted(&names).trusted(note);
        Some(text.finish().into_text().into())
    }
}

/// Returns the settings of all tools, if an event has them.
pub(crate) fn settings(event: &RunEvent) -> Option<&BTreeMap<String, ToolBegin>> {
    match event {
        RunEvent::Run(begin) => Some(&begin.tools),
        RunEvent::Resumed(resumed) => Some(&resumed.tools).filter(|tools| !tools.is_empty()),
        _ => None,
    }
}
