//! The reply on its way from the parser to the display.

use std::mem;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plaincall::call::ReplyItem;
use tokio::sync::mpsc::Sender;

use crate::run::news::{Fragment, News};

/// Parts of the reply that wait for the display.
#[derive(Debug, Default)]
pub(crate) struct Fragments {
    waiting: Mutex<Vec<Fragment>>,
}

impl Fragments {
    /// Takes what was read.
    pub(crate) fn add(&self, item: &ReplyItem<'_>) {
        let fragment = match item {
            ReplyItem::Text(text) => Fragment::Text(text.to_string()),
            ReplyItem::Reasoning(text) => Fragment::Reasoning(text.to_string()),
            ReplyItem::CallStart(started) => Fragment::Call {
                name: started.name.clone(),
                id: (!started.is_id_automatic).then(|| started.id.clone()),
                dependencies: started.dependencies.clone(),
                line: started.raw_args.clone().unwrap_or_default(),
            },
            ReplyItem::Call { .. } => Fragment::CallOver,
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
