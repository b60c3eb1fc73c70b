//! Resolves ids to calls.

use std::collections::HashMap;
use std::sync::Arc;

use crate::NONE;
use crate::edges::EdgeList;

/// All ids of calls and dependencies, numbered from 0.
#[derive(Clone, Debug, Default)]
pub(crate) struct Ids {
    numbers: HashMap<Arc<str>, u32>,
    names: Vec<Name>,
}

#[derive(Clone, Debug)]
struct Name {
    text: Arc<str>,
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
        if let Some(&number) = self.numbers.get(text) {
            return Some(number);
        }
        let number = u32::try_from(self.names.len())
            .ok()
            .filter(|&number| number != NONE)?;
        let text: Arc<str> = text.into();
        self.numbers.insert(Arc::clone(&text), number);
        self.names.push(Name {
            text,
            owner: NONE,
            turn: NONE,
            earlier: NONE,
            wanted: EdgeList::EMPTY,
            last_dependent: NONE,
        });
        Some(number)
    }

    /// Returns the text of an id.
    pub(crate) fn text(&self, number: u32) -> &str {
        let name = self.names.get(number as usize);
        name.map_or("", |name| &name.text)
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
