//! The recovery answers of `--again ID`, `--done ID` and `--not-done ID`.

use std::collections::BTreeMap;

use crate::commands::run::RunOptions;
use crate::history::{History, Interrupted};
use crate::status::Failure;
use crate::terminal::approval::RecoveryAnswer;

/// Returns the recovery answers by call number.
pub(super) fn answers(
    options: &RunOptions,
    history: &History,
) -> Result<BTreeMap<u32, RecoveryAnswer>, Failure> {
    let interrupted = history.interrupted();
    let all = [
        (RecoveryAnswer::Again, &options.again),
        (RecoveryAnswer::Done, &options.done),
        (RecoveryAnswer::NotDone, &options.not_done),
    ];
    let mut answers = BTreeMap::new();
    for (answer, ids) in all {
        let option = option(answer);
        for id in ids {
            let Some((&call, _)) = interrupted.iter().find(|(_, call)| call.id == *id) else {
                return Err(Failure::Usage(no_such_call(option, id, &interrupted)));
            };
            if answer == RecoveryAnswer::Again && history.was_cancelled() {
                return Err(Failure::Usage(format!(
                    "`--again {id}`: the run was cancelled, so no call runs again; use `--done {id}` or `--not-done {id}`"
                )));
            }
            if let Some(other) = answers.insert(call, answer)
                && other != answer
            {
                return Err(Failure::Usage(format!(
                    "`{} {id}` and `{option} {id}` contradict each other; pass only one",
                    self::option(other)
                )));
            }
        }
    }
    Ok(answers)
}

fn option(answer: RecoveryAnswer) -> &'static str {
    match answer {
        RecoveryAnswer::Again => "--again",
        RecoveryAnswer::Done => "--done",
        RecoveryAnswer::NotDone => "--not-done",
    }
}

fn no_such_call(option: &str, id: &str, interrupted: &BTreeMap<u32, Interrupted>) -> String {
    let calls: Vec<String> = interrupted.values().map(name).collect();
    if calls.is_empty() {
        return format!("`{option} {id}`: no call of this run needs recovery");
    }
    format!(
        "`{option} {id}`: this call does not need recovery; these calls do: {}",
        calls.join(", ")
    )
}

/// Formats a call with its tool.
pub(super) fn name(call: &Interrupted) -> String {
    format!("`{}` ({})", call.id, call.name)
}
