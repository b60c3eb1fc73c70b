//! Which call an id means.

use std::hash::{BuildHasher, RandomState};

use crate::NONE;
use crate::edges::EdgeList;

/// Every id that was declared or named, numbered from 0.
///
/// The table of numbers is this crate's own, open addressing by the standard library's keyed hash, since the
/// lookup of ids is most of a large plan's cost: each id is hashed once, has no allocation of its own, and a
/// growing table does not touch the texts.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    hashes: RandomState,
    /// A power of two of them, at most half of them taken.
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
    /// Where its text begins and ends.
    text: (usize, usize),
    /// The first call with this id in `turn`, the latest turn that has one.
    holder: u32,
    turn: u32,
    /// The holder of the latest turn before that.
    earlier: u32,
    /// Edges of the open turn that wait for a call with this id.
    wanted: EdgeList,
    /// The last call that named it as a dependency; a second mention counts once.
    named_by: u32,
}

impl Ids {
    /// The number of an id, new or known; `None` if there is no number left.
    pub(crate) fn number(&mut self, text: &str) -> Option<u32> {
        if self.slots.len() <= 2 * self.names.len() {
            self.grow();
        }
        // Half of the hash tells ids apart well enough to save almost all comparisons of texts.
        let hash = u32::try_from(self.hashes.hash_one(text) >> 32).unwrap_or(NONE);
        let mut place = self.first_place(hash);
        loop {
            let slot = *self.slots.get(place)?;
            if slot.number == NONE {
                break;
            }
            if slot.hash == hash && self.text(slot.number) == text {
                return Some(slot.number);
            }
            place = self.next_place(place);
        }
        let number = u32::try_from(self.names.len())
            .ok()
            .filter(|&number| number != NONE)?;
        *self.slots.get_mut(place)? = Slot { hash, number };
        let begin = self.texts.len();
        self.texts.push_str(text);
        self.names.push(Name {
            text: (begin, self.texts.len()),
            holder: NONE,
            turn: NONE,
            earlier: NONE,
            wanted: EdgeList::EMPTY,
            named_by: NONE,
        });
        Some(number)
    }

    fn first_place(&self, hash: u32) -> usize {
        hash as usize & (self.slots.len() - 1)
    }

    fn next_place(&self, place: usize) -> usize {
        (place + 1) & (self.slots.len() - 1)
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
            let mut place = self.first_place(slot.hash);
            while self.slots.get(place).is_some_and(|s| s.number != NONE) {
                place = self.next_place(place);
            }
            let free = self.slots.get_mut(place);
            if let Some(free) = free.filter(|_| slot.number != NONE) {
                *free = slot;
            }
        }
    }

    /// The text of an id.
    pub(crate) fn text(&self, number: u32) -> &str {
        let range = self.names.get(number as usize).map(|name| name.text);
        range
            .and_then(|(begin, end)| self.texts.get(begin..end))
            .unwrap_or_default()
    }

    /// Makes the call the holder of the id in this turn, or says which call already is.
    pub(crate) fn claim(&mut self, number: u32, call: u32, turn: u32) -> Result<(), u32> {
        let Some(name) = self.names.get_mut(number as usize) else {
            return Ok(());
        };
        if name.turn == turn {
            return Err(name.holder);
        }
        name.earlier = name.holder;
        name.holder = call;
        name.turn = turn;
        Ok(())
    }

    /// Whether this is the first time that the call names the id.
    pub(crate) fn mention(&mut self, number: u32, call: u32) -> bool {
        match self.names.get_mut(number as usize) {
            Some(name) if name.named_by != call => {
                name.named_by = call;
                true
            }
            _ => false,
        }
    }

    /// The call that the id means for a call of this turn: the call itself or an earlier one of the turn, else the
    /// latest of earlier turns, else the first later one of the turn, as far as it has appeared; else [`NONE`].
    pub(crate) fn meaning(&self, number: u32, call: u32, turn: u32) -> u32 {
        let Some(name) = self.names.get(number as usize) else {
            return NONE;
        };
        let is_later = name.turn == turn && name.holder > call;
        if is_later && name.earlier != NONE {
            name.earlier
        } else {
            name.holder
        }
    }

    /// The edges that wait for the id.
    pub(crate) fn wanted(&mut self, number: u32) -> Option<&mut EdgeList> {
        self.names
            .get_mut(number as usize)
            .map(|name| &mut name.wanted)
    }
}
