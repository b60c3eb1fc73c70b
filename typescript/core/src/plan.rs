//! The order of the calls of a reply (`spec/running.md`).

use std::num::NonZeroU32;

use plaincall_plan::{CallFailure, PlanError, PlannedCall, ReplyAction, ReplyPlan};
use plaincall_reply::{ReadCall, ReplyCheck};
use plaincall_tool::{ToolSet, json::parse};
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::document::write;
use crate::error::Error;
use crate::state::{Object, State};
use crate::toolbox::Tools;

/// An operation of the calls of a reply. Each returns what to do next.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum PlanOperation {
    /// Creates the plan of all calls of these tools. `concurrency` is the maximum number of calls that run at the same time.
    Create {
        tools: u32,
        concurrency: Option<NonZeroU32>,
        calls: Vec<CallOption>,
    },
    /// Approves a ready call.
    Admit { object: u32, call: u32 },
    /// Denies a ready call.
    Deny {
        object: u32,
        call: u32,
        reason: String,
    },
    /// Reports that a running call has ended.
    Finish {
        object: u32,
        call: u32,
        succeeded: bool,
    },
    /// Writes the sentence for the model about a call without a result.
    Failure { name: String, detail: String },
}

/// A call of the host.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
pub(crate) struct CallOption {
    id: String,
    name: String,
    /// As JSON.
    arguments: Option<String>,
    dependencies: Vec<String>,
    rejection: Option<String>,
    held: Option<String>,
    /// The words of the call for its syntax and its end.
    syntax: String,
    termination: String,
    /// Of calls that other tools have read, or none.
    before: Option<String>,
    is_exclusive: bool,
    /// Whether these tools have read it, and so validated it.
    is_own: bool,
}

#[derive(Serialize)]
struct ActionView {
    kind: &'static str,
    call: u32,
    reason: Option<String>,
}

#[derive(Serialize)]
struct View {
    object: u32,
    actions: Vec<ActionView>,
}

impl PlanOperation {
    pub(crate) fn perform(self, state: &mut State) -> Result<(), Error> {
        let (object, performed) = match self {
            Self::Create {
                tools,
                concurrency,
                calls,
            } => {
                let plan = create(state.tools(tools)?, concurrency, calls);
                let plan = plan.map_err(Error::argument)?;
                (state.add(Object::Plan(Box::new(plan))), Ok(()))
            }
            Self::Admit { object, call } => (object, state.plan(object)?.admit(call)),
            Self::Deny {
                object,
                call,
                reason,
            } => (object, state.plan(object)?.deny(call, reason)),
            Self::Finish {
                object,
                call,
                succeeded,
            } => (object, state.plan(object)?.finish(call, succeeded)),
            Self::Failure { name, detail } => {
                let failure = CallFailure::named(&name, &detail);
                return write(&mut state.output, &failure.map(|it| it.to_string()));
            }
        };
        performed.map_err(Error::argument)?;
        let plan = state.plan(object)?;
        let actions = std::iter::from_fn(|| plan.next_action()).filter_map(view);
        let view = View {
            object,
            actions: actions.collect(),
        };
        write(&mut state.output, &view)
    }
}

fn create(
    tools: &Tools,
    concurrency: Option<NonZeroU32>,
    calls: Vec<CallOption>,
) -> Result<ReplyPlan, PlanError> {
    let mut plan = ReplyPlan::new(concurrency)?;
    let mut check = tools.check.clone();
    for option in calls {
        let invalid = option.problem(&tools.set, &mut check);
        let mut call = PlannedCall::new(option.id);
        call.dependencies = option.dependencies;
        call.rejection = option.rejection.or(invalid);
        call.held = option.held;
        call.is_exclusive = option.is_exclusive;
        plan.add(call)?;
    }
    plan.end()?;
    Ok(plan)
}

impl CallOption {
    /// Returns why the call must not run with these tools. Other tools, or none, may have read it.
    fn problem(&self, tools: &ToolSet, check: &mut ReplyCheck) -> Option<String> {
        if self.is_own && self.arguments.is_some() {
            return None;
        }
        let arguments = self.arguments.as_deref();
        let arguments = arguments.and_then(|json| parse(json).ok());
        let arguments = arguments.as_ref().and_then(Value::as_object);
        let (syntax, termination) = (&self.syntax, &self.termination);
        let before = self.before.as_deref();
        let call = ReadCall::named(&self.name, arguments, syntax, termination, before);
        check.mismatch(tools, &call)
    }
}

fn view(action: ReplyAction) -> Option<ActionView> {
    let (kind, call, reason) = match action {
        ReplyAction::Ready(call) => ("ready", call, None),
        ReplyAction::Start(call) => ("start", call, None),
        ReplyAction::Skipped(call, reason) => ("skipped", call, Some(reason)),
        ReplyAction::Rejected(call, reason) => ("rejected", call, Some(reason)),
        _ => return None,
    };
    Some(ActionView { kind, call, reason })
}

impl State {
    fn tools(&mut self, object: u32) -> Result<&Tools, Error> {
        match self.get(object) {
            Some(Object::Tools(tools)) => Ok(tools),
            _ => Err(Error::argument(
                "the toolbox was disposed of; create another one",
            )),
        }
    }

    fn plan(&mut self, object: u32) -> Result<&mut ReplyPlan, Error> {
        match self.get(object) {
            Some(Object::Plan(plan)) => Ok(plan),
            _ => Err(Error::finished()),
        }
    }
}
