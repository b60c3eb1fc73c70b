//! The agents of a scenario.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::model::{Model, OpenAi, Retries};
use plaincall_agent::plaincall::{
    Dialect, Policy, Rules, Tool, Toolbox, policy::Writes, rules::Rule,
};
use plaincall_agent::{Agent, AgentLimits, OnNoToolCall, Scripted};
use plaincall_testkit::model_server::ModelServer;

use crate::scenarios::neutral::spelled;
use crate::scenarios::scenario::{Limits, Policies, Scenario};
use crate::scenarios::shared_state::{SharedState, WrittenGate, WrittenUser};

/// Returns the agent that gets the questions, and the models of its subagents.
pub(crate) fn agent(
    scenario: &Scenario,
    syntax: &str,
    server: &ModelServer,
    shared: &Arc<SharedState>,
    all: &Toolbox,
) -> (Agent, BTreeMap<String, Scripted>) {
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
        .tools(only(all, scenario.tools.as_deref()))
        .dialect(dialect.clone())
        .system(&*scenario.system)
        .limits(limits(&scenario.limits))
        .retries(retries())
        .policy(policy(&scenario.policy))
        .rules(rules(&scenario.rules));
    if scenario.keyed {
        agent = agent.keyed();
    }
    agent = match &scenario.gate {
        Some(answers) if answers.is_empty() => agent,
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
    let mut models = BTreeMap::new();
    let used: Vec<&String> = scenario
        .agents
        .values()
        .flat_map(|own| &own.agents)
        .collect();
    for name in scenario.agents.keys().filter(|name| !used.contains(name)) {
        let own = subagent(scenario, name, &dialect, all, &mut models);
        agent = agent.subagent(name, "Works on a task.", own);
    }
    (agent.build().unwrap(), models)
}

/// Returns an agent that is a tool.
fn subagent(
    scenario: &Scenario,
    name: &str,
    dialect: &Dialect,
    all: &Toolbox,
    models: &mut BTreeMap<String, Scripted>,
) -> Agent {
    let wanted = &scenario.agents[name];
    let tools = only(all, Some(&wanted.tools));
    let mut agents = Vec::new();
    for name in &wanted.agents {
        agents.push((name, subagent(scenario, name, dialect, all, models)));
    }
    let build = |model: Scripted| {
        let mut agent = Agent::builder(model)
            .tools(tools.clone())
            .rules(rules(&wanted.rules))
            .limits(limits(&wanted.limits));
        for (name, own) in &agents {
            agent = agent.subagent(*name, "Works on a task.", own.clone());
        }
        agent.build().unwrap()
    };
    // The definitions of its tools decide how its calls are written.
    let tools = build(Scripted::new([""; 0])).tools().clone();
    let replies = wanted.replies.iter();
    let model = Scripted::new(replies.map(|text| spelled(text, dialect, &tools)));
    models.insert(name.to_owned(), model.clone());
    build(model)
}

/// The tools with these names, or all.
fn only(all: &Toolbox, names: Option<&[String]>) -> Toolbox {
    let is_wanted =
        |tool: &&Tool| names.is_none_or(|names| names.iter().any(|name| name == tool.name()));
    Toolbox::new(all.iter().filter(is_wanted).cloned()).unwrap()
}

pub(crate) fn model(server: &ModelServer, name: &str) -> impl Model {
    OpenAi::new(server.url(), name)
}

fn retries() -> Retries {
    let mut retries = Retries::default();
    retries.max_retries = 2;
    retries.initial_delay = Duration::from_millis(2);
    retries.max_delay = Duration::from_millis(4);
    retries
}

pub(crate) fn limits(wanted: &Limits) -> AgentLimits {
    let mut limits = AgentLimits::default();
    limits.turns = wanted.turns.unwrap_or(limits.turns);
    limits.calls = wanted.calls.unwrap_or(limits.calls);
    limits.time = wanted.time_ms.map_or(limits.time, Duration::from_millis);
    limits.tokens = wanted.tokens;
    limits.repairs = wanted.repairs.unwrap_or(limits.repairs);
    limits.same_failure = wanted.same_failure.unwrap_or(limits.same_failure);
    limits.same_result = wanted.same_result.unwrap_or(limits.same_result);
    limits.reminders = wanted.reminders.unwrap_or(limits.reminders);
    limits.context = wanted.context;
    limits.reply_tokens = wanted.reply_tokens;
    limits
}

pub(crate) fn policy(wanted: &Policies) -> Policy {
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

pub(crate) fn rules(wanted: &[String]) -> Rules {
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
