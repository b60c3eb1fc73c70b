//! The model of a subagent: its replies so far come from the log, and later ones are recorded.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use plaincall::Stop;
use tokio::sync::mpsc::Sender;
use tokio::sync::oneshot;

use crate::model::{Constrain, Finish, Model, ModelError, ModelRequest, Piece, Reply, ReplyNext};
use crate::subagent::past::PastReply;
use crate::subagent::submissions::{Family, Message, lock};

/// The model of a subagent, whose replies are recorded.
pub(super) struct RecordedModel {
    model: Arc<dyn Model>,
    sender: Sender<Message>,
    call: u32,
    past: Mutex<VecDeque<PastReply>>,
}

impl RecordedModel {
    /// Creates the model of the subagent that a call runs.
    pub(super) fn new(
        model: Arc<dyn Model>,
        family: &Family,
        sender: Sender<Message>,
        call: u32,
    ) -> Self {
        let mut family = lock(&family.state);
        let past = family.past.get_mut(&call);
        let past = past.map(|past| std::mem::take(&mut past.replies));
        drop(family);
        Self {
            model,
            sender,
            call,
            past: Mutex::new(past.unwrap_or_default()),
        }
    }
}

impl Model for RecordedModel {
    fn name(&self) -> &str {
        self.model.name()
    }

    fn constrains(&self) -> Constrain {
        self.model.constrains()
    }

    fn reply(&self, request: ModelRequest) -> Reply {
        if let Some(past) = lock(&self.past).pop_front() {
            return Reply::new(|out| async move {
                out.text(past.text).await;
                if let Some(usage) = past.usage {
                    out.usage(usage).await;
                }
                Ok(Finish::new(past.stop.unwrap_or(Stop::Broken)))
            });
        }
        let mut reply = self.model.reply(request);
        let (sender, call) = (self.sender.clone(), self.call);
        Reply::new(move |out| async move {
            let mut usage = None;
            while let Some(next) = reply.next().await {
                let (text, finish) = match next? {
                    ReplyNext::Piece(Piece::Text(text)) => (text, None),
                    ReplyNext::Piece(piece) => {
                        if let Piece::Usage(so_far) = piece {
                            usage = Some(so_far);
                        }
                        out.piece(piece).await;
                        continue;
                    }
                    ReplyNext::Finish(finish) => (String::new(), Some(finish)),
                };
                let (recorded, caught_up) = oneshot::channel();
                // Before any call in it is submitted. It fails only if the conversation has ended.
                let _ = sender
                    .send(Message::Text {
                        call,
                        text: text.clone(),
                        stop: finish.as_ref().map(|finish| finish.stop),
                        usage: usage.filter(|_| finish.is_some()),
                        recorded: finish.is_some().then_some(recorded),
                    })
                    .await;
                let Some(finish) = finish else {
                    out.text(text).await;
                    continue;
                };
                // The end must be recorded before the call ends, which does not wait for messages.
                if let Ok(caught_up) = caught_up.await {
                    caught_up.await;
                }
                return Ok(finish);
            }
            Err(ModelError::endless())
        })
    }
}
