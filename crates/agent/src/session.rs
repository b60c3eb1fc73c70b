//! Taking up a conversation again from the log of its run (`spec/agent.md` 7).

use std::mem::take;
use std::sync::Arc;

use plaincall::syntax::ByteParser;
use plaincall::{CallResult, RunEvent, Stop, Teller};

use crate::answer::{AgentError, AgentErrorKind};
use crate::conversation::Conversation;

/// The turn of a log that is told again.
#[derive(Default)]
struct PastTurn {
    /// Reads what the run has read, so that calls get the same numbers.
    parser: Option<ByteParser>,
    written: Vec<u8>,
    results: Vec<CallResult>,
}

impl PastTurn {
    /// What was written of the reply.
    fn take_written(&mut self) -> String {
        String::from_utf8_lossy(&take(&mut self.written)).into_owned()
    }
}

impl Conversation {
    /// Tells again what the log of the run says, and ends the turn in which it was cut off.
    pub(crate) async fn take_up(&mut self, past: &[RunEvent]) -> Result<(), AgentError> {
        let mut turn = PastTurn::default();
        for event in past {
            match event {
                RunEvent::Told(told) => {
                    if told.by == Teller::User {
                        self.heed(&told.text);
                    }
                    self.history.tell(Arc::clone(&told.text));
                }
                RunEvent::Turn(_) => {
                    self.opened += 1;
                    self.collector.begin_turn();
                    turn = PastTurn {
                        parser: Some(ByteParser::new(&self.dialect)?),
                        ..PastTurn::default()
                    };
                }
                RunEvent::Text(delta) => {
                    let bytes = delta.source.as_bytes();
                    turn.written.extend_from_slice(bytes);
                    for event in turn.parser.iter_mut().flat_map(|parser| parser.feed(bytes)) {
                        self.collector.push(&event);
                    }
                }
                RunEvent::Over(_) => self.collect_end(turn.parser.take()),
                RunEvent::Result(result) => turn.results.push(self.run.for_model(result)),
                RunEvent::End(_) => {
                    turn.results.sort_by_key(|result| result.call);
                    let written = turn.take_written();
                    self.add_turn(written, take(&mut turn.results))?;
                }
                _ => {}
            }
        }
        if self.told < self.opened {
            let results = self.run.go_on().finish(Stop::Broken).await;
            self.collect_end(turn.parser.take());
            if let Some(failure) = results.log_failure() {
                return Err(AgentErrorKind::Log(failure.into()).into());
            }
            let written = turn.take_written();
            self.add_turn(written, results.into_iter().collect())?;
        }
        Ok(())
    }

    fn collect_end(&mut self, parser: Option<ByteParser>) {
        for event in parser.into_iter().flat_map(ByteParser::finish) {
            self.collector.push(&event);
        }
    }
}
