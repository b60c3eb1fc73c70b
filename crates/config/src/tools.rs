//! `tools.toml`: tools that are commands, the table `[run]`, and rules.

use std::collections::BTreeMap;
use std::num::NonZeroU32;

use indexmap::IndexMap;
use plaincall_names::{Effect, Unclosed};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::Location;
use crate::node::child;
use crate::values::{OneOrMore, Size, Time, TimeOrZero};

/// The maximum length of a pattern, in bytes.
const LONGEST_PATTERN: usize = 1 << 10;

/// A table `[tools.NAME]`.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct ToolTable {
    /// The description for the model.
    pub description: Option<String>,
    /// The parameters: a JSON Schema, or the short form with a type or schema for each name.
    pub parameters: Option<Map<String, Value>>,
    /// The program and its arguments.
    pub command: Option<Vec<String>>,
    /// A shell script, instead of `command`.
    pub shell: Option<String>,
    /// The effect of a call.
    pub effect: Option<Effect>,
    /// The timeout of a call.
    pub timeout: Option<Time>,
    /// How long a cancelled command may take to exit.
    pub grace: Option<TimeOrZero>,
    /// How often a failed call is retried.
    pub retry: Option<RetryTable>,
    /// The handling of calls that depend on a failed call.
    pub dependents: Option<Dependents>,
    /// The output that replaces that of a failed call for its dependents.
    pub fallback: Option<String>,
    /// Whether a call that succeeds ends the run.
    pub finishes: bool,
    /// The maximum number of concurrent calls of this tool.
    pub max_concurrent: Option<NonZeroU32>,
    /// Whether no other call runs at the same time.
    pub exclusive: bool,
    /// The maximum size of the kept output.
    pub output_limit: Option<Size>,
    /// The working directory.
    pub directory: Option<String>,
    /// The names of environment variables passed to the command.
    pub environment: Vec<String>,
    /// The parameters on the line of an emoji call.
    pub positional: Option<Vec<String>>,
    /// The parameter that is the body of an emoji call.
    pub body: Option<String>,
    /// Examples of calls.
    pub examples: Vec<ExampleTable>,
}

/// A table `[[tools.NAME.examples]]`: an example of a call.
#[derive(Clone, Debug, Deserialize)]
#[non_exhaustive]
pub struct ExampleTable {
    /// The arguments.
    #[serde(default)]
    pub arguments: Map<String, Value>,
    /// The output of the call.
    #[serde(default)]
    pub result: Option<String>,
    /// A comment for the model.
    #[serde(default)]
    pub comment: String,
    /// The question of a person that the call answers. Needs `answer`.
    #[serde(default)]
    pub question: Option<String>,
    /// The answer after the call. Needs `question`.
    #[serde(default)]
    pub answer: Option<String>,
}

/// `retry` of a tool: a number of attempts, or a table that also sets the delays.
#[derive(Clone, Copy, Debug, Deserialize)]
#[serde(rename = "$RetryTable")]
#[non_exhaustive]
pub struct RetryTable {
    /// The maximum number of attempts, including the first.
    pub attempts: u32,
    /// The delay before the second attempt.
    pub first_wait: Option<Time>,
    /// The maximum delay.
    pub longest_wait: Option<Time>,
}

/// The handling of calls that depend on a failed call.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Dependents {
    /// They are skipped.
    Skip,
    /// They run and receive the failure.
    Run,
}

/// The table `[run]`: limits and order of the calls of a run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(default)]
#[non_exhaustive]
pub struct RunTable {
    /// The maximum number of concurrent calls; 0 is unlimited.
    pub concurrent: Option<u32>,
    /// The maximum number of calls in a reply.
    pub calls_per_turn: Option<NonZeroU32>,
    /// The order of the calls of a reply in the block syntax.
    pub block_order: Option<Order>,
    /// The order of the calls of a reply in the emoji syntax.
    pub emoji_order: Option<Order>,
    /// The timeout for a reply and all its calls.
    pub turn_timeout: Option<Time>,
    /// The timeout for an approval.
    pub gate_timeout: Option<Time>,
    /// When calls of tools that write run.
    pub writes: Option<Writes>,
    /// The handling of calls without an end marker.
    pub unclosed: Option<Unclosed>,
    /// The maximum size of a result; longer ones are shortened.
    pub result_limit: Option<Size>,
    /// The handling of calls that appear in untrusted text.
    pub echoes: Option<Echoes>,
    /// The maximum size of untrusted text kept for comparison.
    pub untrusted_limit: Option<Size>,
    /// The maximum size of the dependency outputs passed to a call.
    pub dependency_limit: Option<Size>,
    /// The maximum size of all passed outputs of a run together.
    pub dependency_total: Option<Size>,
}

/// The order of the calls of a reply (`spec/running.md`, "Written order").
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Order {
    /// By dependencies only.
    Graph,
    /// In the order of writing.
    Sequential,
    /// In the order of writing; the rest is skipped after a failure.
    StopOnError,
}

/// When calls of tools that write run (`spec/running.md`, "Calls that wait for the end of the turn").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Writes {
    /// As soon as they are complete.
    #[default]
    AtOnce,
    /// When the reply has ended, and only if it is complete.
    AtEndOfTurn,
}

/// The handling of calls that appear in untrusted text (`spec/running.md`, "Echoes").
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Deserialize, Serialize)]
#[serde(rename_all = "snake_case")]
pub enum Echoes {
    /// They run only after an approval.
    #[default]
    Held,
    /// They run like all others: untrusted text can then trigger calls.
    Ignored,
}

/// A table `[[rules]]`, which allows or denies calls.
#[derive(Clone, Debug, Deserialize, Serialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[non_exhaustive]
pub struct RuleTable {
    /// The names of the tools, as one string or several. `*` matches any characters.
    pub tools: OneOrMore,
    /// The effect that the tool must have for the rule to match.
    #[serde(default)]
    pub effect: Option<Effect>,
    /// Patterns for the arguments, by name or JSON Pointer. `*` matches any characters except `/`, `**` any characters. Paths
    /// are relative to `builtin.directory`. Commands are compared word by word, and `*` as the last word matches any further
    /// words: `rm *` denies `rm -rf a/b` and `true; rm x`. Denying a command is a convenience, not a security boundary.
    /// Allowing one, such as `git log *`, matches only a single simple command, and with it everything that this program
    /// runs itself.
    #[serde(default)]
    #[schemars(with = "Option<BTreeMap<String, String>>")]
    pub arguments: Option<IndexMap<String, String>>,
    /// The decision.
    pub verdict: Verdict,
    /// The reason for a denial, written for the model.
    #[serde(default)]
    pub reason: Option<String>,
}

impl RuleTable {
    /// Checks the rule at a pointer, without knowing its tools.
    pub fn problems(&self, at: &str) -> Vec<(Location, String)> {
        let mut problems = Vec::new();
        let tools = self.tools.0.iter().enumerate();
        let mut patterns: Vec<_> = tools
            .map(|(index, text)| (format!("{at}/tools/{index}"), text))
            .collect();
        for (pointer, text) in self.arguments.iter().flatten() {
            let below = child(&format!("{at}/arguments"), pointer);
            let pointer = pointer.strip_prefix('/').unwrap_or(pointer);
            if pointer.split('/').any(str::is_empty) {
                let message = format!("invalid pointer `{pointer}`: it has an empty segment");
                problems.push((Location::key(&below), message));
            }
            patterns.push((below, text));
        }
        patterns.retain(|(_, text)| text.len() > LONGEST_PATTERN);
        problems.extend(patterns.into_iter().map(|(pointer, _)| {
            let message = format!("patterns have at most {LONGEST_PATTERN} bytes");
            (Location::Value(pointer), message)
        }));
        match (self.verdict, &self.reason) {
            (Verdict::Deny, None) => {
                let message = "a rule that denies needs a `reason`, which explains to the model why the call is denied and what to do instead";
                problems.push((Location::value(format!("{at}/verdict")), message.to_owned()));
            }
            (Verdict::Allow | Verdict::Ask, Some(_)) => {
                let message = "only rules that deny have a `reason`; remove it";
                problems.push((Location::key(format!("{at}/reason")), message.to_owned()));
            }
            _ => {}
        }
        problems
    }
}

/// The decision of a rule.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize, Serialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum Verdict {
    /// The call runs.
    Allow,
    /// You are asked for approval.
    Ask,
    /// The call is rejected.
    Deny,
}
