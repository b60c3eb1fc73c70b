//! Resolves ids to calls.

use std::hash::{BuildHasher, RandomState};

use crate::NONE;
use crate::edges::EdgeList;

/// All ids of calls and dependencies, numbered from 0.
///
/// This is a hash table with open addressing and the keyed hash of the standard library, because looking up ids is most of
/// the cost of a large plan. Each id is hashed once and is not a separate allocation, and growing the table does not move
/// the texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    hashes: RandomState,
    /// Its length is a power of two. At most half of the slots are used.
    slots: Vec<Slot>,
    names: Vec<Name>,
    /// The texts of all ids, one after another.
    texts: String,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u32,
    /// The number of the id, or [`NONE`].
    number: u32,
}

#[derive(Clone, Debug)]
struct Name {
    /// The start and end of its text.
    text: (usize, usize),
    /// The first call with this id in `turn`, the latest turn that has one.
    owner: u32,
    turn: u32,
    /// The owner in the latest turn before that.
    earlier: u32,
    /// Edges of the open turn that wait for a call with this id.
    wanted: EdgeList,
    /// The last call that depends on this id. Repeated dependencies of a call count once.
    last_dependent: u32,
}

impl Ids {
    /// Returns the number of an id, and adds the id if it is new. Returns `None` if there is no number left.
    pub(crate) fn number(&mut self, text: &str) -> Option<u32> {
        if self.slots.len() <= 2 * self.names.len() {
            self.grow();
        }
        // Half of the hash is enough to avoid almost all comparisons of texts.
        let hash = u32::try_from(self.hashes.hash_one(text) >> 32).unwrap_or(NONE);
        let mut position = self.first_position(hash);
        loop {
            let slot = *self.slots.get(position)?;
            if slot.number == NONE {
                break;
            }
            if slot.hash == hash && self.text(slot.number) == text {
                return Some(slot.number);
            }
            position = self.next_position(position);
        }
        let number = u32::try_from(self.names.len())
            .ok()
            .filter(|&number| number != NONE)?;
        *self.slots.get_mut(position)? = Slot { hash, number };
        let begin = self.texts.len();
        self.texts.push_str(text);
        self.names.push(Name {
            text: (begin, self.texts.len()),
            owner: NONE,
            turn: NONE,
            earlier: NONE,
            wanted: EdgeList::EMPTY,
            last_dependent: NONE,
        });
        Some(number)
    }

    fn first_position(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn next_position(&self, position: usize) -> usize {
        (position + 1) & (self.slots.len() - 1)
    }

    /// Doubles the table.
    fn grow(&mut self) {
        let free = Slot {
            hash: 0,
            number: NONE,
        };
        let size = (2 * self.slots.len()).max(16);
        let old = std::mem::replace(&mut self.slots, vec![free; size]);
        for slot in old {
            let mut position = self.first_position(slot.hash);
            while self.slots.get(position).is_some_and(|s| s.number != NONE) {
                position = self.next_position(position);
            }
            let free = self.slots.get_mut(position);
            if let Some(free) = free.filter(|_| slot.number != NONE) {
                *free = slot;
            }
        }
    }

    /// Returns the text of an id.
    pub(crate) fn text(&self, number: u32) -> &str {
        let range = self.names.get(number as usize).map(|name| name.text);
        range
            .and_then(|(begin, end)| self.texts.get(begin..end))
            .unwrap_or_default()
    }

    /// Makes the call the owner of the id in this turn.
    ///
    /// # Errors
    /// Returns the call that already owns the id.
    pub(crate) fn claim(&mut self, number: u32, call: u32, turn: u32) -> Result<(), u32> {
        let Some(name) = self.names.get_mut(number as usize) else {
            return Ok(());
        };
        if name.turn == turn {
            return Err(name.owner);
        }
        name.earlier = name.owner;
        name.owner = call;
        name.turn = turn;
        Ok(())
    }

    /// Records that the call depends on the id. Returns whether it is the first time.
    pub(crate) fn mention(&mut self, number: u32, call: u32) -> bool {
        match self.names.get_mut(number as usize) {
            Some(name) if name.last_dependent != call => {
                name.last_dependent = call;
                true
            }
            _ => false,
        }
    }

    /// Returns the call that the id means in a call of this turn: the call itself or an earlier call of the turn, or else the
    /// latest of earlier turns, or else a later call of the turn that has appeared, or else [`NONE`].
    pub(crate) fn meaning(&self, number: u32, call: u32, turn: u32) -> u32 {
        let Some(name) = self.names.get(number as usize) else {
            return NONE;
        };
        let is_later = name.turn == turn && name.owner > call;
        if is_later && name.earlier != NONE {
            name.earlier
        } else {
            name.owner
        }
    }

    /// Returns the edges that wait for the id.
    pub(crate) fn wanted(&mut self, number: u32) -> Option<&mut EdgeList> {
        self.names
            .get_mut(number as usize)
            .map(|name| &mut name.wanted)
    }
}
