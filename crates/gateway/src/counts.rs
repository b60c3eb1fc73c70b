//! What happened in a reply, for statistics.

use std::ops::AddAssign;

use plaincall_call::ChangedTool;

/// What happened in a reply, in numbers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct Counts {
    /// Calls that were given to the client, complete and right.
    pub calls: u64,
    /// Calls that were wrong: left unreadable, or asked for again.
    pub wrong_calls: u64,
    /// Calls that broke off with the reply.
    pub cut_calls: u64,
    /// Calls that were left out, since none was allowed.
    pub unwanted_calls: u64,
    /// Markers that stood in the text where they mean nothing, and were left out.
    pub stray_markers: u64,
    /// Replies that ended before a call that depends on another of theirs.
    pub dependent_calls: u64,
    /// Replies that ended before a second call, since one was allowed.
    pub surplus_calls: u64,
    /// Replies without a call where one had to be.
    pub missing_calls: u64,
    /// Hidden rounds of repair.
    pub repair_rounds: u64,
    /// Texts with results that the model has invented, which were left out.
    pub invented_results: u64,
    /// Offered tools that got a looser schema.
    pub loosened_tools: u64,
    /// Offered tools that were dropped.
    pub dropped_tools: u64,
}

impl Counts {
    /// What happened to definitions of tools before the model was asked.
    pub(crate) fn of_changed(changed: &[ChangedTool]) -> Self {
        let mut counts = Self::default();
        for tool in changed {
            let count = if tool.is_dropped {
                &mut counts.dropped_tools
            } else {
                &mut counts.loosened_tools
            };
            *count += 1;
        }
        counts
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Self) {
        self.calls += other.calls;
        self.wrong_calls += other.wrong_calls;
        self.cut_calls += other.cut_calls;
        self.unwanted_calls += other.unwanted_calls;
        self.stray_markers += other.stray_markers;
        self.dependent_calls += other.dependent_calls;
        self.surplus_calls += other.surplus_calls;
        self.missing_calls += other.missing_calls;
        self.repair_rounds += other.repair_rounds;
        self.invented_results += other.invented_results;
        self.loosened_tools += other.loosened_tools;
        self.dropped_tools += other.dropped_tools;
    }
}
