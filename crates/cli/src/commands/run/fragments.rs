//! The reply on its way from the reader to the display.

use std::mem;
use std::sync::{Mutex, PoisonError};

use plaincall::call::ReplyItem;
use plaincall::{Turn, TurnEvent};
use tokio::sync::mpsc::Sender;

use crate::terminal::event::UiEvent;

/// Parts of the reply that wait for the display.
#[derive(Debug, Default)]
pub(super) struct Fragments(Mutex<Vec<UiEvent>>);

impl Fragments {
    /// Takes what a turn has read.
    pub(super) fn take(&self, turn: &mut Turn<'_>) {
        while let Some(event) = turn.try_next() {
            if let TurnEvent::Read(item) = event {
                self.add(&item);
            }
        }
    }

    /// Takes what was read.
    pub(super) fn add(&self, item: &ReplyItem<'_>) {
        let number = |call: usize| u32::try_from(call).unwrap_or(u32::MAX);
        let (event, line) = match item {
            ReplyItem::Text(text) => (UiEvent::Text(text.to_string()), None),
            ReplyItem::Reasoning(text) => (UiEvent::Reasoning(text.to_string()), None),
            ReplyItem::CallStart(started) => {
                let call = number(started.index);
                let line = started.raw_args.as_ref().filter(|line| !line.is_empty());
                let line = line.map(|line| UiEvent::Value {
                    call,
                    pointer: None,
                    text: line.clone(),
                });
                let id = started.id.as_str().into();
                let name = started.name.as_str().into();
                (UiEvent::Call { call, id, name }, line)
            }
            ReplyItem::ArgumentDelta {
                call,
                pointer,
                text,
            } => {
                let value = UiEvent::Value {
                    call: number(*call),
                    pointer: pointer.clone(),
                    text: text.to_string(),
                };
                (value, None)
            }
            _ => return,
        };
        let mut waiting = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        waiting.push(event);
        waiting.extend(line);
    }

    /// Passes on what waits. It waits itself if the display is behind, and so does the reading of the reply.
    pub(super) async fn pass_on(&self, display: &Sender<UiEvent>) {
        let waiting = mem::take(&mut *self.0.lock().unwrap_or_else(PoisonError::into_inner));
        for event in waiting {
            // A display that has gone is no reason to stop.
            let _ = display.send(event).await;
        }
    }
}
