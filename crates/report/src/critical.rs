//! The critical path of a run.

use std::time::Duration;

use crate::call_table::CallTable;

/// If one call starts within this time after the end of another, the end may have caused the start. Slots are passed on
/// immediately; the delay is process scheduling.
const MAX_GAP: Duration = Duration::from_millis(25);

/// Returns the critical path as indexes of calls, in order of time: the chain of calls, each of which could start only
/// after the previous one had ended, that leads to the call that ended last.
///
/// The cause of a start is the last of: the end of the call's own text, the end of a dependency, or the end of a call
/// that freed a slot just before.
pub fn critical_path(table: &CallTable) -> Vec<usize> {
    let calls = table.calls();
    let mut path = Vec::new();
    let mut is_visited = vec![false; calls.len()];
    // Started calls with their end times.
    let ran = || {
        let calls = calls.iter().enumerate();
        calls.filter_map(|(index, call)| {
            let times = call.result()?.times;
            times.started.map(|_| (index, times.ended))
        })
    };
    let mut next = ran().max_by_key(|(_, ended)| *ended);
    while let Some((index, _)) = next {
        // Inconsistent times must not cause an endless loop.
        match is_visited.get_mut(index) {
            Some(is_visited @ false) => *is_visited = true,
            _ => break,
        }
        path.push(index);
        let Some(call) = calls.get(index) else { break };
        let Some(started) = call.times.started.filter(|_| call.result().is_some()) else {
            break;
        };
        let complete = call.times.complete.unwrap_or(call.times.appeared);
        let dependency = call
            .dependencies
            .iter()
            .filter_map(|id| table.find_dependency(id))
            .filter_map(|(index, call)| Some((index, call.result()?.times.ended)))
            .max_by_key(|(_, ended)| *ended);
        let cause = dependency.filter(|(_, ended)| *ended > complete);
        let since = cause.map_or(complete, |(_, ended)| ended);
        next = if started.saturating_sub(since) <= MAX_GAP {
            cause
        } else {
            let freed_slot = ran()
                .filter(|(other, _)| *other != index)
                // A call that another submitted holds no slot that its parent waits for.
                .filter(|(other, _)| calls.get(*other).is_some_and(|it| it.depth <= call.depth))
                .filter(|(_, ended)| *ended <= started && started.saturating_sub(*ended) <= MAX_GAP)
                .max_by_key(|(_, ended)| *ended);
            freed_slot.or(cause)
        };
    }
    path.reverse();
    path
}
