//! The other drivers of the agent loop: an engine of durable runs, and the conversation of a subagent. A scenario that needs nothing
//! else ends there as it does in a conversation.

use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::agent_loop::{AgentLoop, Effect, Next, ReadReply, Turned};
use plaincall_agent::model::{Model, ModelRequest, Piece, ReplyNext};
use plaincall_agent::plaincall::durable::{DurableRun, DurableSettings, Step as RunStep};
use plaincall_agent::plaincall::reply::Untrusted;
use plaincall_agent::plaincall::{
    AllowAll, Gate, ReadOnly, RunEvent, Status, TurnResults, events::Author,
};
use plaincall_agent::{Agent, AgentError, AgentErrorKind, Finish, Scripted, Usage};
use plaincall_testkit::model_server::ModelServer;
use serde_json::json;
use tokio::task::JoinSet;
use tokio_util::sync::CancellationToken;

use crate::scenarios::agents::{agent, limits, model, policy, rules};
use crate::scenarios::neutral::{fits, spelled, with_ids};
use crate::scenarios::play::{check_described, described};
use crate::scenarios::scenario::{Reply, Scenario, Step};
use crate::scenarios::scripts::script;
use crate::scenarios::shared_state::SharedState;

/// Returns whether a scenario needs no other client, clock or user.
pub(crate) fn is_plain(scenario: &Scenario) -> bool {
    let is_plain_reply = |reply: &Reply| match reply {
        Reply::Text(_) => true,
        Reply::More(more) => {
            let ends = [None, Some("stop"), Some("length"), Some("content_filter")];
            more.status.is_none() && more.after_ms == 0 && ends.contains(&more.end.as_deref())
        }
    };
    let is_plain_step = |step: &Step| {
        let stops = [&step.cancel, &step.drop, &step.pause];
        stops.iter().all(|stop| stop.is_none())
            && !step.resume
            && step.schema.is_none()
            && step.model.is_none()
            && step.replies.iter().all(is_plain_reply)
    };
    let gate = scenario.gate.as_ref();
    !scenario.keyed
        && scenario.user.is_none()
        && scenario.agents.is_empty()
        && scenario.on_no_tool_call.is_none()
        && gate.is_none_or(Vec::is_empty)
        && scenario.limits.time_ms.is_none()
        && scenario.policy.turn_timeout_ms.is_none()
        && scenario.step.iter().all(is_plain_step)
}

/// Drives the agent loop as a worker for durable runs does.
struct Engine<'e> {
    run: DurableRun,
    settings: DurableSettings,
    agent_loop: AgentLoop,
    model: Arc<dyn Model>,
    gate: &'e dyn Gate,
    at: Duration,
    /// The last message of each request, and the messages of the program.
    last_messages: Vec<String>,
    messages: Vec<String>,
    shortened: usize,
    calls: Vec<String>,
}

impl Engine<'_> {
    async fn ask(&mut self, question: &str) -> Result<String, AgentError> {
        self.agent_loop.begin_untimed();
        self.agent_loop.add_question(question);
        self.record();
        self.messages.clear();
        let ended = self.answer().await;
        self.record();
        ended.map_err(|kind| self.agent_loop.error(kind))
    }

    async fn answer(&mut self) -> Result<String, AgentErrorKind> {
        loop {
            self.agent_loop.begin_turn()?;
            let request = self.agent_loop.request(self.run.received())?;
            let last = request.messages.last().map(|last| last.text.to_string());
            self.last_messages.extend(last);
            let turned = self.turn(request).await;
            let next = self.agent_loop.evaluate(turned, self.run.received());
            self.record();
            match next? {
                Next::Request => {}
                Next::Answer(answer) => return Ok(answer.text),
                other => panic!("{other:?}"),
            }
        }
    }

    fn record(&mut self) {
        for effect in self.agent_loop.take_effects() {
            match effect {
                Effect::Untrusted { name, text } => {
                    (self.run).observe_untrusted(&name, &Untrusted::new(text), self.at);
                }
                Effect::Message { author, text } => {
                    if author == Author::Program {
                        self.messages.push(text.to_string());
                    }
                    self.run.message(author, text, self.at);
                }
                Effect::Shortened { results, .. } => self.shortened += results,
                other => panic!("{other:?}"),
            }
        }
    }

    async fn turn(&mut self, request: ModelRequest) -> Turned {
        let (written, finish, usage) = whole(&*self.model, request).await;
        let calls = Some(self.agent_loop.calls_left());
        let items = (self.run).turn(&written, finish.stop, None, calls, self.at);
        let mut read = ReadReply::default();
        for item in &items {
            read.item(item, |call| self.run.call_of(call).unwrap_or(u32::MAX));
        }
        let results = self.carry_out().await;
        for result in &results {
            read.result(result, self.settings.tools());
        }
        let added = (self.agent_loop).add_turn(written.clone(), results.to_vec());
        added.unwrap();
        Turned {
            written,
            usage,
            read,
            results,
            finish,
            end: None,
        }
    }

    async fn carry_out(&mut self) -> TurnResults {
        let mut running = JoinSet::new();
        loop {
            while let Some(step) = self.run.next_step() {
                self.at += Duration::from_millis(1);
                match step {
                    RunStep::Ask { request, .. } => {
                        let decision = self.gate.decide(&request).await;
                        self.run.decide(request.call, decision, self.at);
                    }
                    RunStep::Start(start) => {
                        let runner = self.settings.runner();
                        running.spawn(async move {
                            let call = start.call;
                            let stop = CancellationToken::new();
                            (call, runner.run(*start, "key", stop).await)
                        });
                    }
                    RunStep::Wait { call, delay } => self.run.retry(call, self.at + delay),
                    RunStep::TurnEnd => {
                        self.observe();
                        return self.run.results();
                    }
                    RunStep::Forget(_) => {}
                    other => panic!("{other:?}"),
                }
            }
            let ended = running.join_next().await.expect("something runs");
            let (call, end) = ended.unwrap();
            self.run.end_call(call, end, self.at);
        }
    }

    fn observe(&mut self) {
        let mut results = Vec::new();
        for event in self.run.take_events() {
            if let RunEvent::Result(result) = event {
                results.push(result);
            }
        }
        results.sort_by_key(|result| result.call);
        self.calls.extend(results.iter().map(described));
    }
}

/// Returns a whole reply.
async fn whole(model: &dyn Model, request: ModelRequest) -> (String, Finish, Option<Usage>) {
    let mut reply = model.reply(request);
    let (mut text, mut usage) = (String::new(), None);
    loop {
        match reply.next().await.unwrap().unwrap() {
            ReplyNext::Piece(Piece::Text(part)) => text.push_str(&part),
            ReplyNext::Piece(Piece::Usage(so_far)) => usage = Some(so_far),
            ReplyNext::Piece(_) => {}
            ReplyNext::Finish(finish) => return (text, finish, usage),
        }
    }
}

/// Plays a scenario on an engine of durable runs. Returns `false` if such runs do not support its tools.
pub(crate) async fn play_durable(scenario: &Scenario, syntax: &str) -> bool {
    let server = ModelServer::start(Vec::new()).await;
    let shared = SharedState::new(&[], &[]);
    let all = shared.toolbox(None);
    let (agent, _) = agent(scenario, syntax, &server, &shared, &all);
    let talk = agent.conversation().unwrap();
    let dialect = talk.dialect().clone();
    let system = talk.messages();
    let system = system
        .first()
        .map_or(String::new(), |first| first.text.to_string());
    let Ok(settings) = DurableSettings::new(agent.tools().clone()) else {
        return false;
    };
    let settings = settings
        .dialect(dialect.clone())
        .policy(policy(&scenario.policy))
        .rules(rules(&scenario.rules));
    let tools = agent.tools().clone();
    shared.fill(&scenario.files, |text| spelled(text, &dialect, &all));
    let limits = limits(&scenario.limits);
    let mut engine = Engine {
        run: settings.start(settings.begin(json!({}))).unwrap(),
        settings,
        agent_loop: AgentLoop::new(tools.clone(), dialect.clone(), system, limits),
        model: Arc::new(model(&server, "first")),
        gate: if scenario.gate.is_some() {
            &ReadOnly
        } else {
            &AllowAll
        },
        at: Duration::ZERO,
        last_messages: Vec::new(),
        messages: Vec::new(),
        shortened: 0,
        calls: Vec::new(),
    };
    for step in &scenario.step {
        let spell = |text: &str| spelled(text, &dialect, &tools);
        let scripts = step.replies.iter().map(|reply| script(reply, spell).0);
        server.play(scripts.collect::<Vec<_>>());
        let ended = engine.ask(&spell(&step.ask)).await;
        assert_eq!(server.left(), 0, "the model is asked less often");
        check(
            step,
            &ended,
            &with_ids(step.answer.as_deref().unwrap_or_default(), &dialect),
        );
        let is_same = |expected: &[String], found: &[String]| {
            let mut both = expected.iter().zip(found);
            expected.len() == found.len()
                && both.all(|(expected, found)| fits(&with_ids(expected, &dialect), found))
        };
        let found = std::mem::take(&mut engine.last_messages);
        let expected = step.last_messages.as_ref();
        let is_last = expected.is_none_or(|expected| is_same(expected, &found));
        assert!(is_last, "last_messages: {found:#?}");
        let found = std::mem::take(&mut engine.messages);
        assert!(is_same(&step.program_messages, &found), "{found:#?}");
        assert_eq!(std::mem::take(&mut engine.shortened), step.shortened);
        check_described(&step.calls, &std::mem::take(&mut engine.calls));
    }
    true
}

fn check(step: &Step, ended: &Result<String, AgentError>, answer: &str) {
    match ended {
        Ok(text) => assert!(step.answer.is_some() && fits(answer, text), "{text}"),
        Err(error) => {
            let expected = step.error.as_deref().unwrap_or_else(|| panic!("{error}"));
            let (kind, part) = expected.split_once(": ").unwrap_or((expected, ""));
            let found = format!("{:?}", error.kind);
            let is_expected = kind.split(" or ").any(|kind| found.starts_with(kind));
            assert!(is_expected && error.to_string().contains(part), "{error:?}");
        }
    }
}

/// Plays the only question of a scenario as the task of a subagent.
pub(crate) async fn play_subagent(scenario: &Scenario, syntax: &str) -> bool {
    let [step] = &*scenario.step else {
        return false;
    };
    // Limits of the conversation count for both agents, and its gate decides once more.
    if !scenario.rules.is_empty() || scenario.gate.is_some() || step.ask.trim().is_empty() {
        return false;
    }
    let server = ModelServer::start(Vec::new()).await;
    let shared = SharedState::new(&[], &[]);
    let all = shared.toolbox(None);
    let (own, _) = agent(scenario, syntax, &server, &shared, &all);
    let talk = own.conversation().unwrap();
    let dialect = talk.dialect().clone();
    shared.fill(&scenario.files, |text| spelled(text, &dialect, &all));
    let spell = |text: &str| spelled(text, &dialect, own.tools());
    let scripts = step.replies.iter().map(|reply| script(reply, spell).0);
    server.play(scripts.collect::<Vec<_>>());
    let build = |model: Scripted| {
        let agent = Agent::builder(model).dialect(dialect.clone()).allow_all();
        agent
            .subagent("own", "Works on a task.", own.clone())
            .build()
            .unwrap()
    };
    let tools = build(Scripted::new([""; 0])).tools().clone();
    let delegated = format!("@own task={}\n", json!(spell(&step.ask)));
    let outer = build(Scripted::new([
        spelled(&delegated, &dialect, &tools),
        "So.".to_owned(),
    ]));
    let mut talk = outer.conversation().unwrap();
    let mut events = talk.events();
    talk.ask("Go.").await.unwrap();
    let mut ended = None;
    while let Some(event) = events.try_next() {
        if let RunEvent::Result(result) = event
            && &*result.name == "own"
        {
            ended = Some(result);
        }
    }
    let result = ended.expect("the end of the subagent");
    assert_eq!(server.left(), 0, "the model is asked less often");
    match (&step.answer, &step.error) {
        (Some(answer), _) => {
            assert_eq!(result.status, Status::Ok, "{result:?}");
            let output = result.output.as_deref().unwrap_or_default();
            assert!(fits(&with_ids(answer, &dialect), output), "{output}");
        }
        (None, error) => {
            assert_eq!(result.status, Status::Error, "{result:?}");
            let part = error.as_deref().and_then(|error| error.split_once(": "));
            let found = result.error.as_deref().unwrap_or_default();
            assert!(found.contains(part.map_or("", |(_, part)| part)), "{found}");
        }
    }
    true
}
