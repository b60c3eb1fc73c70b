//! One turn: a reply of the model is read, and its calls run meanwhile.

use std::sync::{Mutex, PoisonError};

use plaincall::call::ToolCall;
use plaincall::{Stop, TurnResults};

use crate::answer::AgentErrorKind;
use crate::asking::Work;
use crate::asking::reading::Reading;
use crate::event::AgentEvent;
use crate::model::{Finish, ModelError, ModelRequest, Piece, ReplyNext, Usage};

/// How many bytes of a reply are read before the run is waited for.
const READ_AHEAD: usize = 64 << 10;

/// A turn that has ended.
pub(super) struct Turned {
    /// What the model wrote.
    pub(super) reply: String,
    /// Its text outside of calls.
    pub(super) said: String,
    /// Its calls.
    pub(super) calls: Vec<ToolCall>,
    /// How they ended.
    pub(super) results: TurnResults,
    /// How the reply ended.
    pub(super) finish: Finish,
    /// Why nothing can come after it, if that is so.
    pub(super) end: Option<AgentErrorKind>,
}

/// How the reading of a reply ended.
enum Read {
    Finished(Finish),
    Failed(ModelError),
    Cancelled,
    TimedOut,
}

impl Work<'_> {
    /// Lets the model write a reply and runs its calls.
    pub(super) async fn turn(&mut self) -> Result<Turned, AgentErrorKind> {
        let number = self.talk.turns;
        self.talk.turns += 1;
        self.tell(AgentEvent::TurnBegin { turn: number }).await;
        let mut request = ModelRequest::new(self.talk.history.messages());
        request.max_tokens = self.limits.reply_tokens;
        let sent = self.talk.history.bytes();
        let mut reply = self.talk.model.reply(request);
        let out = self.out.clone();

        let canceller = self.talk.run.canceller();
        let events = &mut self.talk.events;
        let reading = Mutex::new(Reading::new(&mut self.talk.collector));
        let lock = || reading.lock().unwrap_or_else(PoisonError::into_inner);
        let mut turn = self.talk.run.turn().watch(|event| lock().take(event));
        let mut written = String::new();
        let mut ahead = 0;
        let mut usage: Option<Usage> = None;
        let read = loop {
            tokio::select! {
                biased;
                () = self.cancel.cancelled() => break Read::Cancelled,
                () = tokio::time::sleep_until(self.deadline) => break Read::TimedOut,
                Some(event) = events.next() => {
                    let _ = out.send(AgentEvent::Run(Box::new(event))).await;
                }
                next = reply.next() => match next {
                    Some(Ok(ReplyNext::Piece(Piece::Text(text)))) => {
                        turn.feed(&text);
                        written.push_str(&text);
                        let read = std::mem::take(&mut lock().events);
                        for event in read {
                            let _ = out.send(event).await;
                        }
                        ahead += text.len();
                        if ahead >= READ_AHEAD {
                            ahead = 0;
                            let caught_up = turn.caught_up();
                            caught_up.await;
                        }
                    }
                    Some(Ok(ReplyNext::Piece(Piece::Reasoning(text)))) => {
                        let _ = out.send(AgentEvent::Reasoning(text)).await;
                    }
                    Some(Ok(ReplyNext::Piece(Piece::Usage(so_far)))) => usage = Some(so_far),
                    Some(Ok(ReplyNext::Piece(Piece::Retry(told)))) => {
                        let _ = out.send(AgentEvent::Retry {
                            error: told.error.message,
                            after: told.pause,
                            attempt: told.number,
                        }).await;
                    }
                    Some(Ok(ReplyNext::Finish(finish))) => break Read::Finished(finish),
                    Some(Err(error)) => break Read::Failed(error),
                    None => break Read::Finished(Finish::new(Stop::Broken)),
                }
            }
        };
        // Nothing more of the reply is wanted: the request is taken back.
        drop(reply);
        let finish = match &read {
            Read::Finished(finish) => finish.clone(),
            _ => Finish::new(Stop::Broken),
        };
        if matches!(read, Read::Cancelled | Read::TimedOut) {
            canceller.cancel();
        }
        let mut end = match read {
            Read::Finished(_) => None,
            Read::Failed(error) => Some(AgentErrorKind::Model(error)),
            Read::Cancelled => Some(AgentErrorKind::Cancelled),
            Read::TimedOut => Some(AgentErrorKind::Time),
        };
        let results = {
            let mut finishing = std::pin::pin!(turn.finish(finish.stop));
            loop {
                let is_over = end.is_some();
                tokio::select! {
                    biased;
                    () = self.cancel.cancelled(), if !is_over => {
                        canceller.cancel();
                        end = Some(AgentErrorKind::Cancelled);
                    }
                    () = tokio::time::sleep_until(self.deadline), if !is_over => {
                        canceller.cancel();
                        end = Some(AgentErrorKind::Time);
                    }
                    Some(event) = events.next() => {
                        // What was read comes before what came of it.
                        let read = std::mem::take(&mut lock().events);
                        for event in read {
                            let _ = out.send(event).await;
                        }
                        let _ = out.send(AgentEvent::Run(Box::new(event))).await;
                    }
                    results = &mut finishing => break results,
                }
            }
        };
        let Reading {
            events: last,
            calls,
            said,
            ..
        } = reading.into_inner().unwrap_or_else(PoisonError::into_inner);
        for event in last {
            let _ = out.send(event).await;
        }
        while let Some(event) = events.try_next() {
            let _ = out.send(AgentEvent::Run(Box::new(event))).await;
        }
        self.progress.turns += 1;
        let spent = usage.unwrap_or_else(|| {
            self.progress.is_usage_estimated = true;
            Usage::new(sent / 4, written.len() as u64 / 4)
        });
        self.progress.usage.add(spent);
        for result in &results {
            self.progress.calls.add(result.status);
            if let Some(output) = &result.output {
                self.talk.heed(output);
            }
        }
        self.talk.history.reply(written.clone());
        if !results.is_empty() {
            let told = results.iter().cloned().collect();
            self.talk
                .history
                .results(told)
                .map_err(AgentErrorKind::Dialect)?;
        }
        self.tell(AgentEvent::TurnEnd {
            turn: number,
            finish: finish.clone(),
            usage,
        })
        .await;
        Ok(Turned {
            reply: written,
            said,
            calls,
            results,
            finish,
            end,
        })
    }
}
