//! A call that wants to run, as rules and gates see it.

use std::sync::Arc;

use plaincall_call::{Arguments, Effect};

use crate::held::HeldReason;
use crate::rules::Meanings;

/// A call that wants to run.
#[derive(Clone, Debug)]
#[non_exhaustive]
pub struct Request {
    /// The call's place in order of appearance, from 0.
    pub call: u32,
    /// Its id.
    pub id: Arc<str>,
    /// The name of its tool.
    pub name: Arc<str>,
    /// What the tool may do to the world.
    pub effect: Effect,
    /// What it is called with.
    pub arguments: Arc<Arguments>,
    /// Why the call is held, if it is: it runs only if this gate allows this very call (`spec/running.md`, "Held calls").
    pub held: Option<HeldReason>,
    /// What the arguments mean to a rule.
    pub(crate) meanings: Meanings,
}
