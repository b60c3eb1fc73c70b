//! `tools.toml`: tools that are commands, the table `[run]`, and rules.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use indexmap::IndexMap;
use plaincall_call::{Effect, Unclosed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::Place;
use crate::node::child;
use crate::values::{OneOrMore, Size, Time, TimeOrZero};

/// How long a pattern may be, in bytes.
const LONGEST_PATTERN: usize = 1 << 10;

/// A table `[tools.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct ToolTable {
    /// What the tool does, for the model.
    pub description: Option<String>,
    /// What it takes: a JSON Schema, or the short form with a kind or a schema for each name.
    pub parameters: Option<Map<String, Value>>,
    /// The program and its arguments.
    pub command: Option<Vec<String>>,
    /// A script, in the place of `command`.
    pub shell: Option<String>,
    /// What it may change.
    pub effect: Option<Effect>,
    /// How long a call may run.
    pub timeout: Option<Time>,
    /// How long a command that is cancelled may take to end.
    pub grace: Option<TimeOrZero>,
    /// How often a failed call is started again.
    pub retry: Option<RetryTable>,
    /// What happens to the calls that depend on a failed one.
    pub dependents: Option<Dependents>,
    /// The output of a failed call for the calls that depend on it.
    pub fallback: Option<String>,
    /// Whether a call that succeeds ends the run.
    pub finishes: bool,
    /// How many calls of it run at the same time.
    pub max_concurrent: Option<NonZeroU32>,
    /// Whether a call of it runs alone.
    pub exclusive: bool,
    /// How much output of the command is kept.
    pub output_limit: Option<Size>,
    /// The working directory.
    pub directory: Option<String>,
    /// The names of environment variables that the command sees.
    pub environment: Vec<String>,
    /// The parameters on the line of an emoji call.
    pub positional: Option<Vec<String>>,
    /// The parameter that is the body of an emoji call.
    pub body: Option<String>,
}

/// `retry` of a tool: a number of starts, or a table that also says how long to wait.
#[derive(Clone, Copy, Debug, Deserialize)]
pub struct RetryTable {
    /// How often the tool is started at most, the first start counted.
    pub attempts: u32,
    /// The wait before the second start.
    pub first_wait: Option<Time>,
    /// The longest wait.
    pub longest_wait: Option<Time>,
}

/// What happens to the calls that depend on a failed one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependents {
    /// They are skipped.
    Skip,
    /// They run, and see that it failed.
    Run,
}

/// The table `[run]`: limits and order of all calls of a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
pub struct RunTable {
    /// How many calls run at the same time; 0 is any number.
    pub concurrent: Option<u32>,
    /// How many calls a reply may hold.
    pub calls_per_turn: Option<NonZeroU32>,
    /// What orders the calls of a reply in the block syntax.
    pub block_order: Option<Order>,
    /// What orders the calls of a reply in the emoji syntax.
    pub emoji_order: Option<Order>,
    /// How long a reply and all its calls may take.
    pub turn_timeout: Option<Time>,
    /// How long an approval may take.
    pub gate_timeout: Option<Time>,
    /// When calls of tools that write run.
    pub writes: Option<Writes>,
    /// What happens to calls without an end marker.
    pub unclosed: Option<Unclosed>,
    /// The longest result that the model gets whole.
    pub result_limit: Option<Size>,
    /// What happens to calls that are copied from untrusted text.
    pub echoes: Option<Echoes>,
    /// How much untrusted text is kept.
    pub untrusted_limit: Option<Size>,
    /// How much the dependencies of a call pass on to it.
    pub dependency_limit: Option<Size>,
    /// How much is passed on to all calls of a run together.
    pub dependency_total: Option<Size>,
}

/// What orders the calls of a reply (`spec/running.md`, "Order of writing").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// Their dependencies alone.
    Graph,
    /// The order in which they are written.
    Sequential,
    /// The same, and the rest is skipped after a failure.
    StopOnError,
}

/// When calls of tools that write run (`spec/running.md`, "Calls that wait for the end of the turn").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// As soon as they are complete.
    #[default]
    AtOnce,
    /// When the reply ends, and only if it is complete.
    AtEndOfTurn,
}

/// What happens to calls that are copied from untrusted text (`spec/running.md`, "Echoes").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Echoes {
    /// Only an approval of this very call lets them run.
    #[default]
    Held,
    /// They run like all others: a text from outside can then call tools as the model can.
    LikeOthers,
}

/// A table `[[rules]]`: whether calls may run.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct RuleTable {
    /// The names of the tools it is about, one or several. `*` stands for any characters.
    pub tools: OneOrMore,
    /// The effect that the tool must have.
    #[serde(default)]
    pub effect: Option<Effect>,
    /// What the arguments must be: a pattern for each, by its name or JSON Pointer. `*` stands for any characters but
    /// `/`, `**` for any characters. A path is relative to `builtin.directory`. A command is compared word by word, and a last
    /// word `*` stands for any further words: `rm *` denies `rm -rf a/b` and `true; rm x`. A rule that denies a command is a
    /// convenience and no security boundary; one that allows, such as `git log *`, fits one simple command only, and
    /// all that this program runs itself.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub arguments: Option<IndexMap<String, String>>,
    /// What it decides.
    pub verdict: Verdict,
    /// Why not, in words for the model, for a rule that denies.
    #[serde(default)]
    pub reason: Option<String>,
}

impl RuleTable {
    /// What is wrong with a rule at a pointer, whatever its tools are.
    pub fn problems(&self, at: &str) -> Vec<(Place, String)> {
        let mut problems = Vec::new();
        let tools = self.tools.0.iter().enumerate();
        let mut patterns: Vec<_> = tools
            .map(|(index, text)| (format!("{at}/tools/{index}"), text))
            .collect();
        for (pointer, text) in self.arguments.iter().flatten() {
            let below = child(&format!("{at}/arguments"), pointer);
            let pointer = pointer.strip_prefix('/').unwrap_or(pointer);
            if pointer.split('/').any(str::is_empty) {
                let message = format!("`{pointer}` leads to no argument: it has an empty part");
                problems.push((Place::key(&below), message));
            }
            patterns.push((below, text));
        }
        patterns.retain(|(_, text)| text.len() > LONGEST_PATTERN);
        problems.extend(patterns.into_iter().map(|(pointer, _)| {
            let message = format!("a pattern has at most {LONGEST_PATTERN} bytes");
            (Place::Value(pointer), message)
        }));
        match (self.verdict, &self.reason) {
            (Verdict::Deny, None) => {
                let message = "a rule that denies needs a `reason`, in words for the model: it reads why, and what to do instead";
                problems.push((Place::value(format!("{at}/verdict")), message.to_owned()));
            }
            (Verdict::Allow | Verdict::Ask, Some(_)) => {
                let message = "only a rule that denies has a `reason`; nobody reads this one";
                problems.push((Place::key(format!("{at}/reason")), message.to_owned()));
            }
            _ => {}
        }
        problems
    }
}

/// What a rule decides.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// You are asked.
    Ask,
    /// The call does not run.
    Deny,
}
