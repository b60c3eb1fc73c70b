//! What happens in a run on its way to the display.

use std::sync::Arc;

use plaincall::{RunEvent, RunEvents};
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;

use crate::commands::run::fragments::Fragments;
use crate::terminal::event::UiEvent;
use crate::terminal::prompter::Prompter;

/// Answered when all that has happened was passed on.
pub(super) type Wish = oneshot::Sender<()>;

/// Waits until all that has happened so far was passed on.
pub(super) async fn all_told(wishes: &UnboundedSender<Wish>) {
    let (tell, told) = oneshot::channel();
    // One at a time wishes, so nothing piles up. If nobody hears it, there is nothing to wait for.
    if wishes.send(tell).is_ok() {
        let _ = told.await;
    }
}

/// The events on their way from the run to the display.
pub(super) struct Forwarding {
    /// What happened before the run was interrupted.
    pub(super) history: Vec<RunEvent>,
    pub(super) events: RunEvents,
    pub(super) fragments: Arc<Fragments>,
    pub(super) wishes: UnboundedReceiver<Wish>,
    pub(super) display: Sender<UiEvent>,
    pub(super) prompter: Arc<Prompter>,
}

impl Forwarding {
    /// Passes on all up to the end of the turn, or what there is when nobody has wishes any more. Returns how many events
    /// were lost because nobody took them in time.
    pub(super) async fn go(mut self) -> u64 {
        let is_resumed = !self.history.is_empty();
        self.fragments.pass_on(&self.display).await;
        for event in self.history {
            let _ = self.display.send(UiEvent::Run(Box::new(event))).await;
        }
        if !is_resumed {
            self.prompter.open();
        }
        let mut missed = 0;
        loop {
            let event = tokio::select! {
                biased;
                event = self.events.next() => event,
                wish = self.wishes.recv() => {
                    let Some(wish) = wish else {
                        // The results are there, and the end was not passed on.
                        return missed.max(1);
                    };
                    let _ = wish.send(());
                    continue;
                }
            };
            match event {
                None => return missed,
                // How the run began stands in its history already.
                Some(RunEvent::Run(_)) if is_resumed => {}
                Some(RunEvent::Missed(lost)) => missed += lost.count,
                Some(event) => {
                    let is_end = matches!(event, RunEvent::End(_));
                    let _ = self.display.send(UiEvent::Run(Box::new(event))).await;
                    // That the run was resumed is shown before anything is asked.
                    self.prompter.open();
                    if is_end {
                        return missed;
                    }
                }
            }
        }
    }
}
