//! The outcomes of random conversations, to show that they cover enough.

use plaincall_plan::StatusCounts;

/// Counts of what came up.
#[derive(Default)]
pub(crate) struct Tally {
    pub(crate) ended: StatusCounts,
    /// Rejected calls, by reason.
    pub(crate) reasons: [u32; 9],
    pub(crate) refused: u32,
    /// Admitted calls without a slot, counted at every step.
    pub(crate) held_by_slots: u32,
    /// Calls that wait for the end of their turn, counted at every step.
    pub(crate) held_by_deferral: u32,
    /// Deferred calls of truncated replies that a failure skipped.
    pub(crate) deferred_and_skipped: u32,
    /// Deferred calls that became ready.
    pub(crate) released: u32,
    /// Failed dependencies of calls that became ready all the same.
    pub(crate) tolerated: u32,
    pub(crate) exclusive_starts: u32,
    pub(crate) retries: u32,
    /// Calls that ended while they backed off, because they were abandoned.
    pub(crate) abandoned: u32,
    pub(crate) cancelled_in_back_off: u32,
    pub(crate) timed_out: u32,
    /// Answers of the gate after the end of the call's turn.
    pub(crate) late_answers: u32,
}

impl Tally {
    /// Returns each count with its name and its minimum for 100,000 conversations. Below that, the comparison would
    /// prove little.
    pub(crate) fn figures(&self) -> [(&'static str, u32, u64); 27] {
        let ended = &self.ended;
        let [
            duplicates,
            over_the_limit,
            own,
            unknown_ids,
            cycles,
            unfinished,
            wrong,
            denied,
            cut,
        ] = self.reasons;
        [
            ("ok", ended.ok, 250_000),
            ("error", ended.error, 18_000),
            ("skipped", ended.skipped, 90_000),
            ("rejected", ended.rejected, 140_000),
            ("cancelled", ended.cancelled, 50_000),
            ("unknown", ended.unknown, 5_000),
            ("duplicates", duplicates, 24_000),
            ("over the limit", over_the_limit, 25_000),
            ("self", own, 19_000),
            ("unknown ids", unknown_ids, 22_000),
            ("cycles", cycles, 8_500),
            ("unfinished", unfinished, 6_000),
            ("wrong", wrong, 14_000),
            ("denied", denied, 5_500),
            ("cut with the reply", cut, 11_000),
            ("refused inputs", self.refused, 350_000),
            ("waits for slots", self.held_by_slots, 150_000),
            (
                "waits for the end of the turn",
                self.held_by_deferral,
                500_000,
            ),
            (
                "skipped in a truncated reply",
                self.deferred_and_skipped,
                1_000,
            ),
            ("released at the end of the turn", self.released, 40_000),
            ("tolerated failures", self.tolerated, 2_400),
            ("exclusive starts", self.exclusive_starts, 75_000),
            ("retries", self.retries, 85_000),
            ("abandoned", self.abandoned, 2_000),
            (
                "cancelled while backing off",
                self.cancelled_in_back_off,
                700,
            ),
            ("out of time with the turn", self.timed_out, 1_800),
            (
                "answers after the end of the turn",
                self.late_answers,
                170_000,
            ),
        ]
    }

    pub(crate) fn add_ended(&mut self, counts: StatusCounts) {
        self.ended.ok += counts.ok;
        self.ended.error += counts.error;
        self.ended.skipped += counts.skipped;
        self.ended.rejected += counts.rejected;
        self.ended.cancelled += counts.cancelled;
        self.ended.unknown += counts.unknown;
    }
}
