//! Runs the examples of `spec/running.md` and `tests/examples/*.md`. The last section of `spec/running.md` defines their
//! notation.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a test fails by panicking"
)]

use std::collections::HashMap;
use std::path::{Path, PathBuf};

use plaincall_plan::{
    Action, CallIndex, Limits, Link, Order, Outcome, Plan, PlanError, RejectReason, Reply, Tool,
    ToolIndex,
};

struct Example {
    plan: Plan,
    tools: HashMap<String, ToolIndex>,
    gate_asks: bool,
}

/// Runs one example. Returns the first difference as an error.
fn check(source: &str) -> Result<(), String> {
    let lines: Vec<&str> = source.lines().filter(|l| !l.trim().is_empty()).collect();
    let is_setup = |line: &&str| {
        let word = line.split_whitespace().next().unwrap();
        ["limit", "calls", "tool", "gate"].contains(&word)
    };
    let (setup, script) = lines.split_at(lines.iter().take_while(|line| is_setup(line)).count());
    let mut example = set_up(setup);
    for line in script {
        let (input, expected) = line.split_once("->").unwrap_or((line, ""));
        let (input, expected) = (input.trim(), expected.trim());
        let found = if let Some(states) = input.strip_prefix("is ") {
            let found = example.plan.calls().map(|call| call.state().to_string());
            let found = found.collect::<Vec<_>>().join(", ");
            if found != states {
                return Err(format!("{line}: the states are {found}"));
            }
            String::new()
        } else {
            let is_refused = example.input(input).is_err();
            let mut found = if is_refused {
                vec!["refused".into()]
            } else {
                vec![]
            };
            example.drain(&mut found);
            found.join(", ")
        };
        if found != expected {
            return Err(format!("{line}\n  gives: {found}"));
        }
        let counts = example.plan.counts();
        let total = (counts.ended.total() + counts.unended()) as usize;
        if total != example.plan.calls().len() {
            return Err(format!("{line}: the counts add up to {total}"));
        }
    }
    Ok(())
}

fn set_up(lines: &[&str]) -> Example {
    let mut limits = Limits::default();
    let mut tools = Vec::new();
    let mut gate_asks = false;
    for line in lines {
        let words: Vec<&str> = line.split_whitespace().collect();
        match words[..] {
            ["limit", limit] => limits.concurrent = Some(limit.parse().unwrap()),
            ["calls", limit] => limits.calls_per_turn = Some(limit.parse().unwrap()),
            ["gate", "asks"] => gate_asks = true,
            ["tool", name, ref rest @ ..] => {
                tools.push((name, tool_of(rest)));
            }
            _ => panic!("unknown set-up: {line}"),
        }
    }
    let mut plan = Plan::new(limits);
    let mut names = HashMap::from([(String::new(), plan.add_tool(Tool::default()))]);
    for (name, tool) in tools {
        names.insert(name.into(), plan.add_tool(tool));
    }
    Example {
        plan,
        tools: names,
        gate_asks,
    }
}

fn tool_of(words: &[&str]) -> Tool {
    let mut tool = Tool::default();
    let mut words = words.iter();
    while let Some(&word) = words.next() {
        match word {
            "max" => tool.max_concurrent = Some(words.next().unwrap().parse().unwrap()),
            "exclusive" => tool.exclusive = true,
            "read" => tool.read = true,
            "deferred" => tool.deferred = true,
            "delegates" => tool.delegates = true,
            "tolerated" => tool.tolerated = true,
            _ => panic!("unknown property of a tool: {word}"),
        }
    }
    tool
}

impl Example {
    fn input(&mut self, input: &str) -> Result<(), PlanError> {
        let plan = &mut self.plan;
        let (head, dependencies) = input.split_once(':').unwrap_or((input, ""));
        let ids = dependencies.split(',').map(str::trim);
        let ids: Vec<&str> = ids.filter(|id| !id.is_empty()).collect();
        let words: Vec<&str> = head.split_whitespace().collect();
        let call = |number: &str| CallIndex::new(number.parse().unwrap());
        let order = |stop_on_error| Order::Sequential { stop_on_error };
        match words[..] {
            ["turn"] => plan.begin_turn(Order::Graph),
            ["turn", "sequential"] => plan.begin_turn(order(false)),
            ["turn", "sequential", "stop"] => plan.begin_turn(order(true)),
            ["calls", most] => {
                plan.limit_calls_per_turn(Some(most.parse().unwrap()));
                Ok(())
            }
            ["end"] => plan.end_turn(Reply::Complete),
            ["end", "truncated"] => plan.end_turn(Reply::Truncated),
            ["cancel"] => {
                plan.cancel_all();
                Ok(())
            }
            ["open", id] => plan.declare(id).map(|_| ()),
            ["close", number] => {
                let (number, tool) = number.split_once('@').unwrap_or((number, ""));
                plan.complete(call(number), self.tools[tool], ids)
            }
            ["wrong", number] => plan.reject(call(number), "wrong"),
            ["allow", number] => plan.admit(call(number)),
            ["deny", number] => plan.deny(call(number), "denied"),
            ["ok", number] => plan.finish(call(number), Outcome::Ok),
            ["error", number] => plan.finish(call(number), Outcome::Error),
            ["cancelled", number] => plan.finish(call(number), Outcome::Cancelled),
            ["unknown", number] => plan.finish(call(number), Outcome::Unknown),
            ["back", "off", number] => plan.back_off(call(number)),
            ["retry", number] => plan.retry(call(number)),
            ["aside", number] => plan.set_aside(call(number)),
            [header] => {
                let (id, tool) = header.split_once('@').unwrap_or((header, ""));
                let call = plan.declare(id)?;
                let state = plan.call(call).unwrap().state();
                match plan.complete(call, self.tools[tool], ids) {
                    // The call ended when it appeared, which is correct.
                    Err(PlanError::InvalidState(refused)) if refused == state => Ok(()),
                    result => result,
                }
            }
            _ => panic!("unknown input: {input}"),
        }
    }

    fn drain(&mut self, found: &mut Vec<String>) {
        while let Some(action) = self.plan.next_action() {
            match action {
                Action::Ready(call) if !self.gate_asks => self.plan.admit(call).unwrap(),
                action => found.push(in_words(&action)),
            }
        }
    }
}

fn in_words(action: &Action) -> String {
    match action {
        Action::Ready(call) => format!("ready {call}"),
        Action::Start(call) => format!("start {call}"),
        Action::Cancel(call) => format!("cancel {call}"),
        Action::Stop(call) => format!("stop {call}"),
        Action::Skip { call, because } => {
            let link = match because.link {
                Link::Dependency => "for",
                Link::Order => "after",
            };
            format!(
                "skip {call} {link} {} from {}",
                because.direct, because.root
            )
        }
        Action::Reject { call, reason } => {
            let reason = match reason {
                RejectReason::DuplicateId { first, .. } => format!("duplicate {first}"),
                RejectReason::TooManyCalls { .. } => "limit".into(),
                RejectReason::SelfDependency { .. } => "self".into(),
                RejectReason::UnknownIds { ids } => format!("unknown {}", ids.join(" ")),
                RejectReason::Cycle { calls } => {
                    let calls = calls.iter().map(|(call, _)| call.to_string());
                    format!("cycle {}", calls.collect::<Vec<_>>().join(" "))
                }
                RejectReason::Unfinished => "unfinished".into(),
                RejectReason::TruncatedReply => "truncated".into(),
                RejectReason::Invalid(reason) | RejectReason::Denied(reason) => reason.clone(),
                other => panic!("a reason without a name: {other:?}"),
            };
            format!("reject {call} {reason}")
        }
    }
}

/// Runs every fence of a file that is marked `plan`. There must be at least `at_least`.
fn check_file(path: &Path, at_least: usize) {
    let text = std::fs::read_to_string(path).unwrap();
    let (mut fences, mut wrong) = (0, Vec::new());
    let mut lines = text.lines().zip(1..);
    while let Some((line, number)) = lines.next() {
        if line == "```plan" {
            let body = lines.by_ref().map(|(line, _)| line);
            let body: Vec<&str> = body.take_while(|line| *line != "```").collect();
            fences += 1;
            if let Err(difference) = check(&body.join("\n")) {
                wrong.push(format!("{}:{number}: {difference}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "\n{}", wrong.join("\n"));
    assert!(fences >= at_least, "{}: {fences} examples", path.display());
}

fn crate_directory() -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn the_specification() {
    check_file(&crate_directory().join("../../spec/running.md"), 35);
}

#[test]
fn invalid_inputs_return_errors_and_change_nothing() {
    check_file(&crate_directory().join("tests/examples/misuse.md"), 8);
}

#[test]
fn corner_cases() {
    check_file(&crate_directory().join("tests/examples/corners.md"), 47);
}

/// This holds in each order, and if earlier turns have a call with the same id.
#[test]
fn the_id_of_a_call_means_the_call_itself() {
    for stop_on_error in [None, Some(false), Some(true)] {
        let order = stop_on_error.map_or(Order::Graph, |stop_on_error| Order::Sequential {
            stop_on_error,
        });
        let mut plan = Plan::new(Limits::default());
        let tools = [(); 2].map(|()| plan.add_tool(Tool::default()));
        for tool in tools {
            plan.begin_turn(order).unwrap();
            let call = plan.declare("a").unwrap();
            plan.complete(call, tool, ["a"]).unwrap();
            let view = plan.call(call).unwrap();
            let meant: Vec<_> = view.dependencies().map(|to| to.call).collect();
            assert_eq!(meant, [Some(call)], "{tool:?}, {order:?}");
            plan.end_turn(Reply::Complete).unwrap();
        }
    }
}

#[test]
fn actions_that_are_taken_late_are_up_to_date() {
    let mut plan = Plan::new(Limits::default());
    let tool = plan.add_tool(Tool::default());
    plan.begin_turn(Order::Graph).unwrap();
    let first = plan.declare("a").unwrap();
    plan.complete(first, tool, [""; 0]).unwrap();
    let second = plan.declare("b").unwrap();
    plan.complete(second, tool, [""; 0]).unwrap();
    plan.admit(second).unwrap();
    plan.reject(first, "wrong").unwrap();
    plan.cancel_all();
    let actions: Vec<String> = std::iter::from_fn(|| plan.next_action())
        .map(|action| in_words(&action))
        .collect();
    assert_eq!(actions, ["reject 0 wrong", "cancel 1"]);
}

#[test]
fn a_wrong_example_is_found() {
    assert!(check("turn\na -> start 0").is_ok());
    assert!(check("turn\na").is_err());
    assert!(check("turn\na -> start 1").is_err());
    assert!(check("turn\na -> start 0\nis ok").is_err());
}
