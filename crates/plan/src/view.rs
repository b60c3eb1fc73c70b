//! Looking at the calls, for runners and live displays.

use crate::NONE;
use crate::action::Because;
use crate::edges::Edge;
use crate::plan::{Call, Plan};
use crate::policy::ToolIndex;
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

    /// Its id.
    pub fn id(self) -> &'a str {
        self.plan.ids.text(self.entry.name)
    }

    /// The number of its turn, from 0.
    pub fn turn(self) -> u32 {
        self.entry.turn
    }

    /// Its tool, if the call has been completed.
    pub fn tool(self) -> Option<ToolIndex> {
        (self.entry.tool != NONE).then_some(ToolIndex(self.entry.tool))
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
        let CallIndex(call) = call;
        let entry = self.calls.get(call as usize)?;
        Some(CallView {
            plan: self,
            call,
            entry,
        })
    }

    /// All calls of the conversation in order of appearance.
    pub fn calls(&self) -> impl ExactSizeIterator<Item = CallView<'_>> {
        let numbers = 0..u32::try_from(self.calls.len()).unwrap_or(NONE);
        self.calls
            .iter()
            .zip(numbers)
            .map(|(entry, call)| CallView {
                plan: self,
                call,
                entry,
            })
    }
}
