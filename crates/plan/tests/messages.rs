//! All messages and names of the crate.

use std::sync::Arc;

use plaincall_plan::{CallIndex, Counts, Outcome, PlanError, RejectReason, State, Status};

fn check(found: &dyn ToString, expected: &str) {
    assert_eq!(found.to_string(), expected);
}

fn ids(count: usize) -> Vec<Arc<str>> {
    let ids = (0..count).map(|number| format!("i{number}").into());
    ids.collect()
}

fn cycle(count: usize) -> Arc<[(CallIndex, Arc<str>)]> {
    let calls = (0..).map(CallIndex::new);
    calls.zip(ids(count)).collect()
}

#[test]
fn reasons_of_rejected_calls() {
    let id: Arc<str> = "a".into();
    let first = CallIndex::new(3);
    let unknown = |count| RejectReason::UnknownIds { ids: ids(count) };
    let too_many = |limit| RejectReason::TooManyCalls { limit };
    for (reason, expected) in [
        (
            RejectReason::DuplicateId {
                id: Arc::clone(&id),
                first,
            },
            "the id `a` is already taken by an earlier call of this turn; give this call another id",
        ),
        (
            too_many(0),
            "no more calls may be made; answer with what is known",
        ),
        (
            too_many(1),
            "a turn may have at most 1 call; make this call in the next turn",
        ),
        (
            too_many(2),
            "a turn may have at most 2 calls; make this call in the next turn",
        ),
        (
            RejectReason::SelfDependency { id },
            "the call depends on itself (`a`): remove that dependency",
        ),
        (
            unknown(1),
            "no call has the id `i0`: correct or remove this dependency",
        ),
        (
            unknown(8),
            "no call has the id `i0`, `i1`, `i2`, `i3`, `i4`, `i5`, `i6`, `i7`: correct or remove this dependency",
        ),
        (
            unknown(10),
            "no call has the id `i0`, `i1`, `i2`, `i3`, `i4`, `i5`, `i6`, `i7` and 2 more: correct or remove this dependency",
        ),
        (
            RejectReason::Cycle { calls: cycle(2) },
            "these calls wait for each other: `i0`, `i1`; remove a dependency",
        ),
        (
            RejectReason::Unfinished,
            "the turn ended before the call was complete",
        ),
        (
            RejectReason::TruncatedReply,
            "the reply was truncated before this call could run; make the call again",
        ),
        (RejectReason::Invalid("no such tool".into()), "no such tool"),
        (RejectReason::Denied("not today".into()), "not today"),
    ] {
        check(&reason, expected);
    }
}

#[test]
fn errors_of_invalid_inputs() {
    for (plan_error, expected) in [
        (PlanError::TurnOpen, "a turn is open; end it first"),
        (PlanError::NoTurn, "no turn is open; begin one first"),
        (PlanError::UnknownCall, "there is no such call"),
        (PlanError::UnknownTool, "there is no such tool"),
        (
            PlanError::InvalidState(State::Ended(Status::Ok)),
            "the call has already ended with the status ok",
        ),
        (
            PlanError::InvalidState(State::BackOff),
            "this is not possible while the call is backing off",
        ),
        (
            PlanError::Full,
            "the plan has reached its limit of 2^32 - 1 calls, tools or dependencies",
        ),
    ] {
        check(&plan_error, expected);
    }
}

#[test]
fn names_of_states() {
    for (state, expected) in [
        (State::Writing, "writing"),
        (State::Waiting, "waiting"),
        (State::Ready, "ready"),
        (State::Admitted, "admitted"),
        (State::Running, "running"),
        (State::BackOff, "backing off"),
    ] {
        check(&state, expected);
        assert_eq!(state.status(), None);
    }
    let words = ["ok", "error", "skipped", "rejected", "cancelled", "unknown"];
    for (status, expected) in Status::ALL.into_iter().zip(words) {
        check(&status, expected);
        assert_eq!(Status::from_name(expected), Some(status));
        check(&State::Ended(status), expected);
        assert_eq!(State::Ended(status).status(), Some(status));
    }
    // Padded, as in tables.
    assert_eq!(
        format!("{:>8}|{:<8}|", State::Ready, Status::Ok),
        "   ready|ok      |"
    );
    assert_eq!(format!("{:>3}", CallIndex::new(7)), "  7");
    assert_eq!(CallIndex::new(7).get(), 7);
}

#[test]
fn every_outcome_is_a_status() {
    for (outcome, expected) in [
        (Outcome::Ok, Status::Ok),
        (Outcome::Error, Status::Error),
        (Outcome::Cancelled, Status::Cancelled),
        (Outcome::Unknown, Status::Unknown),
    ] {
        assert_eq!(Status::from(outcome), expected);
    }
}

#[test]
fn each_call_counts_once() {
    let mut counts = Counts::default();
    let fields = [
        &mut counts.writing,
        &mut counts.waiting,
        &mut counts.ready,
        &mut counts.admitted,
        &mut counts.running,
        &mut counts.back_off,
        &mut counts.ended.ok,
        &mut counts.ended.error,
        &mut counts.ended.skipped,
        &mut counts.ended.rejected,
        &mut counts.ended.cancelled,
        &mut counts.ended.unknown,
    ];
    for (field, exponent) in fields.into_iter().zip(0..) {
        *field = 1 << exponent;
    }
    assert_eq!((counts.unended(), counts.ended.total()), (63, 4032));
    counts.ended.add(Status::Skipped);
    assert_eq!(counts.ended.skipped, 257);
}
