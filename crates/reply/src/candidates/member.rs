//! The members of a call in JSON.

use plaincall_syntax::{CALL_ARGUMENT_KEYS, CALL_NAME_KEYS};

/// A member of a call in JSON.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Member {
    /// The name of the tool.
    Name,
    Arguments,
    /// A list of calls.
    Calls,
    /// A member that is ignored.
    Other,
}

impl Member {
    /// Returns the member with this key.
    pub(crate) fn of(key: &str) -> Option<Self> {
        let mut members = call_members();
        let (member, _) = members.find(|(_, known)| *known == key)?;
        Some(member)
    }
}

/// Returns the members of a call in JSON, with their keys. `input` is too common a word: it would make most texts with JSON look
/// like calls.
fn call_members() -> impl Iterator<Item = (Member, &'static str)> {
    let names = CALL_NAME_KEYS.iter().map(|key| (Member::Name, *key));
    let arguments = CALL_ARGUMENT_KEYS.iter().filter(|key| **key != "input");
    let arguments = arguments.map(|key| (Member::Arguments, *key));
    let others = ["id", "type", "tool_call_id"].map(|key| (Member::Other, key));
    let list = [(Member::Calls, "tool_calls")];
    names.chain(arguments).chain(others).chain(list)
}
