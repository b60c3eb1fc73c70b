//! Which calls decided how long the run took.

use std::time::Duration;

use crate::terminal::call_table::CallTable;

/// How far apart the end of one call and the start of another may be for the one to be the cause of the other. A slot
/// is handed on at once; what lies between is the scheduling of processes.
const AT_ONCE: Duration = Duration::from_millis(25);

/// For each call whether it lies on the critical path: the chain of calls, each of which could only start when the one
/// before it had ended, that leads to the call that ended last.
///
/// What a call waited for last is found from the times: its own text, a dependency, or a call that ended just when it
/// started and so made room for it.
pub(crate) fn critical(table: &CallTable) -> Vec<bool> {
    let calls = table.calls();
    let mut is_critical = vec![false; calls.len()];
    // The calls that ran, and when they ended.
    let ran = || {
        let calls = calls.iter().enumerate();
        calls.filter_map(|(index, call)| {
            let times = call.result()?.times;
            times.started.map(|_| (index, times.ended))
        })
    };
    let mut next = ran().max_by_key(|(_, ended)| *ended);
    while let Some((index, _)) = next {
        // Times that contradict each other must not make a circle.
        match is_critical.get_mut(index) {
            Some(seen @ false) => *seen = true,
            _ => break,
        }
        let Some(call) = calls.get(index) else { break };
        let Some(started) = call.times.started.filter(|_| call.result().is_some()) else {
            break;
        };
        let complete = call.times.complete.unwrap_or(call.times.appeared);
        let dependency = call
            .dependencies
            .iter()
            .filter_map(|id| table.meant_by(id))
            .filter_map(|(index, call)| Some((index, call.result()?.times.ended)))
            .max_by_key(|(_, ended)| *ended);
        let cause = dependency.filter(|(_, ended)| *ended > complete);
        let since = cause.map_or(complete, |(_, ended)| ended);
        next = if started.saturating_sub(since) <= AT_ONCE {
            cause
        } else {
            let made_room = ran()
                .filter(|(other, _)| *other != index)
                .filter(|(_, ended)| *ended <= started && started.saturating_sub(*ended) <= AT_ONCE)
                .max_by_key(|(_, ended)| *ended);
            made_room.or(cause)
        };
    }
    is_critical
}
