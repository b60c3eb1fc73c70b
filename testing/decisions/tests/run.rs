//! Entry points with a run, whose events contain the decisions.

use std::time::Duration;

use plaincall::durable::{DurableSettings, Step};
use plaincall::events::HeldReason;
use plaincall::{BoxError, Decision as Answer, Request, Run, RunEvent, Status};
use plaincall_agent::model::{Scripted, ScriptedReply};
use plaincall_agent::{Agent, AgentEvent, Finish};
use serde_json::json;
use tokio_util::sync::CancellationToken;

use crate::decision::{Decision, Outcome, Seen};
use crate::texts::Reply;
use crate::tools::Tools;

/// A gate that approves every call, also a held one.
fn approve(_: Request) -> impl Future<Output = Result<Answer, BoxError>> + Send + 'static {
    std::future::ready(Ok(Answer::allow("a test")))
}

fn block_on<T>(future: impl Future<Output = T>) -> T {
    let mut runtime = tokio::runtime::Builder::new_current_thread();
    let runtime = runtime.enable_time().build().unwrap();
    runtime.block_on(future)
}

/// Returns the decisions in the events of a run.
fn of_events(tools: &Tools, events: &[RunEvent]) -> Seen {
    let mut decisions: Vec<Decision> = Vec::new();
    let mut has_started = Vec::new();
    let place = |call: u32| usize::try_from(call).unwrap();
    for event in events {
        match event {
            RunEvent::Call(call) => {
                assert_eq!(place(call.call), decisions.len(), "calls appear in order");
                decisions.push(Decision::rejected(&call.name, None));
                has_started.push(false);
            }
            RunEvent::Ready(ready) => {
                if let Some(HeldReason::EndMarker(marker)) = &ready.held {
                    decisions[place(ready.call)].outcome = Outcome::Held(marker.to_string());
                }
            }
            RunEvent::Start(start) => {
                has_started[place(start.call)] = true;
                let decision = &mut decisions[place(start.call)];
                if !matches!(decision.outcome, Outcome::Held(_)) {
                    decision.outcome = Outcome::Runs;
                }
            }
            RunEvent::Result(result) if result.status != Status::Ok => {
                assert!(!has_started[place(result.call)], "{result:?}");
                decisions[place(result.call)].outcome =
                    Outcome::Rejected(result.error.as_deref().map(str::to_owned));
            }
            _ => {}
        }
    }
    for (call, arguments) in std::mem::take(&mut *tools.ran.lock().unwrap()) {
        assert!(has_started[place(call)], "the call {call} ran");
        decisions[place(call)].arguments = Some(arguments);
    }
    decisions.into()
}

/// Feeds a run in pieces of so many characters, and waits after each for what it starts.
fn played(tools: &Tools, reply: &Reply, piece: usize) -> Seen {
    block_on(async {
        let builder = Run::builder(tools.toolbox.clone()).dialect(reply.dialect());
        let mut run = builder.gate(approve).build().unwrap();
        run.listen();
        let mut turn = run.turn();
        let characters: Vec<char> = reply.text.chars().collect();
        for piece in characters.chunks(piece) {
            turn.feed(piece.iter().collect::<String>());
            if piece.len() < characters.len() {
                turn.caught_up().await;
            }
        }
        turn.finish(reply.stop()).await;
        let events: Vec<RunEvent> = std::iter::from_fn(|| run.try_event()).collect();
        of_events(tools, &events)
    })
}

/// `run` with a file.
pub(crate) fn whole(tools: &Tools, reply: &Reply) -> Seen {
    played(tools, reply, usize::MAX)
}

/// `run` with a pipe.
pub(crate) fn streamed(tools: &Tools, reply: &Reply) -> Seen {
    played(tools, reply, 5)
}

/// `ask` and `chat`.
pub(crate) fn ask(tools: &Tools, reply: &Reply) -> Seen {
    block_on(async {
        let first = ScriptedReply::new().text(reply.text.clone());
        let first = first.finish(Finish::new(reply.stop()));
        let model = Scripted::with(move |number, _| {
            if number == 0 {
                first.clone()
            } else {
                ScriptedReply::new().text("Done.")
            }
        });
        let agent = Agent::builder(model).dialect(reply.dialect());
        let agent = agent.tools(tools.toolbox.clone()).gate(approve);
        let mut stream = agent.build().unwrap().stream("Do it.").unwrap();
        let mut events = Vec::new();
        while let Some(event) = stream.next().await {
            if let AgentEvent::Run(event) = event {
                let is_end = matches!(*event, RunEvent::TurnEnd(_));
                events.push(*event);
                if is_end {
                    break;
                }
            }
        }
        of_events(tools, &events)
    })
}

/// Durable runs.
pub(crate) fn durable(tools: &Tools, reply: &Reply) -> Seen {
    block_on(async {
        let settings = DurableSettings::new(tools.toolbox.clone()).unwrap();
        let settings = settings.dialect(reply.dialect());
        let mut run = settings.start(settings.begin(json!({}))).unwrap();
        run.turn(&reply.text, reply.stop(), None, None, Duration::ZERO);
        while let Some(step) = run.next_step() {
            match step {
                Step::Ask { request, .. } => {
                    run.decide(request.call, Ok(Answer::Allow), Duration::ZERO);
                }
                Step::Start(start) => {
                    let call = start.call;
                    let runner = settings.runner();
                    let end = runner.run(*start, "key", CancellationToken::new()).await;
                    run.end_call(call, end, Duration::ZERO);
                }
                _ => {}
            }
        }
        of_events(tools, &run.take_events())
    })
}
