//! Tools that record their starts and ends in a file that all workers share.

use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::time::Duration;

use plaincall::policy::Retry;
use plaincall::tool::Failure;
use plaincall::{Context, Effect, Rules, Tool, ToolResult, Toolbox};
use schemars::JsonSchema;
use serde::Deserialize;
use tokio::time::sleep;

use crate::server::appended;

/// How the tools of a worker differ.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Change {
    None,
    /// `append` is missing.
    Missing,
    /// There is one more tool.
    Added,
    /// `append` has another parameter.
    Schema,
    /// The tools are the same, but their code has another release.
    Version,
    /// A person approves calls.
    Settings,
}

impl Change {
    pub(crate) fn from_name(name: &str) -> Self {
        match name {
            "Missing" => Self::Missing,
            "Added" => Self::Added,
            "Schema" => Self::Schema,
            "Version" => Self::Version,
            "Settings" => Self::Settings,
            _ => Self::None,
        }
    }
}

/// A step of a graph.
#[derive(Clone, Debug, Deserialize, JsonSchema)]
pub(crate) struct Action {
    /// The conversation and the number of the step in it.
    pub(crate) step: String,
    /// How long it takes.
    pub(crate) ms: u64,
    /// Whether it fails.
    #[serde(default)]
    pub(crate) fails: bool,
}

#[derive(Clone, Debug, Deserialize, JsonSchema)]
struct OtherAction {
    step: String,
    ms: u64,
    reason: String,
}

/// Appends a line. The system keeps lines of different processes whole.
fn note(effects: &Path, line: &str) {
    let mut file = appended(&effects.join("effects"));
    file.write_all(format!("{line}\n").as_bytes()).unwrap();
}

/// A start of a tool, as it is noted: the tool, the step, the idempotency key and the output.
pub(crate) struct Start {
    pub(crate) tool: String,
    pub(crate) step: String,
    pub(crate) key: String,
    pub(crate) output: String,
}

/// Returns the starts so far, in order.
pub(crate) fn starts(effects: &Path) -> Vec<Start> {
    let text = std::fs::read_to_string(effects.join("effects")).unwrap_or_default();
    let starts = text.lines().filter_map(|line| {
        let mut words = line.splitn(4, ' ').map(str::to_owned);
        Some(Start {
            tool: words.next()?,
            step: words.next()?,
            key: words.next()?,
            output: words.next()?,
        })
    });
    starts.collect()
}

/// Returns the output or error of a step: it contains what its dependencies returned. The change that the tool makes is the
/// line with its start.
async fn carry_out(effects: PathBuf, tool: &str, step: Action, context: Context) -> ToolResult {
    let parts = context.dependencies().iter().map(|one| &*one.output);
    let parts = parts.collect::<Vec<_>>().join(",");
    let output = format!("{tool}:{}[{parts}]", step.step);
    let key = context.idempotency_key().unwrap_or("-");
    note(&effects, &format!("{tool} {} {key} {output}", step.step));
    sleep(Duration::from_millis(step.ms)).await;
    if step.fails {
        return Err(Failure::new("it failed", Some(output)).into());
    }
    Ok(output)
}

fn tool(name: &'static str, effect: Effect, effects: &Path) -> Tool {
    let effects = effects.to_owned();
    let tool = Tool::new(name, move |step: Action, context| {
        carry_out(effects.clone(), name, step, context)
    });
    tool.effect(effect)
}

pub(crate) fn toolbox(effects: &Path, change: Change) -> Toolbox {
    let flaky = effects.to_owned();
    // It fails until it was started three times.
    let flaky = Tool::new("flaky", move |step: Action, context| {
        let effects = flaky.clone();
        async move {
            let text = step.step.clone();
            let output = carry_out(effects.clone(), "flaky", step, context).await?;
            let starts = starts(&effects);
            let own = starts.iter().filter(|one| one.step == text).count();
            if own < 3 {
                Err("not yet".into())
            } else {
                Ok(output)
            }
        }
    });
    let waits = (Duration::from_millis(5), Duration::from_millis(20));
    let flaky = flaky
        .effect(Effect::Idempotent)
        .retry(Retry::attempts(3).waits(waits.0, waits.1));
    let nothing = Tool::new("nothing", |(): (), _| async { Ok(String::new()) });
    let mut tools = vec![
        nothing.effect(Effect::Read),
        tool("look", Effect::Read, effects),
        tool("store", Effect::Idempotent, effects),
        tool("forbidden", Effect::Write, effects),
        flaky,
    ];
    match change {
        Change::None | Change::Version | Change::Settings => {
            tools.push(tool("append", Effect::Write, effects));
        }
        Change::Added => {
            tools.push(tool("append", Effect::Write, effects));
            tools.push(tool("more", Effect::Read, effects));
        }
        Change::Missing => {}
        Change::Schema => {
            let append = |step: OtherAction, _: Context| async move {
                Ok(format!("{} {} {}", step.step, step.ms, step.reason))
            };
            tools.push(Tool::new("append", append).effect(Effect::Write));
        }
    }
    Toolbox::new(tools).unwrap()
}

pub(crate) fn rules() -> Rules {
    let rules = r#"
[tools.forbidden]
command = ["true"]

[[rules]]
tools = "forbidden"
verdict = "deny"
reason = "it is forbidden"
"#;
    plaincall::read_tools(rules, "/tools.toml").unwrap().rules
}
