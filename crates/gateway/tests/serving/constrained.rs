//! Requests with a grammar.

use plaincall_gateway::{Constrain, GatewayConfig};
use plaincall_grammar::Engine;
use plaincall_testkit::model_server::{ModelServer, Script};
use serde_json::{Value, json};

use crate::serving::test_gateway::{TestGateway, completion, request};

/// A list with one model of this owner.
fn models(owner: &str) -> Script {
    let model = json!({"id": "m", "object": "model", "owned_by": owner});
    Script::json(200, &json!({"object": "list", "data": [model]}))
}

fn call() -> Script {
    Script::json(
        200,
        &completion("!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END"),
    )
}

fn rejects() -> Script {
    Script::json(
        400,
        &json!({"error": {"message": "failed to parse the grammar"}}),
    )
}

/// A request that requires a call.
fn required() -> Value {
    let mut body = request(false);
    body["tool_choice"] = "required".into();
    body
}

struct Outcome {
    status: u16,
    /// The path and the body of each request to the model server.
    seen: Vec<(String, Value)>,
    metrics: String,
}

async fn ask(scripts: Vec<Script>, constrain: Constrain, bodies: &[Value]) -> Outcome {
    let server = ModelServer::start(scripts).await;
    let set = |config: &mut GatewayConfig| config.other_models.constrain = constrain;
    let gateway = TestGateway::before(&server, set).await;
    let mut status = 0;
    for body in bodies {
        status = gateway.post(body).await.status().as_u16();
    }
    let seen = server.seen().requests;
    let seen = seen.iter().map(|request| {
        let path = request.head.split(' ').nth(1).unwrap();
        (path.to_owned(), request.json())
    });
    Outcome {
        status,
        seen: seen.collect(),
        metrics: gateway.get("/metrics").await.1,
    }
}

fn has_count(outcome: &Outcome, name: &str, count: u32) {
    let line = format!("plaincall_{name}_total {count}\n");
    assert!(
        outcome.metrics.contains(&line),
        "{line} in {}",
        outcome.metrics
    );
}

#[tokio::test]
async fn each_engine_gets_its_notation() {
    for (owner, pointer, part) in [
        ("llamacpp", "/grammar", "!!!GADGET_START:"),
        ("vllm", "/response_format/type", "structural_tag"),
        ("sglang", "/response_format/format/type", "sequence"),
    ] {
        let scripts = vec![models(owner), call(), call()];
        let outcome = ask(scripts, Constrain::Auto, &[request(false), required()]).await;
        assert_eq!((outcome.status, outcome.seen.len()), (200, 3), "{owner}");
        // The list of models is requested once.
        assert_eq!(outcome.seen[0].0, "/v1/models");
        for (_, body) in &outcome.seen[1..] {
            let found = body
                .pointer(pointer)
                .and_then(Value::as_str)
                .unwrap_or_default();
            assert!(found.contains(part), "{owner}: {body}");
        }
        has_count(&outcome, "constrained", 2);
    }
    let scripts = vec![call()];
    let outcome = ask(scripts, Constrain::For(Engine::LlGuidance), &[required()]).await;
    let grammar = outcome.seen[0].1["structured_outputs"]["grammar"]
        .as_str()
        .unwrap();
    assert!(grammar.starts_with("start: "), "{grammar}");
}

#[tokio::test]
async fn the_choice_of_the_request_is_that_of_the_grammar() {
    let mut one = required();
    one["parallel_tool_calls"] = false.into();
    let scripts = vec![call(), call(), call()];
    let bodies = [request(false), required(), one];
    let outcome = ask(scripts, Constrain::For(Engine::LlamaCpp), &bodies).await;
    // Each root begins with the reasoning.
    let ends = [
        r#"t-0 (call ("\n"{1,2} call){0,7} "\n"{0,2})?"#,
        r#""\n"{0,2} call ("\n"{1,2} call){0,7} "\n"{0,2}"#,
        r#""\n"{0,2} call "\n"{0,2}"#,
    ];
    for ((_, body), end) in outcome.seen.iter().zip(ends) {
        let root = body["grammar"].as_str().unwrap().lines().next().unwrap();
        assert!(root.contains("<think>") && root.ends_with(end), "{root}");
    }
    for body in outcome.seen.iter().map(|(_, body)| body) {
        assert!(body.get("tools").is_none() && body.get("tool_choice").is_none());
    }
}

#[tokio::test]
async fn a_rejected_grammar_is_not_sent_again() {
    let scripts = vec![models("llamacpp"), rejects(), call(), call(), call()];
    let mut other = request(false);
    other["model"] = "other".into();
    let bodies = [request(false), request(false), other];
    let outcome = ask(scripts, Constrain::Auto, &bodies).await;
    let has_grammar: Vec<bool> = outcome
        .seen
        .iter()
        .map(|(_, body)| body.get("grammar").is_some())
        .collect();
    assert_eq!(
        (outcome.status, has_grammar),
        (200, vec![false, true, false, false, true])
    );
    has_count(&outcome, "rejected_grammars", 1);
    has_count(&outcome, "calls", 3);
    // An error for another reason is not one of the grammar.
    let scripts = vec![models("llamacpp"), rejects(), rejects(), call()];
    let outcome = ask(scripts, Constrain::Auto, &[request(false), request(false)]).await;
    assert_eq!(outcome.status, 200);
    assert!(outcome.seen[3].1.get("grammar").is_some());
    has_count(&outcome, "rejected_grammars", 0);
}

/// Several requests at once wait for one list. If it names no engine, it is not requested for each of them.
#[tokio::test]
async fn the_list_of_models_is_requested_once() {
    let none = || Script::json(404, &json!({"error": {"message": "not found"}}));
    for (list, has_grammar) in [
        (models("llamacpp"), true),
        (models("library"), false),
        (none(), false),
    ] {
        let scripts = std::iter::once(list).chain((0..4).map(|_| call()));
        let server = ModelServer::start(scripts.collect()).await;
        let set = |config: &mut GatewayConfig| config.other_models.constrain = Constrain::Auto;
        let gateway = TestGateway::before(&server, set).await;
        let body = request(false);
        let answers = futures_util::future::join_all((0..4).map(|_| gateway.post(&body))).await;
        assert!(answers.iter().all(|answer| answer.status() == 200));
        let seen = server.seen().requests;
        assert_eq!(seen.len(), 5);
        let with_grammar = seen
            .iter()
            .filter(|request| request.json().get("grammar").is_some());
        assert_eq!(with_grammar.count(), if has_grammar { 4 } else { 0 });
    }
}

/// Servers with several models may have several engines, and a field is never sent twice.
#[tokio::test]
async fn the_engine_is_that_of_the_model() {
    let model = |id: &str, owner: &str| json!({"id": id, "object": "model", "owned_by": owner});
    let list = json!({"object": "list", "data": [model("other", "vllm"), model("m", "llamacpp")]});
    let mut null = request(false);
    null["grammar"] = Value::Null;
    let mut no_format = request(false);
    no_format["response_format"] = Value::Null;
    let scripts = vec![Script::json(200, &list), call(), call(), call()];
    let outcome = ask(scripts, Constrain::Auto, &[request(false), null, no_format]).await;
    assert!(outcome.seen[1].1["grammar"].is_string());
    has_count(
        &outcome,
        "constrained",
        if outcome.seen[3].1["grammar"].is_string() {
            2
        } else {
            1
        },
    );
    assert!(outcome.seen[2].1["grammar"].is_null());
}

#[tokio::test]
async fn a_demanded_grammar_is_never_dropped() {
    let scripts = vec![models("llamacpp"), rejects()];
    let outcome = ask(scripts, Constrain::Always, &[request(false)]).await;
    assert_eq!((outcome.status, outcome.seen.len()), (400, 2));
    // An engine that accepts no grammar.
    let outcome = ask(
        vec![models("library")],
        Constrain::Always,
        &[request(false)],
    )
    .await;
    assert_eq!((outcome.status, outcome.seen.len()), (502, 1));
    let outcome = ask(
        vec![models("library"), call()],
        Constrain::Auto,
        &[request(false)],
    )
    .await;
    assert_eq!((outcome.status, outcome.seen.len()), (200, 2));
    assert!(outcome.seen[1].1.get("grammar").is_none());
    has_count(&outcome, "constrained", 0);
    // A tool without a grammar: its value has no end.
    let mut endless = required();
    endless["tools"][0]["function"]["parameters"] = json!({"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"],
        "$defs": {"a": {"type": "object", "properties": {"a": {"$ref": "#/$defs/a"}}, "required": ["a"]}}});
    let outcome = ask(vec![call()], Constrain::For(Engine::Vllm), &[endless]).await;
    assert_eq!((outcome.status, outcome.seen.len()), (400, 0));
}

#[tokio::test]
async fn a_client_that_constrains_the_reply_itself_is_left_alone() {
    let mut own = request(false);
    own["grammar"] = "root ::= \"yes\"".into();
    let mut none = request(false);
    none["tool_choice"] = "none".into();
    let scripts = vec![models("llamacpp"), call(), call()];
    let outcome = ask(scripts, Constrain::Auto, &[own, none]).await;
    assert_eq!(outcome.seen[1].1["grammar"], "root ::= \"yes\"");
    assert!(outcome.seen[2].1.get("grammar").is_none());
    has_count(&outcome, "constrained", 0);
}

#[tokio::test]
async fn a_constrained_reply_is_checked_and_repaired_in_streams_too() {
    let broken = Script::json(
        200,
        &completion("!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END"),
    );
    let server = ModelServer::start(vec![models("llamacpp"), rejects(), broken, call()]).await;
    let set = |config: &mut GatewayConfig| config.other_models.constrain = Constrain::Auto;
    let gateway = TestGateway::before(&server, set).await;
    let answer = gateway.read_answer(&request(true)).await;
    assert_eq!(answer.calls.len(), 1, "{answer:?}");
    let seen = server.seen().requests;
    let has_grammar = |body: &[u8]| String::from_utf8_lossy(body).contains("\"grammar\":");
    let has_grammar: Vec<bool> = seen
        .iter()
        .map(|request| has_grammar(&request.body))
        .collect();
    assert_eq!(has_grammar, [false, true, false, false]);
    let server = ModelServer::start(vec![
        Script::json(
            200,
            &completion("!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END"),
        ),
        call(),
    ])
    .await;
    let set = |config: &mut GatewayConfig| {
        config.other_models.constrain = Constrain::For(Engine::LlamaCpp);
    };
    let gateway = TestGateway::before(&server, set).await;
    assert_eq!(gateway.post(&request(false)).await.status(), 200);
    // Repair rounds are constrained too.
    for request in server.seen().requests {
        assert!(String::from_utf8_lossy(&request.body).contains("\"grammar\":"));
    }
}
