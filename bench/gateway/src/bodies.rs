//! The requests, and the model's replies, which are the same for all measurements.

use serde_json::{Value, json};

/// The number of digits of a time in nanoseconds since 1970.
pub(crate) const STAMP: usize = 19;
/// The placeholder for a time in the model's text.
const NO_TIME: &str = "0000000000000000000";
/// The number of calls in a streamed answer.
const CALLS: usize = 2;
/// The number of times in a streamed answer: two in the text before a call, three in the call.
pub(crate) const STAMPS: usize = CALLS * 5;

/// A request with ten tools.
pub(crate) fn request(is_streamed: bool) -> String {
    let tools: Vec<Value> = (0..10)
        .map(|number| {
            json!({"type": "function", "function": {
                "name": format!("tool_{number}"), "description": "Looks something up, and returns what is known about it.",
                "parameters": {"type": "object", "required": ["query"], "properties": {
                    "query": {"type": "string", "description": "What to look for."},
                    "limit": {"type": "integer", "minimum": 1, "default": 10},
                    "tags": {"type": "array", "items": {"type": "string"}}}}}})
        })
        .collect();
    let mut body = json!({"model": "m", "messages": [
        {"role": "system", "content": "You are a helpful assistant. ".repeat(10)},
        {"role": "user", "content": "What is the weather like in Paris? ".repeat(10)}],
        "tools": tools, "temperature": 0.2});
    if is_streamed {
        body["stream"] = Value::Bool(true);
    }
    body.to_string()
}

/// The tool that the answers call.
pub(crate) const CALLED: &str = "tool_3";

/// An answer that is not streamed: about 1 kB, with one call.
pub(crate) fn answer() -> String {
    let content = format!(
        "{}\n!!!GADGET_START:tool_3\n!!!ARG:query\nweather in Paris\n!!!ARG:limit\n5\n!!!GADGET_END\n",
        "I look that up for you. ".repeat(25)
    );
    completion(&content)
}

/// An answer without a call.
pub(crate) fn plain_answer() -> String {
    completion("Done.")
}

fn completion(content: &str) -> String {
    json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1, "model": "m",
        "choices": [{"index": 0, "message": {"role": "assistant", "content": content}, "logprobs": null, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 900, "completion_tokens": 80, "total_tokens": 980}})
    .to_string()
}

/// The texts of a streamed answer, one for each delta. Each time in a text is set when its delta is written.
///
/// The letter before a time is its kind: `t` for a piece of text, `a` for a piece of an argument, `z` for the end of
/// a text argument. The time after a line end is an argument itself: a number that ends in the same delta.
pub(crate) fn deltas() -> Vec<String> {
    let call = [
        format!("I look that up for you: t{NO_TIME}"),
        format!(", with a tool. t{NO_TIME}"),
        "\n!!!GADGET_START:tool_3\n!!!ARG:query\n".to_owned(),
        format!("weather in Paris a{NO_TIME}"),
        format!(" and around it z{NO_TIME}"),
        format!("\n!!!ARG:limit\n{NO_TIME}\n!!!GADGET_END\n"),
    ];
    (0..CALLS).flat_map(|_| call.iter().cloned()).collect()
}

/// The events of a streamed answer, and the positions of the times in each.
pub(crate) fn events() -> Vec<(Vec<u8>, Vec<usize>)> {
    let chunk = |delta: Value, reason: Option<&str>| {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1, "model": "m",
            "choices": [{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]});
        format!("data: {chunk}\n\n")
    };
    let texts = deltas();
    let texts = texts
        .iter()
        .map(|text| chunk(json!({"content": text}), None));
    let last = chunk(json!({}), Some("stop")) + "data: [DONE]\n\n";
    let framed = |event: String| format!("{:x}\r\n{event}\r\n", event.len());
    texts
        .map(framed)
        .chain([framed(last) + "0\r\n\r\n"])
        .map(|text| {
            let places = text.match_indices(NO_TIME).map(|(at, _)| at).collect();
            (text.into_bytes(), places)
        })
        .collect()
}

/// The current time, as text.
pub(crate) fn now() -> u64 {
    let since = std::time::SystemTime::now().duration_since(std::time::UNIX_EPOCH);
    u64::try_from(since.unwrap().as_nanos()).unwrap()
}
