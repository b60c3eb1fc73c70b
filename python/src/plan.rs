//! The order of the calls of a reply (`spec/running.md`).

use std::num::NonZeroU32;

use plaincall_plan::{PlannedCall, ReplyAction, ReplyPlan};
use pyo3::prelude::*;

use crate::error;
use crate::input::Lossy;

/// Decides which call of a reply starts next, and which are skipped or rejected. `plaincall.execute` uses it.
#[pyclass(module = "plaincall")]
pub(crate) struct Plan {
    plan: ReplyPlan,
}

#[pymethods]
impl Plan {
    /// Creates the plan of one reply. `concurrent` is the maximum number of calls that run at the same time.
    #[new]
    #[pyo3(signature = (concurrent=None))]
    fn new(concurrent: Option<NonZeroU32>) -> PyResult<Self> {
        let plan = ReplyPlan::new(concurrent).map_err(error::value)?;
        Ok(Self { plan })
    }

    /// Adds the next call: complete, rejected for this reason, or held and without anyone to approve it.
    #[pyo3(signature = (id, dependencies, rejection=None, held=None))]
    fn add(
        &mut self,
        id: &str,
        dependencies: Vec<String>,
        rejection: Option<String>,
        held: Option<String>,
    ) -> PyResult<()> {
        let mut call = PlannedCall::new(id);
        call.dependencies = dependencies;
        call.rejection = rejection;
        call.held = held;
        self.plan.add(call).map_err(error::value)
    }

    /// Ends the reply: no further call is added.
    fn end(&mut self) -> PyResult<()> {
        self.plan.end().map_err(error::value)
    }

    /// Returns the next action, its call and its reason: `ready` (then `admit` or `deny` it), `start`, `skipped` or `rejected`.
    /// `None` until a call ends.
    fn next(&mut self) -> Option<(&'static str, usize, Option<String>)> {
        Some(match self.plan.next_action()? {
            ReplyAction::Ready(call) => ("ready", call, None),
            ReplyAction::Start(call) => ("start", call, None),
            ReplyAction::Skipped(call, reason) => ("skipped", call, Some(reason)),
            ReplyAction::Rejected(call, reason) => ("rejected", call, Some(reason)),
            _ => return None,
        })
    }

    /// Approves a ready call.
    fn admit(&mut self, call: u32) -> PyResult<()> {
        self.plan.admit(call).map_err(error::value)
    }

    /// Denies a ready call.
    fn deny(&mut self, call: u32, reason: Lossy) -> PyResult<()> {
        self.plan.deny(call, reason.0).map_err(error::value)
    }

    /// Reports that a running call has ended.
    fn finish(&mut self, call: u32, succeeded: bool) -> PyResult<()> {
        self.plan.finish(call, succeeded).map_err(error::value)
    }
}
