//! The order of the calls of a reply (`spec/running.md`).

use std::num::NonZeroU32;

use plaincall_plan::{
    Action, Because, CallIndex, CallView, Limits, Order, Outcome, PlanError, Reply, State, Status,
    Tool,
};
use pyo3::prelude::*;

use crate::error;
use crate::input::Lossy;

/// Decides which call of a reply starts next, and which are skipped or rejected. `plaincall.execute` uses it.
#[pyclass(module = "plaincall")]
pub(crate) struct Plan {
    plan: plaincall_plan::Plan,
    /// The ids, for messages.
    ids: Vec<String>,
}

fn index(call: u32) -> CallIndex {
    CallIndex::new(call)
}

impl Plan {
    fn id(&self, call: CallIndex) -> &str {
        self.ids.get(call.index()).map_or("", String::as_str)
    }

    /// Returns why a call was skipped, as a sentence for the model.
    fn skipped(&self, because: Because) -> String {
        let direct = self.plan.call(because.direct);
        let ended = match direct.map(CallView::state) {
            Some(State::Ended(Status::Error)) => "failed",
            Some(State::Ended(Status::Skipped)) => "was skipped",
            Some(State::Ended(Status::Rejected)) => "was rejected",
            _ => "did not succeed",
        };
        let id = self.id(because.direct);
        let reason = format!("not run: it depends on `{id}`, which {ended}");
        if because.root == because.direct {
            return reason;
        }
        format!(
            "{reason}; the first failure was `{}`",
            self.id(because.root)
        )
    }
}

#[pymethods]
impl Plan {
    /// Creates the plan of one reply. `concurrent` is the maximum number of calls that run at the same time.
    #[new]
    #[pyo3(signature = (concurrent=None))]
    fn new(concurrent: Option<NonZeroU32>) -> PyResult<Self> {
        let mut limits = Limits::default();
        limits.concurrent = concurrent;
        let mut plan = plaincall_plan::Plan::new(limits);
        plan.begin_turn(Order::Graph).map_err(error::value)?;
        Ok(Self {
            plan,
            ids: Vec::new(),
        })
    }

    /// Adds the next call: complete, or rejected for this reason.
    fn add(
        &mut self,
        id: &str,
        dependencies: Vec<String>,
        rejection: Option<String>,
    ) -> PyResult<()> {
        let call = self.plan.declare(id).map_err(error::value)?;
        self.ids.push(id.to_owned());
        let added = if let Some(reason) = rejection {
            self.plan.reject(call, reason)
        } else {
            let tool = self.plan.add_tool(Tool::default());
            self.plan.complete(call, tool, dependencies)
        };
        match added {
            // A duplicate id has ended the call already.
            Ok(()) | Err(PlanError::InvalidState { .. }) => Ok(()),
            Err(error) => Err(error::value(error)),
        }
    }

    /// Ends the reply: no further call is added.
    fn end(&mut self) -> PyResult<()> {
        self.plan.end_turn(Reply::Complete).map_err(error::value)
    }

    /// Returns the next action, its call and its reason: `ready` (then `admit` or `deny` it), `start`, `skipped` or `rejected`.
    /// `None` until a call ends.
    fn next(&mut self) -> Option<(&'static str, usize, Option<String>)> {
        loop {
            return Some(match self.plan.next_action()? {
                Action::Ready(call) => ("ready", call.index(), None),
                Action::Start(call) => ("start", call.index(), None),
                Action::Skip { call, because, .. } => {
                    ("skipped", call.index(), Some(self.skipped(because)))
                }
                Action::Reject { call, reason } => {
                    ("rejected", call.index(), Some(reason.to_string()))
                }
                Action::Cancel(_) | Action::Stop(_) => continue,
            });
        }
    }

    /// Approves a ready call.
    fn admit(&mut self, call: u32) -> PyResult<()> {
        self.plan.admit(index(call)).map_err(error::value)
    }

    /// Denies a ready call.
    fn deny(&mut self, call: u32, reason: Lossy) -> PyResult<()> {
        self.plan.deny(index(call), reason.0).map_err(error::value)
    }

    /// Reports that a running call has ended.
    fn finish(&mut self, call: u32, succeeded: bool) -> PyResult<()> {
        let outcome = if succeeded {
            Outcome::Ok
        } else {
            Outcome::Error
        };
        self.plan.finish(index(call), outcome).map_err(error::value)
    }
}
