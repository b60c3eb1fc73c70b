//! How what happens to one call reaches those that depend on it.
//!
//! News go through a queue instead of recursion, so a chain may be of any length. Each edge hears at most
//! twice of its target: that it is grounded, and that it has ended.
//!
//! A member of a cycle, or a call with an unknown id, is rejected at the end of the turn. So that its status does not
//! depend on chance, a failed dependency skips at once only calls that are certain to be in order (grounded).

use crate::NONE;
use crate::action::{Action, Link};
use crate::plan::Plan;
use crate::state::{CallIndex, State};

#[derive(Clone, Copy, Debug)]
pub(crate) enum News {
    /// The call can no longer be part of a cycle or lack an id.
    Grounded(u32),
    /// The call has ended.
    Ended {
        call: u32,
        /// Those that wait for it go on.
        well: bool,
        /// It was not grounded before.
        grounds: bool,
    },
}

impl Plan {
    /// Tells all news, and what follows from them.
    pub(crate) fn settle(&mut self) {
        while let Some(news) = self.news.pop_front() {
            let (News::Grounded(call) | News::Ended { call, .. }) = news;
            if let News::Ended {
                call, well: false, ..
            } = news
            {
                self.stop_the_rest(call);
            }
            let dependents = self.calls.get(call as usize).map(|c| c.dependents.first);
            let mut cursor = dependents.unwrap_or(NONE);
            while let Some(edge) = self.edges.step(&mut cursor) {
                self.tell(edge.dependent, news);
            }
        }
        self.release_in_order();
    }

    fn tell(&mut self, dependent: u32, news: News) {
        let Some(entry) = self.calls.get_mut(dependent as usize) else {
            return;
        };
        if matches!(entry.state, State::Ended(_)) {
            return;
        }
        match news {
            News::Grounded(_) => entry.ungrounded -= 1,
            News::Ended {
                call,
                well,
                grounds,
            } => {
                entry.ungrounded -= u32::from(grounds);
                entry.pending -= 1;
                if !well && entry.failed == NONE {
                    entry.failed = call;
                }
            }
        }
        self.reconsider(dependent);
    }

    /// Moves a waiting call on, if what it waits for allows it.
    pub(crate) fn reconsider(&mut self, call: u32) {
        let Some(entry) = self.calls.get_mut(call as usize) else {
            return;
        };
        if entry.state != State::Waiting || entry.ungrounded > 0 {
            return;
        }
        if !entry.grounded {
            entry.grounded = true;
            self.news.push_back(News::Grounded(call));
        }
        if entry.failed != NONE {
            let failed = entry.failed;
            self.skip(call, Link::Dependency, failed);
        } else if entry.pending == 0 {
            self.set_state(call, State::Ready);
            self.actions.push_back(Action::Ready(CallIndex(call)));
        }
    }
}
