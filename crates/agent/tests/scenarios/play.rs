//! Plays a scenario: a real client, a server that does what is written, and the agent between them.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::model::{Message, Model, OpenAi, Retries, Role};
use plaincall_agent::plaincall::{
    CallResult, Dialect, Policy, Rules, RunEvent, RunEvents, Toolbox, policy::Writes, rules::Rule,
};
use plaincall_agent::{
    Agent, AgentError, AgentEvent, AgentLimits, Answer, Conversation, OnNoToolCall,
};
use plaincall_testkit::model_server::ModelServer;
use tokio::time::{sleep, timeout};

use crate::scenarios::neutral::{fits, spelled, with_ids};
use crate::scenarios::order::Order;
use crate::scenarios::reported::{check_turns, replies, reported};
use crate::scenarios::scenario::{Policies, Scenario, Step};
use crate::scenarios::scripts::script;
use crate::scenarios::shared_state::{SharedState, WrittenGate, WrittenUser};

/// The longest that is waited for anything. No scenario means to wait so long.
const PATIENCE: Duration = Duration::from_secs(30);

/// How a question has ended; `None` if it was dropped.
type Ended = Option<Result<Answer, AgentError>>;

/// A conversation that is played.
struct Played {
    shared: Arc<SharedState>,
    server: ModelServer,
    tools: Toolbox,
    talk: Conversation,
    order: Order,
    events: RunEvents,
    /// How many turns have begun and not ended.
    open: u32,
    /// How all calls have ended.
    results: Vec<CallResult>,
    /// What the model has written, in order.
    written: Vec<String>,
    /// How many requests were looked at.
    seen: usize,
}

/// What happened while a question was worked on.
#[derive(Default)]
struct Observed {
    events: Vec<String>,
    messages: Vec<String>,
    retries: u32,
    shortened: usize,
}

/// Plays a scenario in a syntax.
pub(crate) async fn play(scenario: &Scenario, syntax: &str) {
    let server = ModelServer::start(Vec::new()).await;
    let gate = scenario.gate.as_deref().unwrap_or_default();
    let user = scenario.user.as_deref().unwrap_or_default();
    let shared = SharedState::new(gate, user);
    let tools = shared.toolbox(scenario.tools.as_deref());
    let agent = agent(scenario, syntax, &server, &shared, &tools);
    let talk = agent.conversation().unwrap();
    for (path, text) in &scenario.files {
        let text = spelled(text, talk.dialect(), &tools);
        shared.files.lock().unwrap().insert(path.clone(), text);
    }
    let mut played = Played {
        shared,
        server,
        tools,
        order: Order::default(),
        events: talk.events(),
        open: 0,
        results: Vec::new(),
        written: Vec::new(),
        seen: 0,
        talk,
    };
    for (number, step) in scenario.step.iter().enumerate() {
        let done = timeout(PATIENCE, played.step(step)).await;
        assert!(done.is_ok(), "question {number} takes too long");
    }
    let Played {
        server,
        talk,
        shared,
        ..
    } = played;
    drop(talk);
    everything_has_ended(&shared).await;
    server.until(|seen| seen.busy == 0).await;
}

fn agent(
    scenario: &Scenario,
    syntax: &str,
    server: &ModelServer,
    shared: &Arc<SharedState>,
    tools: &Toolbox,
) -> Agent {
    let mut dialect = if syntax == "emoji" {
        Dialect::emoji()
    } else {
        Dialect::block()
    };
    if let Some([start, end, argument]) = &scenario.markers {
        dialect = dialect.start(start).end(end).arg(argument);
    }
    if let Some([open, close]) = &scenario.reasoning {
        dialect = dialect.leading_reasoning(open, close);
    }
    let mut agent = Agent::builder(model(server, "first"))
        .tools(tools.clone())
        .dialect(dialect)
        .system(&*scenario.system)
        .limits(limits(scenario))
        .retries(retries())
        .policy(policy(&scenario.policy))
        .rules(rules(&scenario.rules));
    if scenario.keyed {
        agent = agent.keyed();
    }
    agent = match &scenario.gate {
        Some(_) => agent.gate(WrittenGate(Arc::clone(shared))),
        None => agent.allow_all(),
    };
    if scenario.user.is_some() {
        agent = agent.user(WrittenUser(Arc::clone(shared)));
    }
    agent = agent.on_no_tool_call(match scenario.on_no_tool_call.as_deref() {
        None | Some("answer") => OnNoToolCall::Answer,
        Some("ask_back") => OnNoToolCall::AskUser,
        Some("remind") => OnNoToolCall::Remind,
        Some(other) => panic!("{other} is nothing that a reply without a call can mean"),
    });
    agent.build().unwrap()
}

fn model(server: &ModelServer, name: &str) -> impl Model {
    OpenAi::new(server.url(), name)
}

fn retries() -> Retries {
    let mut retries = Retries::default();
    retries.max_retries = 2;
    retries.initial_delay = Duration::from_millis(2);
    retries.max_delay = Duration::from_millis(4);
    retries
}

fn limits(scenario: &Scenario) -> AgentLimits {
    let wanted = &scenario.limits;
    let mut limits = AgentLimits::default();
    limits.turns = wanted.turns.unwrap_or(limits.turns);
    limits.calls = wanted.calls.unwrap_or(limits.calls);
    limits.time = wanted.time_ms.map_or(limits.time, Duration::from_millis);
    limits.tokens = wanted.tokens;
    limits.repairs = wanted.repairs.unwrap_or(limits.repairs);
    limits.same_failure = wanted.same_failure.unwrap_or(limits.same_failure);
    limits.reminders = wanted.reminders.unwrap_or(limits.reminders);
    limits.context = wanted.context;
    limits.reply_tokens = wanted.reply_tokens;
    limits
}

fn policy(wanted: &Policies) -> Policy {
    let default = Policy::default();
    default
        .calls_per_turn(wanted.calls_per_turn)
        .concurrent(wanted.concurrent.unwrap_or(default.concurrent))
        .result_limit(wanted.result_limit.unwrap_or(default.result_limit))
        .turn_timeout(wanted.turn_timeout_ms.map(Duration::from_millis))
        .gate_timeout(
            wanted
                .gate_timeout_ms
                .map_or(default.gate_timeout, Duration::from_millis),
        )
        .writes(if wanted.writes_at_end {
            Writes::AtEndOfTurn
        } else {
            Writes::AtOnce
        })
}

fn rules(wanted: &[String]) -> Rules {
    Rules::new(wanted.iter().map(|rule| {
        let (word, tool) = rule.split_once(' ').unwrap();
        match word {
            "allow" => Rule::allow([tool]),
            "ask" => Rule::ask([tool]),
            "deny" => Rule::deny([tool], "a rule forbids it"),
            _ => panic!("no rule: {rule}"),
        }
    }))
}

/// Waits until nothing works any more.
async fn everything_has_ended(shared: &SharedState) {
    let is_empty = async {
        while shared.tools.count() + shared.people.count() > 0 {
            sleep(Duration::from_millis(1)).await;
        }
    };
    assert!(
        timeout(PATIENCE, is_empty).await.is_ok(),
        "something still works"
    );
}

impl Played {
    async fn step(&mut self, step: &Step) {
        if let Some(name) = &step.model {
            self.talk.set_model(model(&self.server, name));
        }
        let dialect = self.talk.dialect().clone();
        let spell = |text: &str| spelled(text, &dialect, &self.tools);
        let scripts: Vec<_> = step
            .replies
            .iter()
            .map(|reply| script(reply, spell))
            .collect();
        self.server
            .play(scripts.iter().map(|(script, _)| script.clone()));
        let appeared: BTreeSet<u32> = self.order.appeared.keys().copied().collect();
        let ran_before = self.shared.ran.lock().unwrap().len();
        let starts: u32 = self.order.starts.values().sum();

        let question = spell(&step.ask);
        let mut observed = Observed::default();
        let ended = self.ask(&question, step, &mut observed).await;
        if step.pause.is_some() {
            tokio::time::resume();
        }
        self.observe().await;

        everything_has_ended(&self.shared).await;
        self.server.until(|seen| seen.busy == 0).await;
        let seen = self.server.seen();
        assert_eq!(
            seen.surplus, 0,
            "the model is asked more often than it answers"
        );
        assert_eq!(
            self.server.left(),
            0,
            "the model is asked less often than it answers"
        );
        self.check_ending(step, &ended);
        self.check_calls(step, &appeared, ended.is_none());
        let ran = self.shared.ran.lock().unwrap()[ran_before..].to_vec();
        if ended.is_some() {
            let started: u32 = self.order.starts.values().sum();
            assert_eq!(
                ran.len(),
                (started - starts) as usize,
                "what started and what ran"
            );
        }
        if let Some(expected) = &step.ran {
            let (mut ran, mut expected) = (ran, expected.clone());
            // Calls of one reply that do not wait for one another are started in any order.
            if !step.in_order {
                ran.sort();
                expected.sort();
            }
            assert_eq!(ran, expected, "what ran");
        }
        self.check_requests(
            step,
            &scripts
                .into_iter()
                .map(|(_, text)| text)
                .collect::<Vec<_>>(),
        );
        assert_eq!(observed.retries, step.retries, "retries");
        assert_eq!(observed.shortened, step.shortened, "shortened results");
        let messages = observed.messages.iter().map(String::as_str);
        self.check_texts(
            "program messages",
            &step.program_messages,
            &messages.collect::<Vec<_>>(),
        );
        if let Some(expected) = &step.events {
            assert_eq!(observed.events.join(" "), *expected, "events");
        }
    }

    /// Reads the events of the run until all turns have ended.
    async fn observe(&mut self) {
        loop {
            let next = match self.events.try_next() {
                None if self.open > 0 => self.events.next().await,
                next => next,
            };
            match next {
                None => break,
                Some(RunEvent::Turn(_)) => self.open += 1,
                Some(RunEvent::TurnEnd(_)) => self.open -= 1,
                Some(RunEvent::Result(result)) => self.results.push(result),
                Some(_) => {}
            }
        }
        self.results.sort_by_key(|result| result.call);
    }

    /// Asks, until there is an answer or the time to cancel or drop it has come.
    async fn ask(&mut self, question: &str, step: &Step, observed: &mut Observed) -> Ended {
        let point = step
            .cancel
            .as_deref()
            .or(step.drop.as_deref())
            .or(step.pause.as_deref())
            .unwrap_or_default();
        let (point, mut nth) = match point.split_once(' ') {
            Some((point, nth)) => (point, nth.parse::<u32>().unwrap()),
            None => (point, 1),
        };
        let asked = self.seen + nth as usize;
        let mut asking = if step.resume {
            self.talk.resume()
        } else {
            self.talk.stream(question)
        };
        let cancel = asking.cancellation();
        if point == "before" {
            cancel.cancel();
        }
        let mut is_waiting = point == "asked";
        loop {
            let event = tokio::select! {
                event = asking.next() => event,
                () = self.server.until(|seen| seen.requests.len() >= asked), if is_waiting => {
                    is_waiting = false;
                    if step.pause.is_some() {
                        tokio::time::pause();
                    } else if step.drop.is_some() {
                        self.order.dropped();
                        return None;
                    } else {
                        cancel.cancel();
                    }
                    continue;
                }
            };
            let Some(event) = event else { break };
            self.order.take(&event);
            if let Some(kind) = observed.take(event)
                && kind == point
                && nth > 0
            {
                nth -= 1;
                if nth == 0 && step.drop.is_some() {
                    self.order.dropped();
                    return None;
                }
                if nth == 0 && step.pause.is_some() {
                    tokio::time::pause();
                } else if nth == 0 {
                    cancel.cancel();
                }
            }
        }
        let answer = asking.answer().await;
        if answer.is_ok() {
            self.order.ended();
        }
        self.order.dropped();
        Some(answer)
    }

    fn check_ending(&self, step: &Step, ended: &Ended) {
        let Some(ended) = ended else {
            assert!(step.answer.is_none() && step.error.is_none() && step.drop.is_some());
            return;
        };
        let progress = match ended {
            Ok(answer) => {
                let expected = step
                    .answer
                    .as_deref()
                    .unwrap_or_else(|| panic!("an answer: {answer:?}"));
                let expected = with_ids(expected, self.talk.dialect());
                assert!(fits(&expected, &answer.text), "the answer: {answer:?}");
                assert_eq!(answer.finished_by.as_deref(), step.finished_by.as_deref());
                answer.progress
            }
            Err(error) => {
                let expected = step
                    .error
                    .as_deref()
                    .unwrap_or_else(|| panic!("an error: {error}"));
                let (kind, part) = expected.split_once(": ").unwrap_or((expected, ""));
                let found = format!("{:?}", error.kind);
                let found = found
                    .split(|character: char| !character.is_alphanumeric())
                    .next();
                let is_expected = kind.split(" or ").any(|kind| found == Some(kind));
                assert!(is_expected, "the error: {error:?}");
                assert!(error.to_string().contains(part), "the error: {error}");
                *error.progress
            }
        };
        let counts = (step.turns, step.repairs);
        assert_eq!(counts.0.unwrap_or(progress.turns), progress.turns, "turns");
        assert_eq!(
            counts.1.unwrap_or(progress.repairs),
            progress.repairs,
            "repairs"
        );
        if let Some(usage) = step.usage {
            assert_eq!(
                usage,
                [progress.usage.input, progress.usage.output],
                "usage"
            );
        }
    }

    fn check_calls(&self, step: &Step, before: &BTreeSet<u32>, is_dropped: bool) {
        // What came of a dropped question may be observed late.
        let is_new = |call: &u32| self.order.appeared.contains_key(call) && !before.contains(call);
        let found: Vec<String> = self
            .results
            .iter()
            .filter(|result| is_new(&result.call))
            .map(|result| {
                let texts = [&result.error, &result.output, &result.note];
                let texts: Vec<&str> = texts.into_iter().flatten().map(|text| &**text).collect();
                format!(
                    "{} {}: {}",
                    result.name,
                    result.status.as_str(),
                    texts.join("; ")
                )
            })
            .collect();
        if is_dropped && step.calls.is_empty() {
            return;
        }
        let is_same = found.len() == step.calls.len()
            && found.iter().zip(&step.calls).all(|(found, expected)| {
                let (head, part) = expected.split_once(": ").unwrap_or((expected, ""));
                found.starts_with(&format!("{head}: ")) && found.contains(part)
            });
        assert!(is_same, "calls: {found:#?}");
    }

    /// Looks at what the model was asked meanwhile.
    fn check_requests(&mut self, step: &Step, texts: &[String]) {
        let seen = self.server.seen();
        let new = &seen.requests[self.seen..];
        self.seen = seen.requests.len();
        let mut last = Vec::new();
        let requests: Vec<Vec<Message>> = new.iter().map(|asked| messages(&asked.json())).collect();
        for (request, text) in requests.iter().zip(texts) {
            check_turns(request);
            // The requests contain its earlier replies byte for byte; the last may be truncated.
            let read = replies(request);
            let count = self.written.len();
            if let Some((cut, whole)) = self.written.split_last() {
                assert_eq!(read[..count - 1], *whole, "the model's own words");
                match read.get(count - 1) {
                    Some(read) if !cut.is_empty() => {
                        assert!(cut.starts_with(read), "{read:?} of {cut:?}");
                    }
                    _ => {}
                }
                let is_cut = read.get(count - 1).map(|read| (*read).to_owned());
                self.written.pop();
                self.written.extend(is_cut);
            } else {
                assert!(read.is_empty());
            }
            if !text.trim().is_empty() {
                self.written.push(text.clone());
            }
            last.push(
                request
                    .last()
                    .map(|message| message.text.to_string())
                    .unwrap_or_default(),
            );
        }
        if let Some(expected) = &step.last_messages {
            let last: Vec<&str> = last.iter().map(String::as_str).collect();
            self.check_texts("last_messages", expected, &last);
        }
        if let (Some(expected), Some(request)) = (&step.messages, requests.last()) {
            let rest = request
                .iter()
                .skip_while(|message| message.role == Role::System);
            let found: Vec<String> = rest
                .map(|message| format!("{}: {}", message.role.name(), message.text))
                .collect();
            let found: Vec<&str> = found.iter().map(String::as_str).collect();
            let dialect = self.talk.dialect();
            let expected: Vec<String> = expected
                .iter()
                .map(|text| spelled(text, dialect, &self.tools))
                .collect();
            self.check_texts("messages", &expected, &found);
        }
        for (field, value) in &step.requests {
            for asked in new {
                assert_eq!(asked.json()[field], *value, "{field} of a request");
            }
        }
        // Each call that ended before is reported exactly once.
        if let Some(request) = requests.last() {
            let reported = reported(request);
            let ended = &self.results;
            assert!(
                reported.len() <= ended.len(),
                "{} calls ended: {reported:#?}",
                ended.len()
            );
            for (reported, ended) in reported.iter().zip(ended) {
                let reported = (&*reported.name, &*reported.id, &*reported.status);
                assert_eq!(reported, (&*ended.name, &*ended.id, ended.status.as_str()));
            }
        }
    }

    fn check_texts(&self, what: &str, expected: &[String], found: &[&str]) {
        let dialect = self.talk.dialect();
        let is_same = expected.len() == found.len()
            && expected
                .iter()
                .zip(found)
                .all(|(expected, found)| fits(&with_ids(expected, dialect), found));
        assert!(is_same, "{what}: {found:#?}");
    }
}

impl Observed {
    /// Takes an event; its kind, if it is one that scenarios name.
    fn take(&mut self, event: AgentEvent) -> Option<&'static str> {
        let kind = match event {
            AgentEvent::TurnBegin { .. } => "begin",
            AgentEvent::Retry { .. } => {
                self.retries += 1;
                "retry"
            }
            // A line end after a call is no text.
            AgentEvent::Text(text) if text.trim().is_empty() => return None,
            AgentEvent::Text(_) => "text",
            AgentEvent::Reasoning(_) => "reasoning",
            AgentEvent::Call { .. } => "call",
            AgentEvent::Value { .. } => "value",
            AgentEvent::Run(event) => match *event {
                RunEvent::Ready(_) => "ready",
                RunEvent::Start(_) => "start",
                RunEvent::Result(_) => "result",
                RunEvent::Cancel(_) => "cancel",
                _ => return None,
            },
            AgentEvent::TurnEnd { .. } => "end",
            AgentEvent::Message { text } => {
                self.messages.push(text.to_string());
                "message"
            }
            AgentEvent::Shortened { results, .. } => {
                self.shortened += results;
                "shortened"
            }
            _ => return None,
        };
        // How many pieces a text comes in is up to the server.
        let is_piece = matches!(kind, "text" | "reasoning");
        let is_same = self.events.last().is_some_and(|last| last == kind);
        // The syntax decides which argument is on the line and which in the body.
        if kind != "value" && !(is_piece && is_same) {
            self.events.push(kind.to_owned());
        }
        Some(kind)
    }
}

/// The messages of a request.
fn messages(request: &serde_json::Value) -> Vec<Message> {
    let messages = request["messages"].as_array().unwrap().iter();
    messages
        .map(|message| {
            let role = match message["role"].as_str() {
                Some("system") => Role::System,
                Some("user") => Role::User,
                Some("assistant") => Role::Assistant,
                role => panic!("unknown role {role:?}"),
            };
            Message::new(role, message["content"].as_str().unwrap())
        })
        .collect()
}
