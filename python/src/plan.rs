//! The order of the calls of a reply (`spec/running.md`).

use std::num::NonZeroU32;
use std::sync::Arc;

use plaincall_plan::{CallFailure, ReplyAction, ReplyPlan};
use plaincall_reply::ReplyCheck;
use pyo3::prelude::*;

use crate::call::Call;
use crate::error;
use crate::input::Lossy;
use crate::toolbox::ToolSet;

/// Decides which call of a reply starts next, and which are skipped or rejected. `plaincall.execute` uses it.
#[pyclass(module = "plaincall._plaincall")]
pub(crate) struct Plan {
    reply: ReplyPlan,
    tools: Arc<plaincall_tool::ToolSet>,
    /// Of calls that other tools have read.
    check: ReplyCheck,
}

#[pymethods]
impl Plan {
    /// Creates the plan of one reply. `concurrent` is the maximum number of calls that run at the same time.
    #[new]
    #[pyo3(signature = (tools, concurrent=None))]
    fn new(tools: &ToolSet, concurrent: Option<NonZeroU32>) -> PyResult<Self> {
        let reply = ReplyPlan::new(concurrent).map_err(error::value)?;
        let check = tools.check.clone();
        let tools = Arc::clone(&tools.tools);
        Ok(Self {
            reply,
            tools,
            check,
        })
    }

    /// Adds the next call. `can_approve` states whether anyone can approve held calls; otherwise they are rejected.
    fn add(&mut self, py: Python<'_>, call: &Call, can_approve: bool) -> PyResult<()> {
        let mut call = call.planned(py, &self.tools, &mut self.check)?;
        if can_approve {
            call.held = None;
        }
        self.reply.add(call).map_err(error::value)
    }

    /// Ends the reply: no further call is added.
    fn end(&mut self) -> PyResult<()> {
        self.reply.end().map_err(error::value)
    }

    /// Returns the next action, its call and its reason: `ready` (then `admit` or `deny` it), `start`, `skipped` or `rejected`.
    /// `None` until a call ends.
    fn next(&mut self) -> Option<(&'static str, u32, Option<String>)> {
        Some(match self.reply.next_action()? {
            ReplyAction::Ready(call) => ("ready", call, None),
            ReplyAction::Start(call) => ("start", call, None),
            ReplyAction::Skipped(call, reason) => ("skipped", call, Some(reason)),
            ReplyAction::Rejected(call, reason) => ("rejected", call, Some(reason)),
            _ => return None,
        })
    }

    /// Approves a ready call.
    fn admit(&mut self, call: u32) -> PyResult<()> {
        self.reply.admit(call).map_err(error::value)
    }

    /// Denies a ready call.
    fn deny(&mut self, call: u32, reason: Lossy) -> PyResult<()> {
        self.reply.deny(call, reason.0).map_err(error::value)
    }

    /// Reports that a running call has ended.
    fn finish(&mut self, call: u32, succeeded: bool) -> PyResult<()> {
        self.reply.finish(call, succeeded).map_err(error::value)
    }

    /// Returns the sentence for the model about a call without a result.
    #[staticmethod]
    #[pyo3(signature = (name, detail=None))]
    fn failure(name: &str, detail: Option<Lossy>) -> PyResult<String> {
        let detail = detail.unwrap_or_default();
        let failure = CallFailure::named(name, &detail.0);
        let failure = failure.ok_or_else(|| error::value(format!("unknown failure `{name}`")))?;
        Ok(failure.to_string())
    }
}
