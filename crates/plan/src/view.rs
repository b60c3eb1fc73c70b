//! Read access to the calls of a plan.

use crate::NONE;
use crate::action::Because;
use crate::edges::Edge;
use crate::plan::{Call, Plan};
use crate::state::{CallIndex, State};

/// A call, from [`Plan::call`] or [`Plan::calls`].
#[derive(Clone, Copy, Debug)]
pub struct CallView<'a> {
    plan: &'a Plan,
    call: u32,
    entry: &'a Call,
}

/// A dependency of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Dependency<'a> {
    /// Its id.
    pub id: &'a str,
    /// The call that the id means (`spec/running.md`, "What an id means"), or `None` while no call has the id.
    pub call: Option<CallIndex>,
}

impl<'a> CallView<'a> {
    /// Returns the index of the call.
    pub fn index(self) -> CallIndex {
        CallIndex(self.call)
    }

    /// Returns the state of the call.
    pub fn state(self) -> State {
        self.entry.state
    }

    /// Returns why the call was skipped, if it was.
    pub fn because(self) -> Option<Because> {
        self.entry.because
    }

    /// Returns the dependencies in written order, without duplicates. Empty until the call is complete.
    pub fn dependencies(self) -> impl ExactSizeIterator<Item = Dependency<'a>> {
        let edges: &'a [Edge] = self.plan.edges.of(self.entry.edges);
        edges.iter().map(move |edge| Dependency {
            id: self.plan.ids.text(edge.name),
            call: (edge.target != NONE).then_some(CallIndex(edge.target)),
        })
    }
}

impl Plan {
    /// Returns a call, or `None` if no call has this index.
    pub fn call(&self, call: CallIndex) -> Option<CallView<'_>> {
        let entry = self.calls.get(call.index())?;
        Some(CallView {
            plan: self,
            call: call.0,
            entry,
        })
    }

    /// Returns all calls of the conversation in order of appearance.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = CallView<'_>> {
        let numbered = self.calls.iter().zip(0..self.next_call());
        numbered.map(|(entry, call)| CallView {
            plan: self,
            call,
            entry,
        })
    }
}
