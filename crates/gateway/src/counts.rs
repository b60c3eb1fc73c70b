//! What happened in a reply, for statistics.

use std::ops::AddAssign;

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
    }
}
