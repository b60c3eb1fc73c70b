//! What a person says about calls that were cut off: `--again ID`, `--done ID`, `--not-done ID`.

use std::collections::BTreeMap;

use plaincall::Settlement;

use crate::run::RunOptions;
use crate::run::past::{CutOff, Past};
use crate::status::Failure;

/// The words, by the places of the calls.
#[derive(Clone, Debug, Default)]
pub(crate) struct Words {
    words: BTreeMap<u32, Word>,
}

/// What became of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Word {
    /// It is to be run again.
    Again,
    Done,
    NotDone,
}

impl Word {
    fn option(self) -> &'static str {
        match self {
            Self::Again => "--again",
            Self::Done => "--done",
            Self::NotDone => "--not-done",
        }
    }

    /// In the words of the library. `said` is what a person has added, if anything.
    pub(crate) fn settlement(self, said: Option<String>) -> Settlement {
        match self {
            Self::Again => Settlement::RunAgain,
            Self::Done => Settlement::Done {
                output: said.unwrap_or_default(),
            },
            Self::NotDone => Settlement::NotDone {
                reason: said.unwrap_or_else(|| {
                    "the run was cut off before the call was done, and it was not run again"
                        .to_owned()
                }),
            },
        }
    }
}

impl Words {
    /// The words of the command line.
    ///
    /// # Errors
    /// One is about a call that needs none, or there are two about one call.
    pub(crate) fn new(options: &RunOptions, past: &Past) -> Result<Self, Failure> {
        let cut_off = past.cut_off();
        let all = [
            (Word::Again, &options.again),
            (Word::Done, &options.done),
            (Word::NotDone, &options.not_done),
        ];
        let mut words = BTreeMap::new();
        for (word, ids) in all {
            for id in ids {
                let call = cut_off.iter().find(|(_, call)| call.id == *id);
                let Some((&call, _)) = call else {
                    return Err(Failure::Usage(no_such_call(word, id, &cut_off)));
                };
                if word == Word::Again && past.was_called_off() {
                    return Err(Failure::Usage(format!(
                        "`--again {id}`: the run was called off, so nothing is started again; say `--done {id}` or `--not-done {id}`"
                    )));
                }
                if let Some(other) = words.insert(call, word)
                    && other != word
                {
                    return Err(Failure::Usage(format!(
                        "`{} {id}` and `{} {id}` contradict each other; say one of them",
                        other.option(),
                        word.option()
                    )));
                }
            }
        }
        Ok(Self { words })
    }

    /// What was said about a call.
    pub(crate) fn about(&self, call: u32) -> Option<Word> {
        self.words.get(&call).copied()
    }
}

fn no_such_call(word: Word, id: &str, cut_off: &BTreeMap<u32, CutOff>) -> String {
    let option = word.option();
    let calls: Vec<String> = cut_off.values().map(name).collect();
    if calls.is_empty() {
        return format!(
            "`{option} {id}`: no call of this run that may have changed something was cut off, so there is nothing to say"
        );
    }
    format!(
        "`{option} {id}`: no such call was cut off; those that were and may have changed something: {}",
        calls.join(", ")
    )
}

/// A call with its tool, for a list.
pub(crate) fn name(call: &CutOff) -> String {
    format!("`{}` ({})", call.id, call.name)
}
