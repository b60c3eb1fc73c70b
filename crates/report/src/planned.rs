//! A reply before a run: the trace of what its calls would do.

use std::sync::Arc;

use plaincall::events::HeldReason;
use plaincall::plan::{self, Action, CallIndex, Outcome, Plan, Reply};
use plaincall::policy::{Order, Policy};
use plaincall::result::{Because, Cause};
use plaincall::{Status, Stop};
use plaincall_reply::document::Segment as Part;
use plaincall_reply::{DecidedCall, Document};
use plaincall_syntax::Syntax;
use plaincall_tool::ToolSet;
use serde::Serialize;

use crate::trace::{Call, Dependency, Segment, Trace, Turn};

/// The fate of a call that has not run.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Planned {
    /// It may run.
    Ready,
    /// It needs approval.
    Held,
}

impl Trace {
    /// Returns the trace of a reply that has not run, if every call that may run succeeds. It has no times.
    pub fn of_reply(read: &Document, tools: Option<&ToolSet>, stop: Stop) -> Self {
        let mut trace = Self {
            calls: read.decided().map(|call| planned(call, tools)).collect(),
            turns: vec![Turn {
                stop: Some(stop),
                segments: read.segments.iter().filter_map(segment).collect(),
                is_exact: true,
                ..Turn::default()
            }],
            ..Self::default()
        };
        trace.plan(read, stop);
        trace.resolve_dependencies();
        trace
    }

    /// Takes the consequences of rejected calls from the plan.
    fn plan(&mut self, read: &Document, stop: Stop) {
        let policy = Policy::default();
        let order = match read.syntax {
            Some(Syntax::Emoji) => policy.emoji_order,
            _ => policy.block_order,
        };
        let mut plan = Plan::default();
        let tool = plan.add_tool(plan::Tool::default());
        let _ = plan.begin_turn(match order {
            Order::Graph => plan::Order::Graph,
            order => plan::Order::Sequential {
                stop_on_error: order == Order::StopOnError,
            },
        });
        for read in read.decided() {
            let call = &read.call;
            let Ok(index) = plan.declare(&call.id) else {
                return;
            };
            let _ = match read.rejection() {
                Some(rejection) => plan.reject(index, rejection.to_string()),
                None => plan.complete(index, tool, &call.dependencies),
            };
            self.take_actions(&mut plan);
        }
        let _ = plan.end_turn(if stop.is_truncated() {
            Reply::Truncated
        } else {
            Reply::Complete
        });
        self.take_actions(&mut plan);
    }

    /// Lets every call that may start succeed.
    fn take_actions(&mut self, plan: &mut Plan) {
        while let Some(action) = plan.next_action() {
            match action {
                Action::Ready(call) => drop(plan.admit(call)),
                Action::Start(call) => drop(plan.finish(call, Outcome::Ok)),
                Action::Reject { call, reason } => {
                    if let Some(call) = self.calls.get_mut(call.index()) {
                        call.reject(reason.to_string().into());
                    }
                }
                Action::Skip { call, because } => {
                    let [direct, root] =
                        [because.direct, because.root].map(|call| self.cause(call));
                    if let Some(call) = self.calls.get_mut(call.index()) {
                        call.planned = None;
                        call.status = Some(Status::Skipped);
                        call.because = Some(Because::new(because.link, direct, root));
                    }
                }
                Action::Cancel(_) | Action::Stop(_) => {}
            }
        }
    }

    fn cause(&self, call: CallIndex) -> Cause {
        let id = self
            .calls
            .get(call.index())
            .map(|call| Arc::clone(&call.id));
        Cause::new(call.get(), id.unwrap_or_default())
    }
}

impl Call {
    fn reject(&mut self, error: Arc<str>) {
        self.planned = None;
        self.status = Some(Status::Rejected);
        self.error = Some(error);
    }
}

fn planned(read: &DecidedCall, tools: Option<&ToolSet>) -> Call {
    let call = &read.call;
    let tool = tools.and_then(|tools| tools.get(&call.name));
    let ids = call.dependencies.iter().cloned();
    let mut planned = Call {
        number: u32::try_from(call.index).unwrap_or(u32::MAX),
        id: call.id.as_str().into(),
        name: call.name.as_str().into(),
        effect: tool.map(|tool| tool.effect),
        dependencies: ids.map(|id| Dependency { id, call: None }).collect(),
        source: call.source().map(str::to_owned),
        planned: Some(if read.held().is_some() {
            Planned::Held
        } else {
            Planned::Ready
        }),
        held: read
            .held()
            .map(|suspect| HeldReason::EndMarker(suspect.clone()).to_string()),
        ..Call::default()
    };
    if let Some(rejection) = read.rejection() {
        planned.reject(rejection.to_string().into());
    }
    planned
}

fn segment(part: &Part) -> Option<Segment> {
    Some(match part {
        Part::Text { text, .. } => Segment::Text { text: text.clone() },
        Part::Reasoning { text, .. } => Segment::Reasoning { text: text.clone() },
        Part::Call(read) => Segment::Call {
            call: u32::try_from(read.call.index).ok()?,
        },
        _ => return None,
    })
}
