//! Runs a scenario: a real client, a scripted server, and the agent between them.

use std::collections::{BTreeMap, BTreeSet};
use std::iter::successors;
use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::model::{Message, Role};
use plaincall_agent::plaincall::prompt::answer::AnswerSchema;
use plaincall_agent::plaincall::{CallResult, RunEvent, RunEvents, Toolbox};
use plaincall_agent::{AgentError, AgentEvent, Answer, Conversation};
use plaincall_testkit::model_server::ModelServer;
use tokio::time::{sleep, timeout};

use crate::scenarios::agents::{agent, model};
use crate::scenarios::neutral::{fits, spelled, with_ids};
use crate::scenarios::order::Order;
use crate::scenarios::reported::{check_turns, replies, reported};
use crate::scenarios::scenario::{Scenario, Step};
use crate::scenarios::scripts::script;
use crate::scenarios::shared_state::SharedState;

/// The maximum time for any wait. No scenario needs this long.
const PATIENCE: Duration = Duration::from_mins(5);

/// The outcome of a question; `None` if it was dropped.
type Ended = Option<Result<Answer, AgentError>>;

/// A running conversation.
struct Played {
    shared: Arc<SharedState>,
    server: ModelServer,
    tools: Toolbox,
    talk: Conversation,
    order: Order,
    events: RunEvents,
    /// The number of turns that have begun and not ended.
    open: u32,
    /// The results of all calls.
    results: Vec<CallResult>,
    /// The names of the subagents.
    agents: BTreeSet<String>,
    /// The calls of subagents, with the calls that run them.
    parents: BTreeMap<u32, u32>,
    /// The texts of the model, in order.
    written: Vec<String>,
    /// The number of checked requests.
    seen: usize,
}

/// The events during a question.
#[derive(Default)]
struct Observed {
    events: Vec<String>,
    messages: Vec<String>,
    retries: u32,
    shortened: usize,
}

/// Runs a scenario in a syntax.
pub(crate) async fn play(scenario: &Scenario, syntax: &str) {
    let server = ModelServer::start(Vec::new()).await;
    let gate = scenario.gate.as_deref().unwrap_or_default();
    let user = scenario.user.as_deref().unwrap_or_default();
    let shared = SharedState::new(gate, user);
    let all = shared.toolbox(None);
    let (agent, models) = agent(scenario, syntax, &server, &shared, &all);
    let tools = agent.tools().clone();
    let talk = agent.conversation().unwrap();
    shared.fill(&scenario.files, |text| spelled(text, talk.dialect(), &all));
    let mut played = Played {
        shared,
        server,
        tools,
        order: Order::default(),
        events: talk.events(),
        open: 0,
        results: Vec::new(),
        agents: scenario.agents.keys().cloned().collect(),
        parents: BTreeMap::new(),
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
    let dialect = talk.dialect().clone();
    drop(talk);
    for (name, own) in &scenario.agents {
        let Some(expected) = &own.last_messages else {
            continue;
        };
        let requests = models[name].requests();
        let last: Vec<_> = (requests
            .iter()
            .filter_map(|request| request.messages.last()))
        .map(|message| message.text.to_string())
        .collect();
        let is_same = expected.len() == last.len()
            && (expected.iter().zip(&last))
                .all(|(expected, last)| fits(&with_ids(expected, &dialect), last));
        assert!(is_same, "last_messages of {name}: {last:#?}");
    }
    everything_has_ended(&shared).await;
    server.until(|seen| seen.busy == 0).await;
}

/// Waits until nothing is active.
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
    /// Returns the number of starts of tools that are not agents.
    fn starts(&self) -> u32 {
        let is_tool = |call: &u32| !self.agents.contains(&self.order.appeared[call].1);
        let starts = self.order.starts.iter().filter(|(call, _)| is_tool(call));
        starts.map(|(_, count)| count).sum()
    }

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
        let starts = self.starts();

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
            let started = self.starts();
            assert_eq!(
                ran.len(),
                (started - starts) as usize,
                "what started and what ran"
            );
        }
        if let Some(expected) = &step.ran {
            let (mut ran, mut expected) = (ran, expected.clone());
            // Independent calls of one reply start in any order.
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
                Some(RunEvent::Call(call)) => {
                    if let Some(parent) = call.parent {
                        self.parents.insert(call.call, parent);
                    }
                }
                Some(RunEvent::Result(result)) => self.results.push(result),
                Some(_) => {}
            }
        }
        self.results.sort_by_key(|result| result.call);
    }

    /// Asks, until there is an answer, or until the question is cancelled or dropped.
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
        } else if let Some(schema) = &step.schema {
            let schema = AnswerSchema::new(schema.clone()).unwrap();
            self.talk.stream_as(question, schema)
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
        // Events of a dropped question may be observed late.
        let is_new = |call: &u32| self.order.appeared.contains_key(call) && !before.contains(call);
        let mut new: Vec<&CallResult> = self.results.iter().collect();
        new.retain(|result| is_new(&result.call));
        // A subagent may begin while the reply continues, so its calls come last.
        new.sort_by_key(|result| (self.parents.contains_key(&result.call), result.call));
        let found: Vec<String> = new
            .into_iter()
            .map(|result| {
                let depth = successors(Some(result.call), |call| self.parents.get(call).copied());
                let nested = "> ".repeat(depth.count() - 1);
                format!("{nested}{}", described(result))
            })
            .collect();
        if is_dropped && step.calls.is_empty() {
            return;
        }
        check_described(&step.calls, &found);
    }

    /// Checks the requests since the last check.
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
            let is_written = |result: &&CallResult| !self.parents.contains_key(&result.call);
            let ended: Vec<_> = self.results.iter().filter(is_written).collect();
            assert!(
                reported.len() <= ended.len(),
                "{} calls ended: {reported:#?}",
                ended.len()
            );
            for (reported, ended) in reported.iter().zip(ended) {
                let reported = (&*reported.name, &*reported.id, &*reported.status);
                assert_eq!(reported, (&*ended.name, &*ended.id, ended.status.name()));
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
    /// Handles an event; returns its kind, if scenarios name it.
    fn take(&mut self, event: AgentEvent) -> Option<&'static str> {
        let kind = match event {
            AgentEvent::TurnBegin { .. } => "begin",
            AgentEvent::Retry { .. } => {
                self.retries += 1;
                "retry"
            }
            // A line end after a call is not text.
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
        // The server decides the number of pieces of a text.
        let is_piece = matches!(kind, "text" | "reasoning");
        let is_same = self.events.last().is_some_and(|last| last == kind);
        // The syntax decides which argument is on the line and which in the body.
        if kind != "value" && !(is_piece && is_same) {
            self.events.push(kind.to_owned());
        }
        Some(kind)
    }
}

/// A result as the `calls` of a scenario describe it.
pub(crate) fn described(result: &CallResult) -> String {
    let texts = [&result.error, &result.output, &result.note];
    let texts: Vec<&str> = texts.into_iter().flatten().map(|text| &**text).collect();
    let status = result.status.name();
    format!("{} {status}: {}", result.name, texts.join("; "))
}

pub(crate) fn check_described(expected: &[String], found: &[String]) {
    let mut both = found.iter().zip(expected);
    let is_same = found.len() == expected.len()
        && both.all(|(found, expected)| {
            let (head, part) = expected.split_once(": ").unwrap_or((expected, ""));
            found.starts_with(&format!("{head}: ")) && found.contains(part)
        });
    assert!(is_same, "calls: {found:#?}");
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
