//! Words of which one must be written.

use std::fmt::Write as _;

use plaincall_call::did_you_mean;

use super::mistake::Mistakes;
use super::table::Entry;

/// A word, what it means for people (empty if the word says it), and what it means here.
pub(super) type Choice<T> = (&'static str, &'static str, T);

/// What the word means that the value is; `what` the words are, in the singular.
pub(super) fn choice<T: Copy>(
    entry: &Entry<'_, '_>,
    what: &str,
    choices: &[Choice<T>],
    mistakes: &mut Mistakes<'_>,
) -> Option<T> {
    let written = entry.string(mistakes)?;
    if let Some((_, _, meant)) = choices.iter().find(|(word, ..)| *word == written) {
        return Some(*meant);
    }
    let near = did_you_mean(written, choices.iter().map(|(word, ..)| *word));
    let mut message = format!("there is no {what} `{written}`; write ");
    for (place, (word, meaning, _)) in choices.iter().enumerate() {
        let joint = match place {
            0 => "",
            place if place + 1 == choices.len() => " or ",
            _ => ", ",
        };
        let _ = write!(message, "{joint}`{word}`");
        if !meaning.is_empty() {
            let _ = write!(message, " ({meaning})");
        }
    }
    message.push_str(&near);
    mistakes.add(entry.span(), message);
    None
}
