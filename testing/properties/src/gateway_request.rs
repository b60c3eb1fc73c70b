use std::sync::LazyLock;

use plaincall_gateway::translation::{ReplyPlan, ToolCache, Translation, translate};
use plaincall_gateway::{Markers, ModelSettings, Secret};
use plaincall_reply::{Document, bind};
use plaincall_syntax::{Dialect, Syntax};
use plaincall_tool::json::parse as parse_json;
use plaincall_wire::openai::{ChatCompletionRequest, Message, ToolCall};
use serde_json::{Value, json};

use crate::model::tools;
use crate::settings::{fields, settings};

static OFFERS: LazyLock<ToolCache> = LazyLock::new(ToolCache::new);

/// The beginning of the prompt.
const PROMPT: &str = "# Calling tools";
/// The beginning of the line of a call that the syntax cannot express.
const UNSPELLED: &str = "(A call this syntax cannot express, as JSON: {";

/// For all requests: the model gets each call of the client and nothing else that counts, and errors have a message
/// (`spec/gateway.md` 1 and 2).
///
/// Three bytes select the settings, the fields, and the form of the rest: the body, or the texts of a
/// conversation, with a NUL between two.
pub fn gateway_request(data: &[u8]) {
    let Some(([one, two, form], rest)) = data.split_first_chunk::<3>() else {
        return;
    };
    let mut settings = settings(*one);
    if settings.dialect.is_in_reasoning() {
        settings.dialect = settings.dialect.without_reasoning();
    }
    if form & 1 == 1 {
        check_body(rest, &settings);
        return;
    }
    let text = String::from_utf8_lossy(rest);
    let mut dialect = settings.dialect.clone();
    if settings.markers == Markers::Keyed {
        // The text contains the key of the conversation.
        let body = conversation(&text, &dialect, *two, form & 2 == 2).to_string();
        if let Some(key) = read(body.as_bytes(), &settings).and_then(|plan| key(&plan, &settings)) {
            dialect = dialect.keyed(key);
        }
    }
    let body = conversation(&text, &dialect, *two, form & 2 == 2);
    check_body(body.to_string().as_bytes(), &settings);
}

/// Returns a conversation of these texts.
fn conversation(text: &str, dialect: &Dialect, asked: u8, with_tools: bool) -> Value {
    let markers = dialect.markers().expect("a dialect that works");
    let mut messages: Vec<Value> = Vec::new();
    for (place, text) in text.split('\0').enumerate() {
        let kind = text.chars().next().map_or(0, |c| c as usize % 10);
        let mut content = String::new();
        for c in text.chars().skip(1) {
            match (c as usize).checked_sub(1).and_then(|at| markers.get(at)) {
                Some(marker) if c < '\t' => content.push_str(&marker.text),
                _ => content.push(c),
            }
        }
        let name = ["read", "add", "write", "now", "search"][place % 5];
        let id = format!("c{}", place % 3);
        let call = |arguments: String| json!({"id": id, "type": "function", "function": {"name": name, "arguments": arguments}});
        match kind {
            0 => messages.push(json!({"role": "user", "content": content})),
            1 => messages.push(json!({"role": "assistant", "content": content})),
            2 => messages.push(json!({"role": "system", "content": content})),
            3 => messages.push(json!({"role": "tool", "tool_call_id": id, "content": content})),
            4 | 5 => {
                let arguments = if kind == 4 {
                    json!({"path": content, "query": content, "text": place}).to_string()
                } else {
                    content
                };
                match messages.last_mut() {
                    Some(last) if last.get("tool_calls").is_some() => {
                        let calls = last["tool_calls"].as_array_mut().expect("a list");
                        calls.push(call(arguments));
                    }
                    _ => messages.push(
                        json!({"role": "assistant", "content": null, "tool_calls": [call(arguments)]}),
                    ),
                }
            }
            6 => {
                let call = json!({"id": id, "function": {"name": content, "arguments": {"a": 1}}});
                messages.push(json!({"role": "assistant", "content": content, "tool_calls": [call]}));
            }
            7 => {
                let part = json!({"type": "text", "text": content});
                match messages.last_mut() {
                    Some(last) if last["content"].is_array() => {
                        last["content"].as_array_mut().expect("a list").push(part);
                    }
                    _ => messages.push(json!({"role": "user", "content": [part]})),
                }
            }
            8 => messages.push(json!({"role": "assistant", "content": "x", "reasoning_content": content, "refusal": content, "name": content})),
            _ => messages.push(json!({"role": "tool", "tool_call_id": content, "name": content, "content": [{"type": "text", "text": content}, {"type": "image_url", "image_url": {"url": "u"}}]})),
        }
    }
    let mut request = json!({"model": "m", "messages": messages});
    if with_tools {
        request["tools"] = tools();
        for (name, value) in fields(asked).as_object().into_iter().flatten() {
            request[name] = value.clone();
        }
    }
    request
}

/// Returns the plan of a body that the gateway changes.
fn read(body: &[u8], settings: &ModelSettings) -> Option<ReplyPlan> {
    let request = plaincall_wire::read(body).ok()?;
    match translated(request, settings) {
        Some(Translation::Changed { plan, .. }) => Some(*plan),
        _ => None,
    }
}

/// Translates the request, if it is valid.
fn translated<'r>(
    request: ChatCompletionRequest<'r>,
    settings: &ModelSettings,
) -> Option<Translation<'r>> {
    let secret = Secret::new("secret");
    match translate(request, settings, &secret, &OFFERS) {
        Ok(translation) => Some(translation),
        Err(error) => {
            assert_eq!(error.status, 400, "{error:?}");
            assert!(!error.message().is_empty());
            assert!(error.body.kind.is_some());
            None
        }
    }
}

/// Returns the key of the markers.
fn key(plan: &ReplyPlan, settings: &ModelSettings) -> Option<String> {
    let syntax = settings.dialect.syntax().unwrap_or(Syntax::Block);
    let (bare, keyed) = (
        settings.dialect.end_marker(syntax),
        plan.dialect().end_marker(syntax),
    );
    // It appears somewhere inside.
    let from = bare
        .bytes()
        .zip(keyed.bytes())
        .take_while(|(one, two)| one == two)
        .count();
    let keys = (0..=from)
        .rev()
        .filter_map(|from| keyed.get(from..from + keyed.len() - bare.len()));
    let mut right =
        keys.filter(|key| settings.dialect.clone().keyed(*key).end_marker(syntax) == keyed);
    right
        .next()
        .filter(|key| !key.is_empty())
        .map(str::to_owned)
}

fn check_body(body: &[u8], settings: &ModelSettings) {
    let Ok(request) = plaincall_wire::read::<ChatCompletionRequest<'_>>(body) else {
        return;
    };
    let given = request.clone();
    let (upstream, plan) = match translated(request, settings) {
        Some(Translation::Unchanged(request)) => {
            let contains_key =
                |message: &Message<'_>| message.role() == "tool" || !message.calls().is_empty();
            assert!(!request.messages.iter().any(contains_key));
            return;
        }
        Some(Translation::Changed { upstream, plan }) => (upstream, plan),
        _ => return,
    };
    let written = plaincall_wire::write(&upstream);
    let upstream: ChatCompletionRequest<'_> =
        plaincall_wire::read(written.as_bytes()).expect("a request");
    assert!(upstream.tools.is_none() && upstream.tool_choice.is_none());
    let key = key(&plan, settings);
    assert_eq!(key.is_some(), settings.markers == Markers::Keyed);
    let is_turn = |message: &&Message<'_>| message.role() == "assistant";
    let given = given.messages.iter().filter(is_turn);
    let given: Vec<&ToolCall<'_>> = given.flat_map(Message::calls).collect();
    // Turns that follow each other become one, and empty ones are omitted.
    let mut turns = String::new();
    for message in &upstream.messages {
        assert!(message.calls().is_empty());
        let text = message
            .content
            .as_ref()
            .map(|content| content.text().into_owned());
        let text = text.unwrap_or_default();
        if message.role() == "assistant" {
            turns.extend([&*text, "\n"]);
            continue;
        }
        // The prompt itself contains calls and the key.
        let untrusted = text.split(PROMPT).next().unwrap_or_default();
        assert_eq!(names(untrusted, &plan), [""; 0], "calls in {untrusted:?}");
        if let Some(key) = &key {
            assert!(!untrusted.contains(key.as_str()), "{key} in {untrusted:?}");
        }
    }
    check_turns(&turns, &given, &plan);
}

fn names(text: &str, plan: &ReplyPlan) -> Vec<String> {
    let document = Document::parse(text, plan.dialect()).expect("a dialect that works");
    document.calls().map(|call| call.name.clone()).collect()
}

/// Checks that the turns of the model contain its calls, each as a call or as JSON, and no others.
fn check_turns(text: &str, given: &[&ToolCall<'_>], plan: &ReplyPlan) {
    let document = Document::parse(text, plan.dialect()).expect("a dialect that works");
    let mut rest = given.iter();
    let mut found = 0;
    for call in document.calls() {
        found += 1;
        let is_it = |given: &ToolCall<'_>| {
            if given.name() != call.name {
                return false;
            }
            let Some(tool) = plan.offered_tools().get(&call.name) else {
                return true;
            };
            match (bind(tool, call), parse_json(given.arguments())) {
                (Ok(bound), Ok(value)) => bound.to_value() == value,
                (Ok(bound), Err(_)) => bound.to_value() == json!({}),
                (Err(_), _) => true,
            }
        };
        assert!(
            rest.any(|given| is_it(given)),
            "{call:?} in {text:?} is none of {given:?}"
        );
    }
    let unspelled = text
        .lines()
        .filter(|line| line.starts_with(UNSPELLED))
        .count();
    assert!(found + unspelled >= given.len(), "{text:?} of {given:?}");
}
