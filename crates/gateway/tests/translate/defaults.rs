//! Fields that a request to the model server has by default.

use plaincall_gateway::translation::{Adapter, Ask, Host};
use plaincall_gateway::{Secret, ToolMode};
use serde_json::{Value, json};

use crate::settings;

/// Returns the body that the model server gets, or `None` if it gets the client's.
fn sent(mode: ToolMode, path: &str, body: &Value) -> Option<Value> {
    let settings = settings(|settings| {
        settings.mode = mode;
        let fields = json!({"temperature": 0.5, "max_tokens": 9, "top_k": 3, "seed": null});
        settings
            .default_fields
            .clone_from(fields.as_object().unwrap());
    });
    let adapter = Adapter::new(Secret::new("secret"), settings);
    let host = Host::new(Secret::new("seed"), 0);
    let sent = match adapter.ask(path, body.to_string().as_bytes(), host) {
        Ask::Asked(asked) => asked.body().to_vec(),
        Ask::Renamed(body) => body,
        Ask::Unchanged => return None,
        refused => panic!("{refused:?}"),
    };
    Some(serde_json::from_slice(&sent).unwrap())
}

/// With and without tools, in both modes and each API.
#[test]
fn a_request_gets_the_fields_that_it_does_not_have() {
    let user = json!([{"role": "user", "content": "Hello."}]);
    let tool = json!({"type": "function", "function": {"name": "now"}});
    let (chat, messages) = ("/v1/chat/completions", "/v1/messages");
    for mode in [ToolMode::Text, ToolMode::Native] {
        for has_tools in [false, true] {
            let mut request = json!({"model": "m", "messages": user});
            if has_tools {
                request["tools"] = json!([tool]);
            }
            let fields = |sent: &Value| {
                let names = [
                    "temperature",
                    "max_tokens",
                    "max_completion_tokens",
                    "top_k",
                    "seed",
                ];
                names.map(|name| sent[name].clone())
            };
            let found = fields(&sent(mode, chat, &request).unwrap());
            assert_eq!(
                found,
                [json!(0.5), json!(9), json!(null), json!(3), json!(null)]
            );
            request["temperature"] = json!(0);
            request["max_completion_tokens"] = json!(7);
            let found = fields(&sent(mode, chat, &request).unwrap());
            assert_eq!(
                found,
                [json!(0), json!(null), json!(7), json!(3), json!(null)]
            );
            // Nothing is written again if nothing is added.
            request["top_k"] = json!(1);
            let is_same = sent(mode, chat, &request).is_none_or(|sent| sent == request);
            assert_eq!(
                is_same,
                mode == ToolMode::Native || !has_tools,
                "{mode:?} {has_tools}"
            );
        }
        let request = json!({"model": "m", "messages": user, "max_tokens": 8, "top_k": 2});
        let sent = sent(mode, messages, &request).unwrap();
        assert_eq!(
            (&sent["max_tokens"], &sent["top_k"]),
            (&json!(8), &json!(2))
        );
        assert_eq!(sent["temperature"], 0.5);
    }
}
