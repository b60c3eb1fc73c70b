//! The table `[run]`: what holds for all calls of a run.

use plaincall_call::Unclosed;
use plaincall_plan::Order;

use super::choice::{Choice, choice};
use super::mistake::Mistakes;
use super::table::{Entry, Table};
use super::{size, time};
use crate::policy::{Echoes, Policy, Writes};

const KEYS: [&str; 13] = [
    "concurrent",
    "calls_per_turn",
    "block_order",
    "emoji_order",
    "turn_timeout",
    "gate_timeout",
    "writes",
    "unclosed",
    "result_limit",
    "echoes",
    "heard_limit",
    "dependency_limit",
    "dependency_total",
];

const ORDERS: [Choice<Order>; 3] = [
    ("graph", "by dependencies alone", Order::Graph),
    (
        "sequential",
        "one after another, as they are written",
        Order::Sequential {
            stop_on_error: false,
        },
    ),
    (
        "stop_on_error",
        "the same, and the rest is skipped after a failure",
        Order::Sequential {
            stop_on_error: true,
        },
    ),
];

const WRITES: [Choice<Writes>; 2] = [
    (
        "at_once",
        "as soon as nothing else is in the way",
        Writes::AtOnce,
    ),
    (
        "at_end_of_turn",
        "when the reply is over and whole",
        Writes::AtEndOfTurn,
    ),
];

const UNCLOSED: [Choice<Unclosed>; 2] = [
    (
        "reject",
        "calls without an end marker run only if their tool reads or the text is complete",
        Unclosed::Reject,
    ),
    (
        "run",
        "for models that forget end markers: the next call ends a call, too",
        Unclosed::Run,
    ),
];

const ECHOES: [Choice<Echoes>; 2] = [
    ("held", "only a person's yes lets them run", Echoes::Held),
    (
        "like_others",
        "nobody looks whether a call was copied",
        Echoes::LikeOthers,
    ),
];

/// What the table says; after a mistake, the rest of it.
pub(super) fn policy(table: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Policy {
    let mut policy = Policy::default();
    table.refuse_other_keys("`[run]`", &KEYS, mistakes);
    for entry in table.entries() {
        match entry.key() {
            "concurrent" => set(&mut policy.concurrent, entry.count_from(0, mistakes)),
            "calls_per_turn" => policy.calls_per_turn = entry.count_from(1, mistakes),
            "block_order" => set(&mut policy.block_order, order(&entry, mistakes)),
            "emoji_order" => set(&mut policy.emoji_order, order(&entry, mistakes)),
            "turn_timeout" => policy.turn_timeout = time::time(&entry, mistakes),
            "gate_timeout" => set(&mut policy.gate_timeout, time::time(&entry, mistakes)),
            "writes" => set(
                &mut policy.writes,
                choice(&entry, "time for writes", &WRITES, mistakes),
            ),
            "unclosed" => set(
                &mut policy.unclosed,
                choice(
                    &entry,
                    "treatment of calls without an end marker",
                    &UNCLOSED,
                    mistakes,
                ),
            ),
            "result_limit" => set(&mut policy.result_limit, size::size(&entry, mistakes)),
            "echoes" => set(
                &mut policy.echoes,
                choice(&entry, "treatment of echoes", &ECHOES, mistakes),
            ),
            "heard_limit" => set(&mut policy.heard_limit, size::size(&entry, mistakes)),
            "dependency_limit" => {
                set(&mut policy.dependency_limit, size::size(&entry, mistakes));
            }
            "dependency_total" => {
                set(&mut policy.dependency_total, size::size(&entry, mistakes));
            }
            _ => {}
        }
    }
    policy
}

fn set<T>(place: &mut T, value: Option<T>) {
    if let Some(value) = value {
        *place = value;
    }
}

fn order(entry: &Entry<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<Order> {
    choice(entry, "order", &ORDERS, mistakes)
}
