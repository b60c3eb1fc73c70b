//! The reply on its way from the parser to the display.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plaincall::syntax::{Event, EventKind};
use tokio::sync::mpsc::Sender;

use crate::run::news::{Fragment, News};

/// Parts of the reply that wait for the display.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    waiting: Mutex<Vec<Fragment>>,
}

impl Fragments {
    /// Takes an event of the parser.
    pub(crate) fn add(&self, event: &Event<'_>) {
        let fragment = match &event.kind {
            EventKind::Text(text) => Fragment::Text(text.to_string()),
            EventKind::Reasoning(text) => Fragment::Reasoning(text.to_string()),
            EventKind::CallStart(header) => Fragment::Call {
                name: header.name().to_owned(),
                id: header.id().map(str::to_owned),
                dependencies: header.dependencies().map(str::to_owned).collect(),
                line: header.raw_args().unwrap_or_default().to_owned(),
            },
            EventKind::CallEnd(_) => Fragment::CallOver,
            _ => return,
        };
        self.lock().push(fragment);
    }

    /// Hands on what waits. It waits itself if the display is behind, and so does the reading of the reply.
    pub(crate) async fn pass_on(&self, news: &Sender<News>) {
        let waiting = mem::take(&mut *self.lock());
        if !waiting.is_empty() {
            // A display that has gone is no reason to stop.
            let _ = news.send(News::Reply(waiting)).await;
        }
    }

    fn lock(&self) -> MutexGuard<'_, Vec<Fragment>> {
        self.waiting.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
