//! A scripted model server behind the gateway.

use std::sync::LazyLock;

use plaincall_gateway::translation::{
    Exchange, Flow, Next, RepairRound, Reply, ReplyPlan, StreamedResponse, ToolCache, Translation,
    translate,
};
use plaincall_gateway::{ArgumentMode, Counts, GatewayError, ModelSettings, Secret};
use plaincall_tool::{ToolSet, definitions::read_tool_definitions};
use plaincall_wire::openai::ChatCompletionRequest;
use plaincall_wire::sse::Limits;
use serde_json::{Value, json};

use plaincall_testkit::strict_client::{Recorded, read_answer};

/// The tools of the tests.
pub(crate) fn tools() -> Value {
    let tool = |name: &str, properties: Value, required: Value| {
        let schema = json!({"type": "object", "properties": properties, "required": required});
        json!({"type": "function", "function": {"name": name, "parameters": schema}})
    };
    json!([
        tool(
            "add",
            json!({"a": {"type": "integer"}, "b": {"type": "integer"}}),
            json!(["a"])
        ),
        tool(
            "write",
            json!({"path": {"type": "string"}, "text": {"type": "string"}}),
            json!(["path"])
        ),
        tool(
            "search",
            json!({
                "query": {"type": "string"},
                "tags": {"type": "array", "items": {"type": "string"}},
                "range": {"type": "object", "properties": {"from": {"type": "number"}, "to": {"type": ["number", "null"]}}},
                "deep": {"type": "boolean"},
            }),
            json!([])
        ),
        tool("now", json!({}), json!([])),
    ])
}

/// The calls in each format: the name of the format, and the text.
pub(crate) fn calls_in_formats() -> Vec<(String, String)> {
    let path = concat!(
        env!("CARGO_MANIFEST_DIR"),
        "/../reply/tests/rescue/formats.txt"
    );
    let text = std::fs::read_to_string(path).unwrap();
    let parts = text.split("\n==== ").skip(1).map(|part| {
        let (name, rest) = part.split_once('\n').unwrap();
        let (text, _) = rest.split_once("\\\n---- found").unwrap();
        (name.split(',').next().unwrap().to_owned(), text.to_owned())
    });
    parts.collect()
}

/// The same tools, parsed once.
pub(crate) fn tool_set() -> &'static ToolSet {
    static SET: LazyLock<ToolSet> = LazyLock::new(|| {
        let tools = read_tool_definitions(&tools().to_string()).unwrap();
        ToolSet::new(tools).unwrap()
    });
    &SET
}

/// A request with these tools and other fields.
pub(crate) fn request(fields: &Value) -> Value {
    let mut request = json!({
        "model": "m", "stream": true,
        "messages": [{"role": "user", "content": "Do it."}],
        "tools": tools(),
    });
    for (name, value) in fields.as_object().into_iter().flatten() {
        request[name] = value.clone();
    }
    request
}

/// Settings that stream the arguments of calls.
pub(crate) fn streaming() -> ModelSettings {
    let mut settings = ModelSettings::default();
    settings.arguments = ArgumentMode::Stream;
    settings
}

/// Returns the plan of a request with these fields.
pub(crate) fn plan(fields: &Value, settings: &ModelSettings) -> ReplyPlan {
    let body = request(fields).to_string();
    let request: ChatCompletionRequest<'_> = plaincall_wire::read(body.as_bytes()).unwrap();
    let secret = Secret::new("secret");
    match translate(request, settings, &secret, &ToolCache::new()) {
        Ok(Translation::Changed { plan, .. }) => *plan,
        other => panic!("{other:?}"),
    }
}

/// Returns the bytes of a server's stream.
#[derive(Clone, Debug, Default)]
pub(crate) struct Stream(pub(crate) Vec<u8>);

impl Stream {
    pub(crate) fn new() -> Self {
        Self::default()
    }

    pub(crate) fn data(mut self, data: &str) -> Self {
        self.0
            .extend_from_slice(format!("data: {data}\n\n").as_bytes());
        self
    }

    pub(crate) fn delta(self, delta: &Value, reason: &Value) -> Self {
        let chunk = json!({
            "id": "chatcmpl-9", "object": "chat.completion.chunk", "created": 7, "model": "m",
            "choices": [{"index": 0, "delta": delta, "finish_reason": reason}],
        });
        self.data(&chunk.to_string())
    }

    pub(crate) fn texts<'t>(self, texts: impl IntoIterator<Item = &'t str>) -> Self {
        let started = self.delta(&json!({"role": "assistant", "content": ""}), &Value::Null);
        texts.into_iter().fold(started, |stream, text| {
            stream.delta(&json!({"content": text}), &Value::Null)
        })
    }

    pub(crate) fn thought(self, name: &str, text: &str) -> Self {
        self.delta(&json!({name: text}), &Value::Null)
    }

    pub(crate) fn finish(self, reason: &str) -> Self {
        self.delta(&json!({}), &json!(reason))
    }

    pub(crate) fn usage(self, tokens: u64) -> Self {
        let usage =
            json!({"prompt_tokens": tokens, "completion_tokens": 1, "total_tokens": tokens + 1});
        self.data(&json!({"choices": null, "usage": usage}).to_string())
    }

    pub(crate) fn done(self) -> Self {
        self.data("[DONE]")
    }
}

/// The result of an exchange.
#[derive(Debug)]
pub(crate) struct Outcome {
    pub(crate) recorded: Recorded,
    pub(crate) counts: Counts,
    pub(crate) rounds: Vec<RepairRound>,
    /// Whether the gateway stopped reading before the end of the server's stream.
    pub(crate) is_over_early: bool,
}

/// Passes the streams of a server to the gateway, one for each round, in pieces of these sizes.
pub(crate) fn exchange(
    plan: &ReplyPlan,
    streams: &[Stream],
    sizes: &[usize],
    broken: bool,
) -> Outcome {
    let answer = StreamedResponse::new("chatcmpl-0", 1, plan.includes_usage());
    let reply = Reply::new(plan.clone(), Secret::new("seed"), Box::new(answer));
    let mut exchange = Exchange::new(reply, Limits::default());
    let mut bytes = Vec::new();
    let mut rounds = Vec::new();
    let mut is_over_early = false;
    for stream in streams {
        let mut rest = stream.0.as_slice();
        for size in sizes.iter().cycle() {
            if rest.is_empty() {
                break;
            }
            let (piece, after) = rest.split_at((*size).clamp(1, rest.len()));
            rest = after;
            let flow = exchange.feed(piece);
            bytes.append(&mut exchange.take());
            if flow == Flow::Stop {
                is_over_early = !rest.is_empty();
                break;
            }
        }
        let next = exchange.end(broken.then(|| GatewayError::upstream("it broke")));
        bytes.append(&mut exchange.take());
        match next {
            Next::Repair(round) => rounds.push(round),
            _ => break,
        }
    }
    Outcome {
        recorded: read_answer(&bytes, plan.includes_usage()),
        counts: exchange.counts(),
        rounds,
        is_over_early,
    }
}

/// Returns the response for one text with this finish reason. In repair rounds, the model repeats it.
pub(crate) fn recorded(plan: &ReplyPlan, texts: &[&str], reason: &str) -> Outcome {
    let stream = Stream::new()
        .texts(texts.iter().copied())
        .finish(reason)
        .done();
    let streams = vec![stream; 4];
    exchange(plan, &streams, &[usize::MAX], false)
}
