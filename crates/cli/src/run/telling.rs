//! What happens in a run on its way to whoever shows it.

use std::mem;
use std::sync::Arc;
use std::time::Duration;

use plaincall::{RunEvent, RunEvents};
use tokio::sync::mpsc::{Sender, UnboundedReceiver, UnboundedSender};
use tokio::sync::oneshot;
use tokio::time::{MissedTickBehavior, interval};

use crate::run::desk::Desk;
use crate::run::fragments::Fragments;
use crate::run::news::News;

/// How often the display is drawn anew.
const FRAME: Duration = Duration::from_millis(40);

/// Tells the display without waiting for it. One that has gone is no reason to stop.
pub(crate) fn post(news: &Sender<News>, what: News) {
    use tokio::sync::mpsc::error::TrySendError::{Closed, Full};
    match news.try_send(what) {
        Ok(()) | Err(Closed(_)) => {}
        Err(Full(what)) => {
            let news = news.clone();
            tokio::spawn(async move {
                let _ = news.send(what).await;
            });
        }
    }
}

/// Someone who wants to know when all that has happened was told.
pub(crate) type Wish = oneshot::Sender<()>;

/// Waits until all that has happened so far was told.
pub(crate) async fn all_told(wishes: &UnboundedSender<Wish>) {
    let (tell, told) = oneshot::channel();
    // One at a time wishes, so nothing piles up. If nobody hears it, there is nothing to wait for.
    if wishes.send(tell).is_ok() {
        let _ = told.await;
    }
}

/// What happens on its way from the run to the display.
pub(crate) struct Forwarding {
    /// What happened before the run was cut off.
    pub(crate) past: Vec<RunEvent>,
    pub(crate) events: RunEvents,
    pub(crate) fragments: Arc<Fragments>,
    pub(crate) wishes: UnboundedReceiver<Wish>,
    pub(crate) news: Sender<News>,
    pub(crate) desk: Arc<Desk>,
}

impl Forwarding {
    /// Tells all up to the end of the turn, or what there is when nobody has wishes any more. Returns how many events
    /// were lost because nobody took them in time.
    pub(crate) async fn go(mut self) -> u64 {
        let is_again = !self.past.is_empty();
        self.fragments.pass_on(&self.news).await;
        for event in mem::take(&mut self.past) {
            let _ = self.news.send(News::Event(event)).await;
        }
        self.desk.open();
        let mut missed = 0;
        loop {
            let event = tokio::select! {
                biased;
                event = self.events.next() => event,
                wish = self.wishes.recv() => {
                    let Some(wish) = wish else {
                        // The results are there, and the end was not told.
                        return missed.max(1);
                    };
                    let _ = wish.send(());
                    continue;
                }
            };
            match event {
                None => return missed,
                // How the run began stands in its past already.
                Some(RunEvent::Run(_)) if is_again => {}
                Some(RunEvent::Missed(lost)) => missed += lost.count,
                Some(event) => {
                    let is_end = matches!(event, RunEvent::End(_));
                    let _ = self.news.send(News::Event(event)).await;
                    if is_end {
                        return missed;
                    }
                }
            }
        }
    }
}

/// Lets the display draw what has changed, again and again.
pub(crate) async fn tick(fragments: Arc<Fragments>, news: Sender<News>) {
    let mut frames = interval(FRAME);
    frames.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        frames.tick().await;
        fragments.pass_on(&news).await;
        // A display that is behind has no use for one more frame.
        let _ = news.try_send(News::Tick);
    }
}
