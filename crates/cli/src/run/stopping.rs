//! What signals do to a run.

use std::pin::pin;

use plaincall::{Canceller, Stop, Turn, TurnResults};
use tokio::sync::mpsc::Sender;

use crate::run::interrupts::{Interrupt, Interrupts};
use crate::run::news::News;
use crate::run::telling::post;

/// Heeds signals while a run goes on.
pub(crate) struct Stopping<'i> {
    pub(crate) interrupts: &'i mut Interrupts,
    pub(crate) first: Option<Interrupt>,
    pub(crate) canceller: Canceller,
    pub(crate) news: Sender<News>,
}

impl Stopping<'_> {
    /// Goes on until the first signal, which calls the run off; `None` after that.
    pub(crate) async fn until_first<T>(&mut self, what: impl Future<Output = T>) -> Option<T> {
        tokio::select! {
            result = what => Some(result),
            interrupt = self.interrupts.next() => {
                self.heed(interrupt);
                None
            }
        }
    }

    /// Waits for the results. With the second signal, or one that is urgent, there are none.
    pub(crate) async fn finish(&mut self, turn: Turn<'_>, stop: Stop) -> Option<TurnResults> {
        let mut running = pin!(turn.finish(stop));
        while !self.first.is_some_and(Interrupt::is_urgent) {
            tokio::select! {
                results = &mut running => return Some(results),
                interrupt = self.interrupts.next() => {
                    if self.first.is_some() {
                        break;
                    }
                    self.heed(interrupt);
                }
            }
        }
        None
    }

    fn heed(&mut self, interrupt: Interrupt) {
        self.first = Some(interrupt);
        self.canceller.cancel();
        post(&self.news, News::Stopping);
    }
}
