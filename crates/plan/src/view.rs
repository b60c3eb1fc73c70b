//! Looking at the calls, for runners and live displays.

use crate::NONE;
use crate::action::Because;
use crate::edges::Edge;
use crate::plan::{Call, Plan};
use crate::state::{CallIndex, State};

/// One call as it stands now. Made by [`Plan::call`] and [`Plan::calls`].
#[derive(Clone, Copy, Debug)]
pub struct CallView<'a> {
    plan: &'a Plan,
    call: u32,
    entry: &'a Call,
}

/// One dependency of a call.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Dependency<'a> {
    /// The id that the call names.
    pub id: &'a str,
    /// The call it means (`spec/running.md`, "What an id means"); `None` as long as no call has the id.
    pub call: Option<CallIndex>,
}

impl<'a> CallView<'a> {
    /// Its place in order of appearance.
    pub fn index(self) -> CallIndex {
        CallIndex(self.call)
    }

    /// Where it stands.
    pub fn state(self) -> State {
        self.entry.state
    }

    /// Why it was skipped, if it was.
    pub fn because(self) -> Option<Because> {
        self.entry.because
    }

    /// Its dependencies in the order in which it names them, each once; empty before it is complete.
    pub fn dependencies(self) -> impl ExactSizeIterator<Item = Dependency<'a>> {
        let edges: &'a [Edge] = self.plan.edges.of(self.entry.edges);
        edges.iter().map(move |edge| Dependency {
            id: self.plan.ids.text(edge.name),
            call: (edge.target != NONE).then_some(CallIndex(edge.target)),
        })
    }
}

impl Plan {
    /// One call; `None` if there is none with this index.
    pub fn call(&self, call: CallIndex) -> Option<CallView<'_>> {
        let entry = self.calls.get(call.index())?;
        Some(CallView {
            plan: self,
            call: call.0,
            entry,
        })
    }

    /// All calls of the conversation in order of appearance.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = CallView<'_>> {
        let numbered = self.calls.iter().zip(0..self.next_call());
        numbered.map(|(entry, call)| CallView {
            plan: self,
            call,
            entry,
        })
    }
}
