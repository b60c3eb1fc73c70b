//! The plan of the calls of one complete reply, with messages for the model.

use std::num::NonZeroU32;

use crate::{
    Action, Because, CallIndex, CallView, Limits, Order, Outcome, Plan, PlanError, Reply, State,
    Status, Tool,
};

/// Decides which call of a reply starts next, and which are skipped or rejected. It is for programs with their own tasks.
///
/// ```
/// use plaincall_plan::{PlannedCall, ReplyPlan, ReplyAction};
///
/// let mut plan = ReplyPlan::new(None)?;
/// plan.add(PlannedCall::new("fetch"))?;
/// let mut merge = PlannedCall::new("merge");
/// merge.dependencies = vec!["fetch".to_owned()];
/// plan.add(merge)?;
/// plan.end()?;
/// assert_eq!(plan.next_action(), Some(ReplyAction::Ready(0)));
/// plan.admit(0)?;
/// assert_eq!(plan.next_action(), Some(ReplyAction::Start(0)));
/// plan.finish(0, false)?;
/// let reason = "not run: it depends on `fetch`, which failed".to_owned();
/// assert_eq!(plan.next_action(), Some(ReplyAction::Skipped(1, reason)));
/// assert_eq!(plan.next_action(), None);
/// # Ok::<(), plaincall_plan::PlanError>(())
/// ```
#[derive(Debug)]
pub struct ReplyPlan {
    plan: Plan,
    /// The ids, for messages.
    ids: Vec<String>,
}

/// A call of a reply.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
#[non_exhaustive]
pub struct PlannedCall {
    /// The id.
    pub id: String,
    /// The ids that it depends on.
    pub dependencies: Vec<String>,
    /// Why it must not run, as a sentence for the model.
    pub rejection: Option<String>,
    /// Why it may have been meant to end earlier, if no one can approve it.
    pub held: Option<String>,
    /// Whether no other call may run at the same time.
    pub is_exclusive: bool,
}

/// An action for a call, whose number is in the order of the reply, from 0.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ReplyAction {
    /// Decide whether it runs: [`admit`](ReplyPlan::admit) or [`deny`](ReplyPlan::deny) it.
    Ready(u32),
    /// Start it, and report its end with [`finish`](ReplyPlan::finish).
    Start(u32),
    /// It was skipped for this reason.
    Skipped(u32, String),
    /// It was rejected for this reason.
    Rejected(u32, String),
}

impl PlannedCall {
    /// Creates a call without dependencies.
    pub fn new(id: impl Into<String>) -> Self {
        Self {
            id: id.into(),
            ..Self::default()
        }
    }
}

impl ReplyPlan {
    /// Creates the plan of one reply. `concurrent` is the maximum number of calls that run at the same time.
    ///
    /// # Errors
    /// Returns an error of the [`Plan`].
    pub fn new(concurrent: Option<NonZeroU32>) -> Result<Self, PlanError> {
        let mut plan = Plan::new(Limits {
            concurrent,
            ..Limits::default()
        });
        plan.begin_turn(Order::Graph)?;
        Ok(Self {
            plan,
            ids: Vec::new(),
        })
    }

    /// Adds the next call.
    ///
    /// # Errors
    /// Returns an error if there are too many calls, or after [`end`](Self::end).
    pub fn add(&mut self, call: PlannedCall) -> Result<(), PlanError> {
        let index = self.plan.declare(&call.id)?;
        self.ids.push(call.id);
        let held =
            |held| format!("this call may have been meant to end earlier: {held}; send it again");
        let added = if let Some(reason) = call.rejection.or_else(|| call.held.map(held)) {
            self.plan.reject(index, reason)
        } else {
            let tool = self.plan.add_tool(Tool {
                exclusive: call.is_exclusive,
                ..Tool::default()
            });
            self.plan.complete(index, tool, call.dependencies)
        };
        match added {
            // A duplicate id has ended the call already.
            Ok(()) | Err(PlanError::InvalidState { .. }) => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// Ends the reply: no further call is added.
    ///
    /// # Errors
    /// Returns an error if it has ended.
    pub fn end(&mut self) -> Result<(), PlanError> {
        self.plan.end_turn(Reply::Complete)
    }

    /// Returns the next action, or `None` until a call is admitted, denied or finished.
    pub fn next_action(&mut self) -> Option<ReplyAction> {
        loop {
            return Some(match self.plan.next_action()? {
                Action::Ready(call) => ReplyAction::Ready(call.get()),
                Action::Start(call) => ReplyAction::Start(call.get()),
                Action::Skip { call, because, .. } => {
                    ReplyAction::Skipped(call.get(), self.skipped(because))
                }
                Action::Reject { call, reason } => {
                    ReplyAction::Rejected(call.get(), reason.to_string())
                }
                Action::Cancel(_) | Action::Stop(_) => continue,
            });
        }
    }

    /// Approves a ready call.
    ///
    /// # Errors
    /// Returns an error if the call is not ready.
    pub fn admit(&mut self, call: u32) -> Result<(), PlanError> {
        self.plan.admit(CallIndex::new(call))
    }

    /// Denies a ready call.
    ///
    /// # Errors
    /// Returns an error if the call is not ready.
    pub fn deny(&mut self, call: u32, reason: impl Into<String>) -> Result<(), PlanError> {
        self.plan.deny(CallIndex::new(call), reason)
    }

    /// Reports that a running call has ended.
    ///
    /// # Errors
    /// Returns an error if the call is not running.
    pub fn finish(&mut self, call: u32, succeeded: bool) -> Result<(), PlanError> {
        let outcome = if succeeded {
            Outcome::Ok
        } else {
            Outcome::Error
        };
        self.plan.finish(CallIndex::new(call), outcome)
    }

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
        let root = self.id(because.root);
        format!("{reason}; the first failure was `{root}`")
    }
}
