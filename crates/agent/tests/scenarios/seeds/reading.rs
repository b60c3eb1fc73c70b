//! What the model must have read.

use plaincall_agent::Conversation;
use plaincall_agent::model::Message;
use plaincall_agent::plaincall::CallResult;

use super::world::World;
use crate::scenarios::told::{check_turns, replies, told};

/// What the model has read: every request holds what was written and told before it.
pub(super) fn check_messages(
    world: &World,
    talk: &Conversation,
    results: &[CallResult],
    is_whole: bool,
) {
    let asked = world.asked();
    let mut expected: Vec<String> = Vec::new();
    for (place, request) in asked.iter().enumerate() {
        check_turns(&request.messages);
        check_told(&request.messages, results);
        let Some(before) = place.checked_sub(1).map(|before| &asked[before]) else {
            continue;
        };
        let read = replies(&request.messages);
        // What came of a reply that was cut off is whatever was read of it.
        let last = read.get(expected.len()).copied().unwrap_or_default();
        assert!(
            before.text.starts_with(last),
            "{last:?} of {:?}",
            before.text
        );
        if !before.is_interrupted && !before.text.trim().is_empty() {
            assert_eq!(last, before.text, "the model's own words are lost");
        }
        expected.extend((!last.trim().is_empty()).then(|| last.to_owned()));
        assert_eq!(read, expected, "the model's own words have changed");
    }
    let told = check_told(&talk.messages(), results);
    if is_whole {
        assert_eq!(told, results.len(), "a call is not told");
    }
}

/// Asserts that each call is told once, in order; says how many are.
pub(super) fn check_told(messages: &[Message], results: &[CallResult]) -> usize {
    let told = told(messages);
    assert!(told.len() <= results.len(), "{told:#?}");
    for (told, result) in told.iter().zip(results) {
        let told = (plain(&told.name), &*told.id, &*told.status);
        let result = (plain(&result.name), &*result.id, result.status.as_str());
        assert_eq!(told, result, "{:#?}", &messages[1..]);
    }
    told.len()
}

/// A name without what may be written otherwise where it is told.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}
