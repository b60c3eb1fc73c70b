//! The budget of a question, shared by an agent and its subagents.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tokio::time::Instant;

use crate::answer::{AgentErrorKind, Progress};
use crate::limits::AgentLimits;

/// The deadline if adding the time limit overflows.
const FAR_AWAY: Duration = Duration::from_hours(24 * 365);

/// The limits of a question and what was used of them. What a subagent uses also counts for its parents.
#[derive(Debug)]
pub(crate) struct Budget {
    limits: AgentLimits,
    deadline: Option<Instant>,
    used: Mutex<Progress>,
    parent: Option<Arc<Self>>,
}

impl Budget {
    /// Creates a budget without a time limit.
    pub(crate) fn new(limits: AgentLimits) -> Arc<Self> {
        Arc::new(Self {
            limits,
            deadline: None,
            used: Mutex::default(),
            parent: None,
        })
    }

    /// Creates a budget whose time begins now.
    pub(crate) fn timed(limits: AgentLimits, parent: Option<Arc<Self>>) -> Arc<Self> {
        let now = Instant::now();
        let own = now.checked_add(limits.time).unwrap_or(now + FAR_AWAY);
        let deadline = parent.as_ref().and_then(|parent| parent.deadline);
        Arc::new(Self {
            limits,
            deadline: Some(deadline.map_or(own, |parent| parent.min(own))),
            used: Mutex::default(),
            parent,
        })
    }

    pub(crate) fn deadline(&self) -> Instant {
        self.deadline.unwrap_or_else(|| Instant::now() + FAR_AWAY)
    }

    /// Returns what was used, including by subagents.
    pub(crate) fn used(&self) -> Progress {
        *self.lock()
    }

    /// Counts what was used, here and in all parents.
    pub(crate) fn count(&self, add: impl Fn(&mut Progress)) {
        for budget in self.chain() {
            add(&mut budget.lock());
        }
    }

    /// Counts a reply that is about to begin, unless a limit is reached, here or in a parent.
    pub(crate) fn begin_turn(&self) -> Result<(), AgentErrorKind> {
        for (place, budget) in self.chain().enumerate() {
            if let Err(error) = budget.begin_own_turn() {
                for earlier in self.chain().take(place) {
                    let mut used = earlier.lock();
                    used.turns = used.turns.saturating_sub(1);
                }
                return Err(error);
            }
        }
        Ok(())
    }

    fn begin_own_turn(&self) -> Result<(), AgentErrorKind> {
        let mut used = self.lock();
        if used.turns >= self.limits.turns {
            return Err(AgentErrorKind::Turns);
        }
        if used.calls.total() > self.limits.calls {
            return Err(AgentErrorKind::Calls);
        }
        let is_full = |most| used.usage.total() >= most;
        if self.limits.tokens.is_some_and(is_full) {
            return Err(AgentErrorKind::Tokens);
        }
        used.turns += 1;
        Ok(())
    }

    /// Takes back a reply that did not begin.
    pub(crate) fn abandon_turn(&self) {
        self.count(|used| used.turns = used.turns.saturating_sub(1));
    }

    pub(crate) fn calls_left(&self) -> u32 {
        let left = |budget: &Self| {
            let used = budget.used().calls.total();
            budget.limits.calls.saturating_sub(used)
        };
        self.chain().map(left).min().unwrap_or_default()
    }

    pub(crate) fn tokens_left(&self) -> Option<u64> {
        let left = |budget: &Self| {
            let used = budget.used().usage.total();
            Some(budget.limits.tokens?.saturating_sub(used))
        };
        self.chain().filter_map(left).min()
    }

    /// Returns this budget and its parents.
    fn chain(&self) -> impl Iterator<Item = &Self> {
        std::iter::successors(Some(self), |budget| budget.parent.as_deref())
    }

    fn lock(&self) -> MutexGuard<'_, Progress> {
        self.used.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
