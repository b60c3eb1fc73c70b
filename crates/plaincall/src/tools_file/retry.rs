//! How a tool is tried again: a number of starts, or a table that also says how long to wait.
//!
//! ```toml
//! retry = 3
//! retry = { attempts = 3, first_wait = "500ms", longest_wait = "30s" }
//! ```

use plaincall_call::Effect;
use toml::de::DeValue;

use super::mistake::Mistakes;
use super::table::{Entry, Table};
use super::time;
use crate::tool_policy::Retry;
use crate::toolbox::NO_RETRY_OF_WRITES;

const KEYS: [&str; 3] = ["attempts", "first_wait", "longest_wait"];

/// `effect` is that of the tool, if it is known.
pub(super) fn retry(
    entry: &Entry<'_, '_>,
    effect: Option<Effect>,
    mistakes: &mut Mistakes<'_>,
) -> Option<Retry> {
    let before = mistakes.count();
    let retry = match entry.value() {
        DeValue::Integer(_) => entry.count_from(2, mistakes).map(Retry::attempts),
        DeValue::Table(table) => {
            let table = Table::new(entry.key(), entry.key_span(), table);
            of_table(&table, mistakes)
        }
        _ => {
            entry.refuse(
                "a number of starts, such as 3, or a table, such as { attempts = 3, first_wait = \"500ms\", longest_wait = \"30s\" }",
                mistakes,
            );
            None
        }
    };
    if effect == Some(Effect::Write) {
        mistakes.add(entry.key_span(), NO_RETRY_OF_WRITES);
    }
    retry.filter(|_| mistakes.count() == before)
}

fn of_table(table: &Table<'_, '_>, mistakes: &mut Mistakes<'_>) -> Option<Retry> {
    table.refuse_other_keys("`retry`", &KEYS, mistakes);
    let Some(attempts) = table.get("attempts") else {
        let message =
            "`attempts` is missing: how often the tool is started at most, the first start counted";
        mistakes.add(table.name_span(), message);
        return None;
    };
    let mut retry = Retry::attempts(attempts.count_from(2, mistakes)?);
    let first = table.get("first_wait");
    let longest = table.get("longest_wait");
    if let Some(entry) = &first {
        retry.first_wait = time::time(entry, mistakes)?;
    }
    match &longest {
        Some(entry) => retry.longest_wait = time::time(entry, mistakes)?,
        None => retry.longest_wait = retry.longest_wait.max(retry.first_wait),
    }
    if let Some(entry) = longest
        && retry.longest_wait < retry.first_wait
    {
        let message = "`longest_wait` is shorter than `first_wait`; no wait would be as long as the first one should be";
        mistakes.add(entry.span(), message);
    }
    Some(retry)
}
