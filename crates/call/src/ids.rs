//! The ids of calls, over a conversation.

use std::collections::{BTreeSet, HashSet};

use plaincall_syntax::Syntax;

/// Gives ids to calls that have none and finds ids that are used twice (`spec/block.md` 7.10).
///
/// One value serves a whole conversation: numbers go on over its turns, and a number that a model wrote in an id of
/// its own is never given.
///
/// ```
/// use plaincall_call::{Ids, Syntax};
///
/// let mut ids = Ids::default();
/// assert_eq!(ids.assign(Syntax::Block, None).id, "gadget_1");
/// assert!(!ids.assign(Syntax::Block, Some("gadget_2")).is_duplicate);
/// assert_eq!(ids.assign(Syntax::Block, None).id, "gadget_3");
/// assert!(ids.assign(Syntax::Block, Some("gadget_1")).is_duplicate);
/// ids.begin_turn();
/// assert!(!ids.assign(Syntax::Block, Some("gadget_1")).is_duplicate);
/// ```
#[derive(Clone, Debug, Default)]
pub struct Ids {
    block: Numbers,
    emoji: Numbers,
    /// The ids of the present turn.
    turn: HashSet<Box<str>>,
}

/// The numbers of one kind of automatic id.
#[derive(Clone, Debug, Default)]
struct Numbers {
    given: u64,
    /// Numbers above `given` that a model has used.
    taken: BTreeSet<u64>,
}

/// The id of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Assigned {
    /// The id, as written or given.
    pub id: String,
    /// Whether it was given, not written.
    pub is_automatic: bool,
    /// Whether an earlier call of the same turn has it too.
    pub is_duplicate: bool,
}

impl Ids {
    /// Begins the next turn: ids of earlier turns may be used again.
    pub fn begin_turn(&mut self) {
        self.turn.clear();
    }

    /// The id of the next call: the one that is written, or the next free number.
    pub fn assign(&mut self, syntax: Syntax, written: Option<&str>) -> Assigned {
        let id = if let Some(id) = written {
            for kind in [Syntax::Block, Syntax::Emoji] {
                if let Some(number) = number_of(id, kind) {
                    self.numbers(kind).take(number);
                }
            }
            id.to_owned()
        } else {
            let number = self.numbers(syntax).give();
            format!("{}{number}", prefix(syntax))
        };
        Assigned {
            is_duplicate: !self.turn.insert(id.as_str().into()),
            id,
            is_automatic: written.is_none(),
        }
    }

    fn numbers(&mut self, syntax: Syntax) -> &mut Numbers {
        match syntax {
            Syntax::Block => &mut self.block,
            Syntax::Emoji => &mut self.emoji,
        }
    }
}

impl Numbers {
    fn give(&mut self) -> u64 {
        self.given = self.given.saturating_add(1);
        while self.taken.first() == Some(&self.given) {
            self.taken.pop_first();
            self.given = self.given.saturating_add(1);
        }
        self.given
    }

    fn take(&mut self, number: u64) {
        if number > self.given {
            self.taken.insert(number);
        }
    }
}

/// What an automatic id begins with.
const fn prefix(syntax: Syntax) -> &'static str {
    match syntax {
        Syntax::Block => "gadget_",
        Syntax::Emoji => "call_",
    }
}

/// The number in an id that has the form of an automatic one.
fn number_of(id: &str, syntax: Syntax) -> Option<u64> {
    let digits = id.strip_prefix(prefix(syntax))?;
    if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}

#[cfg(test)]
mod tests {
    use plaincall_syntax::Syntax;

    use super::Ids;

    /// Each turn is a list of ids as written, empty for none; what comes out has `!` for a duplicate.
    fn check(syntax: Syntax, turns: &[&[&str]], expected: &[&str]) {
        let mut ids = Ids::default();
        let mut found = Vec::new();
        for turn in turns {
            ids.begin_turn();
            for written in *turn {
                let written = Some(*written).filter(|id| !id.is_empty());
                let assigned = ids.assign(syntax, written);
                assert_eq!(assigned.is_automatic, written.is_none());
                let mark = if assigned.is_duplicate { "!" } else { "" };
                found.push(format!("{}{mark}", assigned.id));
            }
        }
        assert_eq!(found, expected);
    }

    #[test]
    fn ids_over_turns() {
        let block = Syntax::Block;
        check(block, &[&["", ""]], &["gadget_1", "gadget_2"]);
        check(
            block,
            &[&["", "b", "gadget_2", "", "b"]],
            &["gadget_1", "b", "gadget_2", "gadget_3", "b!"],
        );
        check(block, &[&["", "gadget_1"]], &["gadget_1", "gadget_1!"]);
        check(
            block,
            &[&["", "a"], &["", "a", "gadget_1"]],
            &["gadget_1", "a", "gadget_2", "a", "gadget_1"],
        );
        check(
            block,
            &[&["gadget_2", "gadget_1"], &["", ""]],
            &["gadget_2", "gadget_1", "gadget_3", "gadget_4"],
        );
        check(
            block,
            &[&["gadget_01", "gadget_", "gadget_+1", "call_1", ""]],
            &["gadget_01", "gadget_", "gadget_+1", "call_1", "gadget_1"],
        );
        check(
            block,
            &[&[
                "gadget_18446744073709551615",
                "gadget_99999999999999999999",
                "",
            ]],
            &[
                "gadget_18446744073709551615",
                "gadget_99999999999999999999",
                "gadget_1",
            ],
        );
        check(
            Syntax::Emoji,
            &[&["", ""], &[""]],
            &["call_1", "call_2", "call_3"],
        );
    }
}
