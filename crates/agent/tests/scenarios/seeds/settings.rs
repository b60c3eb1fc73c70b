//! The settings of a random agent.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::plaincall::{Dialect, Policy, Toolbox, policy::Writes};
use plaincall_agent::{Agent, AgentLimits, OnNoToolCall};

use super::LONGEST;
use super::model::Chance;
use super::tools::{ChanceGate, ChanceUser, NAMES, toolbox};
use super::world::World;
use crate::scenarios::changed::Changes;

/// The limits of a question, or of a subagent's task.
pub(super) fn limits(world: &World) -> AgentLimits {
    let short = Duration::from_millis(world.below(1000) as u64);
    let mut limits = AgentLimits::default();
    let is_short = world.one_in(if world.delegates { 12 } else { 6 });
    limits.time = if is_short { short } else { LONGEST };
    if world.delegates && !world.one_in(12) {
        // One limit at most, so that subagents get far enough to reach it.
        match world.below(16) {
            0 => limits.turns = world.pick(&[1, 2, 3, 4, 5, 6, 7, 8]),
            1 => limits.calls = world.pick(&[0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11]),
            2 => limits.tokens = Some(world.below(6000) as u64),
            3 => limits.context = Some(1500 + world.below(4000) as u64),
            _ => {}
        }
        return limits;
    }
    limits.turns = world.pick(&[1, 3, 8, 20, 20]) - u32::from(world.one_in(20));
    limits.calls = world.pick(&[0, 1, 5, 100, 100, 100]);
    limits.tokens = [None, None, None, Some(world.below(6000) as u64)][world.below(4)];
    limits.repairs = world.pick(&[0, 1, 3]);
    limits.same_failure = world.pick(&[0, 1, 3]);
    limits.reminders = world.pick(&[0, 1, 3]);
    limits.context = [None, None, Some(500 + world.below(4000) as u64)][world.below(3)];
    limits
}

/// An agent with a random model, random tools with changes, a random gate and a random user.
pub(super) fn agent(world: &Arc<World>, limits: AgentLimits, changes: &Changes) -> Agent {
    let policy = Policy::default()
        .concurrent(world.pick(&[0, 1, 2, 32]))
        .calls_per_turn([None, None, Some(2)][world.below(3)])
        .turn_timeout([None, None, Some(Duration::from_millis(700))][world.below(3)])
        .gate_timeout(world.pick(&[Duration::from_millis(300), Duration::from_hours(1)]))
        .writes(world.pick(&[Writes::AtOnce, Writes::AtEndOfTurn]))
        .result_limit(world.pick(&[200, 2000, 64 << 10]));
    let dialect = match world.below(4) {
        0 => Dialect::block()
            .start("<<<START:")
            .end("<<<END:")
            .arg("@param:"),
        1 => Dialect::emoji(),
        _ => Dialect::block(),
    };
    let tools = toolbox(world, changes);
    let can_finish = tools.iter().any(|tool| tool.policy().finishes);
    let has_user = world.one_in(2);
    let meaning = world.pick(&[
        OnNoToolCall::Answer,
        OnNoToolCall::AskUser,
        OnNoToolCall::Remind,
    ]);
    let fits = match meaning {
        OnNoToolCall::Answer => true,
        OnNoToolCall::AskUser => can_finish && has_user,
        _ => can_finish,
    };
    let model = |is_nested| {
        let world = Arc::clone(world);
        Chance { world, is_nested }
    };
    let mut agent = Agent::builder(model(false));
    if world.delegates || world.one_in(2) {
        // Both have some of the same tools, and one of them has the other.
        let some = || {
            let left: BTreeSet<&str> = NAMES.iter().copied().filter(|_| !world.one_in(4)).collect();
            tools
                .iter()
                .filter(move |tool| left.contains(tool.name()))
                .cloned()
        };
        let helper = Agent::builder(model(true))
            .tools(Toolbox::new(some()).unwrap())
            .system("You help.")
            .limits(self::limits(world));
        let helper = helper.build().unwrap();
        if world.delegates || world.one_in(2) {
            let leader = Agent::builder(model(true))
                .tools(Toolbox::new(some()).unwrap())
                .system("You lead.")
                .limits(self::limits(world))
                .subagent("helper", "Helps.", helper.clone());
            agent = agent.subagent("leader", "Leads.", leader.build().unwrap());
        }
        agent = agent.subagent("helper", "Helps.", helper);
    }
    let mut agent = agent
        .tools(tools)
        .dialect(dialect)
        .limits(limits)
        .policy(policy)
        .on_no_tool_call(if fits { meaning } else { OnNoToolCall::Answer });
    agent = match world.below(4) {
        0 if !world.delegates => agent,
        1 => agent.allow_all(),
        _ => agent.gate(ChanceGate(Arc::clone(world))),
    };
    if has_user {
        agent = agent.user(ChanceUser(Arc::clone(world)));
    }
    if world.one_in(4) {
        agent = agent.keyed();
    }
    if world.one_in(2) {
        agent = agent.system("Be brief.");
    }
    agent.build().unwrap()
}
