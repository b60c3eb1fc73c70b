//! Taking up a conversation again from the log of its run (`spec/agent.md` 7).

use std::mem::take;
use std::sync::Arc;

use plaincall::{CallResult, RunEvent, Stop, events::Author};

use crate::answer::{AgentError, AgentErrorKind};
use crate::conversation::Conversation;

impl Conversation {
    /// Tells again what the log of the run says, and ends the turn in which it was cut off.
    pub(crate) async fn take_up(&mut self, past: &[RunEvent]) -> Result<(), AgentError> {
        let mut written = Vec::new();
        let mut results: Vec<CallResult> = Vec::new();
        let text = |written: &mut Vec<u8>| String::from_utf8_lossy(&take(written)).into_owned();
        for event in past {
            match event {
                RunEvent::Message(message) => {
                    if message.author == Author::User {
                        self.heed(&message.text);
                    }
                    self.history.tell(Arc::clone(&message.text));
                }
                RunEvent::Turn(_) => {
                    self.opened += 1;
                    written.clear();
                    results.clear();
                }
                RunEvent::Text(delta) => written.extend_from_slice(delta.source.as_bytes()),
                RunEvent::Result(result) => results.push(self.run.for_model(result)),
                RunEvent::TurnEnd(_) => {
                    results.sort_by_key(|result| result.call);
                    self.add_turn(text(&mut written), take(&mut results))?;
                }
                _ => {}
            }
        }
        if self.told < self.opened {
            let results = self.run.resume_turn().finish(Stop::Broken).await;
            if let Some(failure) = results.log_failure() {
                return Err(AgentErrorKind::Log(failure.into()).into());
            }
            self.add_turn(text(&mut written), results.into_iter().collect())?;
        }
        Ok(())
    }
}
