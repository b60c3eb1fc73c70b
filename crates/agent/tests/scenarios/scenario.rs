//! Scenarios as data.

use std::collections::BTreeMap;

use serde::Deserialize;

/// A file of scenarios.
#[derive(Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct File {
    pub(crate) scenario: Vec<Scenario>,
}

/// A conversation: the settings of the agent, and the questions.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Scenario {
    pub(crate) name: String,
    /// The syntax, `block` or `emoji`. Default: both.
    pub(crate) syntax: Option<String>,
    /// Custom markers of the block syntax: start, end, argument.
    pub(crate) markers: Option<[String; 3]>,
    /// Whether the markers have a key.
    #[serde(default)]
    pub(crate) keyed: bool,
    /// The markers of reasoning in the text.
    pub(crate) reasoning: Option<[String; 2]>,
    /// The system text of the program.
    #[serde(default)]
    pub(crate) system: String,
    /// The names of the available tools. Default: all.
    pub(crate) tools: Option<Vec<String>>,
    /// The text that `read` returns. Calls in it are written in the dialect.
    #[serde(default)]
    pub(crate) files: BTreeMap<String, String>,
    #[serde(default)]
    pub(crate) limits: Limits,
    #[serde(default)]
    pub(crate) policy: Policies,
    /// The answers of the gate, one for each call: `allow`, `always`, `deny: why`, `error: why`, `panic`, `hang`, or
    /// `edit path=b`; an empty list is the default gate. Default: every call is allowed.
    pub(crate) gate: Option<Vec<String>>,
    /// Rules: `allow read`, `ask write`, `deny write`.
    #[serde(default)]
    pub(crate) rules: Vec<String>,
    /// The setting for a reply without a call: `answer`, `ask_back`, `remind`.
    pub(crate) on_no_tool_call: Option<String>,
    /// The answers of the user, one for each question: a text, `error: why`, or `hang`.
    pub(crate) user: Option<Vec<String>>,
    /// Agents that are tools of this one or of each other.
    #[serde(default)]
    pub(crate) agents: BTreeMap<String, Subagent>,
    pub(crate) step: Vec<Step>,
}

/// An agent that is a tool of another.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Subagent {
    /// The names of its tools. Default: none.
    #[serde(default)]
    pub(crate) tools: Vec<String>,
    /// The agents that are its tools.
    #[serde(default)]
    pub(crate) agents: Vec<String>,
    #[serde(default)]
    pub(crate) rules: Vec<String>,
    #[serde(default)]
    pub(crate) limits: Limits,
    /// The replies of its model, one for each request.
    #[serde(default)]
    pub(crate) replies: Vec<String>,
    /// The last message of each of its requests.
    pub(crate) last_messages: Option<Vec<String>>,
}

/// Limits, as the agent's.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Limits {
    pub(crate) turns: Option<u32>,
    pub(crate) calls: Option<u32>,
    pub(crate) time_ms: Option<u64>,
    pub(crate) tokens: Option<u64>,
    pub(crate) repairs: Option<u32>,
    pub(crate) same_failure: Option<u32>,
    pub(crate) same_result: Option<u32>,
    pub(crate) reminders: Option<u32>,
    pub(crate) context: Option<u64>,
    pub(crate) reply_tokens: Option<u32>,
}

/// The policy of the run.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Policies {
    pub(crate) calls_per_turn: Option<u32>,
    pub(crate) concurrent: Option<u32>,
    pub(crate) result_limit: Option<usize>,
    pub(crate) turn_timeout_ms: Option<u64>,
    pub(crate) gate_timeout_ms: Option<u64>,
    #[serde(default)]
    pub(crate) writes_at_end: bool,
}

/// A question and its expected result.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Step {
    #[serde(default)]
    pub(crate) ask: String,
    /// The JSON Schema of the answer.
    pub(crate) schema: Option<serde_json::Value>,
    /// The model continues without a question.
    #[serde(default)]
    pub(crate) resume: bool,
    /// The answers of the model server, one for each request.
    #[serde(default)]
    pub(crate) replies: Vec<Reply>,
    /// When it is cancelled: at an event, such as `start`, or `text 2` for the second text; `before` it has begun; or
    /// when the server has been `asked`.
    pub(crate) cancel: Option<String>,
    /// When it is dropped.
    pub(crate) drop: Option<String>,
    /// When the clock is stopped. From then on, time passes only when nothing else can run, and then at once.
    pub(crate) pause: Option<String>,
    /// Another model answers from here on.
    pub(crate) model: Option<String>,

    /// The answer.
    pub(crate) answer: Option<String>,
    /// The tool that finished it.
    pub(crate) finished_by: Option<String>,
    /// The kind of the error, or `one or another`, and after a colon a part of its message.
    pub(crate) error: Option<String>,
    /// The results of its calls, in the written order: `read ok`, and after a colon a part of the output or the
    /// error.
    #[serde(default)]
    pub(crate) calls: Vec<String>,
    /// The executed calls, if that matters: names with arguments.
    pub(crate) ran: Option<Vec<String>>,
    /// Whether they ran in this order.
    #[serde(default)]
    pub(crate) in_order: bool,
    /// The last message of each request, in order. An ellipsis matches any text.
    pub(crate) last_messages: Option<Vec<String>>,
    /// All messages of the last request but the first, each with its role: `user: …`.
    pub(crate) messages: Option<Vec<String>>,
    /// The messages of the program.
    #[serde(default)]
    pub(crate) program_messages: Vec<String>,
    /// The events, in order.
    pub(crate) events: Option<String>,
    /// The number of retries.
    #[serde(default)]
    pub(crate) retries: u32,
    /// The number of shortened results.
    #[serde(default)]
    pub(crate) shortened: usize,
    pub(crate) turns: Option<u32>,
    pub(crate) repairs: Option<u32>,
    /// Tokens read and written.
    pub(crate) usage: Option<[u64; 2]>,
    /// The contents of the requests: a field of the JSON and its value.
    #[serde(default)]
    pub(crate) requests: BTreeMap<String, serde_json::Value>,
}

/// The answer of the server to one request.
#[derive(Clone, Debug, Deserialize)]
#[serde(untagged)]
pub(crate) enum Reply {
    /// The server writes this text and stops.
    Text(String),
    /// A detailed answer.
    More(Box<More>),
}

/// A detailed answer of the server to one request.
#[derive(Clone, Debug, Default, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct More {
    #[serde(default)]
    pub(crate) text: String,
    /// Reasoning before the text, in a separate field.
    #[serde(default)]
    pub(crate) reasoning: String,
    /// The end: a finish reason; `none` for `[DONE]` without one, `no done` for a reason without `[DONE]`, `open` for
    /// neither; `break`, `reset`, `stall`, `error` for a failure after the text.
    pub(crate) end: Option<String>,
    pub(crate) usage: Option<[u64; 2]>,
    /// The number of characters of a delta.
    pub(crate) delta: Option<usize>,
    /// An error status, whose body is `body`.
    pub(crate) status: Option<u16>,
    #[serde(default)]
    pub(crate) body: String,
    pub(crate) retry_after: Option<String>,
    /// The delay before the answer.
    #[serde(default)]
    pub(crate) after_ms: u64,
}
