//! The ids of calls in a conversation.

use std::collections::{BTreeSet, HashSet};

use plaincall_syntax::Syntax;

/// Assigns ids to calls without one, and detects duplicates (`spec/block.md` 7.10).
///
/// Use one value for a whole conversation: numbering continues over its turns, and a number that the model wrote in an
/// id is never assigned.
#[derive(Clone, Debug, Default)]
pub struct Ids {
    block: Numbers,
    emoji: Numbers,
    turn: HashSet<Box<str>>,
}

#[derive(Clone, Debug, Default)]
struct Numbers {
    given: u64,
    /// Numbers above `given` that a model has used.
    taken: BTreeSet<u64>,
}

/// The id of a call.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Assigned {
    /// The id, written or assigned.
    pub id: String,
    /// Whether the id was assigned, not written.
    pub is_automatic: bool,
    /// Whether an earlier call of the same turn has the same id.
    pub is_duplicate: bool,
}

impl Ids {
    /// Begins the next turn: ids of earlier turns may be used again.
    pub fn begin_turn(&mut self) {
        self.turn.clear();
    }

    /// Returns the id of the next call: the written one, or the next free number.
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

const fn prefix(syntax: Syntax) -> &'static str {
    match syntax {
        Syntax::Block => "gadget_",
        Syntax::Emoji => "call_",
    }
}

fn number_of(id: &str, syntax: Syntax) -> Option<u64> {
    let digits = id.strip_prefix(prefix(syntax))?;
    if digits.starts_with('0') || !digits.bytes().all(|byte| byte.is_ascii_digit()) {
        return None;
    }
    digits.parse().ok()
}
