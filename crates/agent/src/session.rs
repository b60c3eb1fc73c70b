//! Resumes a conversation from its log (`spec/agent.md` 7).

use std::collections::HashSet;
use std::mem::take;
use std::sync::Arc;

use plaincall::{CallResult, RunEvent, Stop};

use crate::answer::{AgentError, AgentErrorKind};
use crate::conversation::Conversation;

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
                    self.history.add_message(Arc::clone(&message.text));
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
        self.is_resumed = !past.is_empty();
        Ok(())
    }
}
