//! The content of the model's requests.

use plaincall_agent::Conversation;
use plaincall_agent::model::Message;
use plaincall_agent::plaincall::CallResult;

use super::world::{Asked, World};
use crate::scenarios::reported::{check_turns, replies, reported};

/// Every request contains what was written and reported before it.
pub(super) fn check_messages(
    world: &World,
    talk: &Conversation,
    results: &[CallResult],
    is_whole: bool,
) {
    let asked = world.asked();
    check_replies(&asked);
    for request in &asked {
        check_reported(&request.messages, results);
    }
    let reported = check_reported(&talk.messages(), results);
    if is_whole {
        assert_eq!(reported, results.len(), "a call is not reported");
    }
}

/// Asserts that each request of a conversation contains the replies before it.
pub(super) fn check_replies(asked: &[Asked]) {
    let first = asked.first().map(|first| replies(&first.messages));
    let first = first.unwrap_or_default().into_iter();
    let mut expected: Vec<String> = first.map(str::to_owned).collect();
    for (place, request) in asked.iter().enumerate() {
        check_turns(&request.messages);
        let Some(before) = place.checked_sub(1).map(|before| &asked[before]) else {
            continue;
        };
        let read = replies(&request.messages);
        // The text of a truncated reply is the part that was read.
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
}

/// Asserts that each call is reported once, in order. Returns their number.
pub(super) fn check_reported(messages: &[Message], results: &[CallResult]) -> usize {
    let reported = reported(messages);
    assert!(reported.len() <= results.len(), "{reported:#?}");
    for (reported, result) in reported.iter().zip(results) {
        let reported = (plain(&reported.name), &*reported.id, &*reported.status);
        let result = (plain(&result.name), &*result.id, result.status.name());
        assert_eq!(reported, result, "{:#?}", &messages[1..]);
    }
    reported.len()
}

/// Returns a name without the parts that are reported differently.
fn plain(name: &str) -> String {
    name.chars().filter(char::is_ascii_alphanumeric).collect()
}
