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
    let results = || {
        calls
            .iter()
            .enumerate()
            .filter_map(|(index, call)| Some((index, call.result()?)))
    };
    let ran = || results().filter(|(_, result)| result.times.started.is_some());
    let mut next = ran()
        .max_by_key(|(_, result)| result.times.ended)
        .map(|(index, _)| index);
    while let Some(index) = next.take() {
        // Times that contradict each other must not make a circle.
        match is_critical.get_mut(index) {
            Some(seen @ false) => *seen = true,
            _ => break,
        }
        let Some(call) = calls.get(index) else { break };
        let Some(times) = call.result().map(|result| result.times) else {
            break;
        };
        let Some(started) = times.started else { break };
        let complete = times.complete.unwrap_or(times.appeared);
        let dependency = call
            .dependencies
            .iter()
            .filter_map(|id| table.meant_by(id))
            .filter_map(|(index, call)| Some((index, call.result()?.times.ended)))
            .max_by_key(|(_, ended)| *ended);
        let (cause, since) = match dependency {
            Some((index, ended)) if ended > complete => (Some(index), ended),
            _ => (None, complete),
        };
        next = if started.saturating_sub(since) <= AT_ONCE {
            cause
        } else {
            let made_room = ran()
                .filter(|(other, _)| *other != index)
                .map(|(other, result)| (other, result.times.ended))
                .filter(|(_, ended)| *ended <= started && started.saturating_sub(*ended) <= AT_ONCE)
                .max_by_key(|(_, ended)| *ended);
            made_room.map(|(other, _)| other).or(cause)
        };
    }
    is_critical
}

#[cfg(test)]
mod tests {
    use crate::terminal::call_table::tests::table;

    fn check(text: &str, expected: &str) {
        let table = table(text, 0);
        let is_critical = super::critical(&table);
        let calls = table.calls().iter().zip(is_critical);
        let found: Vec<&str> = calls
            .filter(|(_, is)| *is)
            .map(|(call, _)| &*call.id)
            .collect();
        assert_eq!(found.join(" "), expected, "{text}");
    }

    #[test]
    fn paths() {
        check("", "");
        // Nothing ran.
        check("a | 0 10 - 20", "");
        // The last dependency counts, and of calls side by side the longest.
        check(
            "a | 0 0 0 100\nb | 0 0 0 300\nc: a b | 0 0 300 400\nd | 0 0 0 390",
            "b c",
        );
        // A call that could start when its text was there has no cause.
        check("a | 0 0 0 100\nb: a | 0 200 200 300", "b");
        // A call that waited for a slot was held up by the one that made room.
        check("a | 0 0 0 200\nb | 0 0 0 100\nc | 0 0 200 300", "a c");
        check(
            "a | 0 0 0 100\nb: a | 0 0 200 300\nc | 0 0 100 200",
            "a b c",
        );
        // It waited for somebody's answer, behind its dependency.
        check("a | 0 0 0 100\nb: a | 0 0 900 950", "a b");
        // Times that contradict each other end the search.
        check("a: b | 0 0 50 100\nb: a | 0 0 50 100", "a b");
    }
}
