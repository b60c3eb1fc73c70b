//! The keys of markers (`spec/gateway.md` 2).

use std::collections::HashSet;

use plaincall_gateway::translation::{ToolCache, Translation, translate};
use plaincall_gateway::{Markers, Secret};
use plaincall_syntax::Dialect;
use serde_json::{Value, json};

use crate::translate::tools;

/// Returns the key of the markers in this request, for a gateway with this secret.
fn key(request: &Value, secret: &str) -> String {
    let settings = crate::settings(|settings| {
        settings.markers = Markers::Keyed;
    });
    let body = request.to_string();
    let request = plaincall_wire::read(body.as_bytes()).unwrap();
    let secret = Secret::new(secret);
    let translated = translate(request, &settings, &secret, &ToolCache::new());
    let Ok(Translation::Changed { upstream, plan }) = translated else {
        panic!("it offers tools");
    };
    let end = plan.dialect().end_marker(plaincall_syntax::Syntax::Block);
    let system = upstream.messages[0].content.as_ref().unwrap().text();
    assert!(system.contains(&end), "{system}");
    end.strip_prefix(Dialect::BLOCK_END).unwrap().to_owned()
}

fn request(messages: &Value) -> Value {
    json!({"messages": messages, "tools": tools()})
}

#[test]
fn keys_belong_to_secret_and_first_message() {
    let mut keys = HashSet::new();
    for secret in ["s", "t", ""] {
        for first in ["b", "bc", "", "a"] {
            let request = request(&json!([{"role": "user", "content": first}]));
            let found = key(&request, secret);
            assert_eq!(found, key(&request, secret));
            assert_eq!(found.len(), 8);
            assert!(found.bytes().all(|byte| byte.is_ascii_alphanumeric()));
            assert!(keys.insert(found), "{secret} {first}");
        }
    }
}

#[test]
fn a_key_that_is_known_is_raised() {
    let user = json!({"role": "user", "content": "m"});
    let key_without = |known: &[String]| {
        let system = json!({"role": "system", "content": known.join(" ")});
        key(&request(&json!([system, user])), "s")
    };
    let mut known: Vec<String> = Vec::new();
    for _ in 0..5 {
        let key = key_without(&known);
        assert!(!known.contains(&key));
        known.push(key);
    }
    // An incremented counter stays while the text does.
    let last = known.pop().unwrap();
    assert_eq!(key_without(&known), last);
}

#[test]
fn keys() {
    let key = |request: &Value| key(request, "secret");
    let user = json!({"role": "user", "content": "Hi."});
    let first = key(&request(&json!([user])));
    // The key stays the same from turn to turn.
    let call = |arguments: &str| json!({"role": "assistant", "tool_calls": [{"id": "c", "function": {"name": "read", "arguments": arguments}}]});
    let result = |text: &str| json!({"role": "tool", "tool_call_id": "c", "content": text});
    assert_eq!(
        key(&request(&json!([user, call("{}"), result("x")]))),
        first
    );
    assert_ne!(
        key(&request(&json!([{"role": "user", "content": "Hello."}]))),
        first
    );
    // Until it appears in the conversation, wherever that is.
    let spelled = format!(
        "{{\"path\":\"\\u{:04x}{}\"}}",
        u32::from(first.as_bytes()[0]),
        &first[1..]
    );
    let mut offered = request(&json!([user]));
    offered["tools"][1]["function"]["description"] = json!(format!("Time {first}."));
    let mut in_form = request(&json!([user]));
    in_form["response_format"] =
        json!({"type": "json_schema", "json_schema": {"schema": {"title": first}}});
    for known in [
        request(&json!([user, call("{}"), result(&format!("<{first}>"))])),
        request(&json!([user, call(&spelled), result("x")])),
        request(&json!([{"role": "system", "content": first}, user])),
        request(&json!([{"role": "user", "name": first, "content": "Hi."}])),
        request(&json!([user, {"role": "assistant", "content": "x", "reasoning": first}])),
        request(&json!([user, {"role": "tool", "tool_call_id": first, "content": "x"}])),
        in_form,
        offered,
    ] {
        let second = key(&known);
        assert_ne!(second, first, "{known}");
        assert_eq!(key(&known), second);
    }
}
