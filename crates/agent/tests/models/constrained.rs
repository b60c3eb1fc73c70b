//! Requests with a grammar.

use std::sync::Arc;
use std::time::Duration;

use plaincall_agent::model::{
    Anthropic, Constrain, Json, Model, ModelErrorKind, ModelRequest, NativeRequest, OpenAi,
};
use plaincall_agent::plaincall::syntax::Dialect;
use plaincall_agent::plaincall::tool::{Parameter, ParameterKind, ToolSpec};
use plaincall_grammar::{Engine, GrammarOptions, grammar};
use plaincall_testkit::model_server::{Asked, ModelServer, Script, Then};
use plaincall_wire::openai::constrained;
use serde_json::{Value, json};

use crate::models::received::{Received, question};

/// A list with one model of this owner.
fn list(owner: &str) -> Script {
    list_of(&[("m", owner)])
}

fn list_of(models: &[(&str, &str)]) -> Script {
    let models = models.iter();
    let models = models.map(|(id, owner)| json!({"id": id, "owned_by": owner}));
    Script::json(200, &json!({"data": models.collect::<Vec<_>>()}))
}

fn reply() -> Script {
    let choice = json!({"message": {"content": "Hello."}, "finish_reason": "stop"});
    Script::json(200, &json!({"choices": [choice]}))
}

fn fails(status: u16) -> Script {
    Script::json(status, &json!({"error": {"message": "not this"}}))
}

/// The question with a grammar.
fn constrained() -> ModelRequest {
    let add = ToolSpec::new("add").parameter(Parameter::new("a", ParameterKind::Integer));
    let dialect = Dialect::block().escaped();
    let grammar = grammar([&add], &dialect, &GrammarOptions::new().ids());
    let mut request = question();
    request.grammar = Some(Arc::new(grammar.expect("a grammar")));
    request
}

/// Returns the requests in words: `list`, `plain`, or the field of the grammar.
fn summary(requests: &[Asked]) -> String {
    let words = requests.iter().map(|request| {
        if request.head.starts_with("get /v1/models http") {
            return "list";
        }
        let body = request.json();
        let set = constrained::REQUEST_FIELDS.iter();
        let mut set = set.filter(|name| body.get(**name).is_some());
        set.next().unwrap_or(&"plain")
    });
    words.collect::<Vec<_>>().join(" ")
}

/// Sends requests with a grammar, and returns what the server got and the last reply.
async fn sent(
    set: impl FnOnce(OpenAi) -> OpenAi,
    count: usize,
    scripts: Vec<Script>,
) -> (String, Received) {
    let server = ModelServer::start(scripts).await;
    let model = set(OpenAi::new(server.url(), "m"));
    let mut last = Received::default();
    for _ in 0..count {
        last = Received::all(model.clone().reply(constrained())).await;
    }
    (summary(&server.seen().requests), last)
}

#[tokio::test]
async fn each_engine_gets_its_fields() {
    let server = ModelServer::start(Vec::new()).await;
    for (engine, pointer, part) in [
        (Engine::LlamaCpp, "/grammar", "!!!GADGET_START:"),
        (Engine::Vllm, "/response_format/type", "structural_tag"),
        (Engine::Sglang, "/response_format/format/type", "sequence"),
        (Engine::LlGuidance, "/structured_outputs/grammar", "start: "),
    ] {
        server.play([reply()]);
        let model = OpenAi::new(server.url(), "m").constrain(Constrain::For(engine));
        assert_eq!(model.engine().await, Ok(Some(engine)));
        let received = Received::all(model.reply(constrained())).await;
        assert_eq!(received.text, "Hello.");
        let body = server.seen().requests.pop().expect("a request").json();
        let found = body.pointer(pointer).and_then(Value::as_str);
        assert!(found.is_some_and(|found| found.contains(part)), "{body}");
        assert_eq!(body["messages"][1]["content"], "Hi.");
    }
    // A request without a grammar, and one with native calls.
    let model = OpenAi::new(server.url(), "m").constrain(Constrain::Always);
    let mut native = constrained();
    native.native = Some(Arc::new(NativeRequest::new([], Vec::new())));
    let before = server.seen().requests.len();
    for request in [question(), native] {
        server.play([reply()]);
        Received::all(model.reply(request)).await;
    }
    assert_eq!(summary(&server.seen().requests[before..]), "plain plain");
}

#[tokio::test]
async fn the_engine_is_detected_once() {
    let auto = |model: OpenAi| model.constrain(Constrain::Auto);
    let always = |model: OpenAi| model.constrain(Constrain::Always);
    let two = |first| vec![first, reply(), reply()];
    for (first, expected) in [
        (list("llamacpp"), "list grammar grammar"),
        (list("vllm"), "list response_format response_format"),
        (list("sglang"), "list response_format response_format"),
        (list("library"), "list plain plain"),
        (list_of(&[]), "list plain plain"),
        // The entry of the model decides, if there is one.
        (
            list_of(&[("other", "vllm"), ("m", "llamacpp")]),
            "list grammar grammar",
        ),
        (
            list_of(&[("other", "vllm"), ("m", "openai")]),
            "list plain plain",
        ),
        (
            list_of(&[("a", "x"), ("b", "llamacpp")]),
            "list grammar grammar",
        ),
        // A server without a list.
        (fails(404), "list plain plain"),
        (Script::json(200, &json!([])), "list plain plain"),
    ] {
        let (found, last) = sent(auto, 2, two(first)).await;
        assert_eq!(found, expected);
        assert_eq!(last.text, "Hello.");
    }
    // A server that is starting is asked again.
    let scripts = vec![fails(503), reply(), list("vllm"), reply()];
    let (found, _) = sent(auto, 2, scripts).await;
    assert_eq!(found, "list plain list response_format");
    let (found, _) = sent(always, 2, two(list("llamacpp"))).await;
    assert_eq!(found, "list grammar grammar");
    let (found, _) = sent(|model| model, 2, vec![reply(), reply()]).await;
    assert_eq!(found, "plain plain");
}

#[tokio::test]
async fn a_grammar_that_is_demanded_is_never_dropped() {
    let always = |model: OpenAi| model.constrain(Constrain::Always);
    for (scripts, expected, words) in [
        (
            vec![list("library")],
            "list",
            "names no engine that accepts a grammar; set `constrain` to the engine",
        ),
        (vec![fails(404)], "list", "not this"),
        (
            vec![list("vllm"), fails(400)],
            "list response_format",
            "not this",
        ),
    ] {
        let (found, last) = sent(always, 1, scripts).await;
        assert_eq!(found, expected);
        let error = last.error();
        assert_eq!(error.kind, ModelErrorKind::Refused);
        assert!(error.message.contains(words), "{error}");
    }
    let engine = |model: OpenAi| model.constrain(Constrain::For(Engine::LlamaCpp));
    let (found, last) = sent(engine, 1, vec![fails(500)]).await;
    assert_eq!(found, "grammar");
    assert_eq!(last.error().kind, ModelErrorKind::Busy);
}

#[tokio::test]
async fn a_rejected_grammar_is_omitted_for_ten_minutes() {
    let auto = |model: OpenAi| model.constrain(Constrain::Auto);
    for status in [400, 422, 500, 501] {
        let scripts = vec![list("vllm"), fails(status), reply(), reply()];
        let (found, last) = sent(auto, 2, scripts).await;
        assert_eq!(found, "list response_format plain plain", "{status}");
        assert_eq!(last.text, "Hello.");
    }
    // Another error is not about the grammar.
    let (found, last) = sent(auto, 1, vec![list("vllm"), fails(429)]).await;
    assert_eq!(found, "list response_format");
    assert_eq!(last.error().kind, ModelErrorKind::Busy);
    // The second error is the answer, and the next request has a grammar again.
    let scripts = vec![list("vllm"), fails(400), fails(401), reply()];
    let (found, last) = sent(auto, 2, scripts).await;
    assert_eq!(found, "list response_format plain response_format");
    assert_eq!(last.text, "Hello.");

    let scripts = vec![list("vllm"), fails(400), reply(), reply(), reply()];
    let server = ModelServer::start(scripts).await;
    let model = auto(OpenAi::new(server.url(), "m"));
    Received::all(model.reply(constrained())).await;
    for seconds in [590, 20] {
        pass(seconds).await;
        Received::all(model.reply(constrained())).await;
    }
    assert_eq!(
        summary(&server.seen().requests),
        "list response_format plain plain response_format"
    );
}

#[tokio::test]
async fn own_fields_take_precedence() {
    for name in constrained::REQUEST_FIELDS {
        let set = |model: OpenAi| {
            model
                .field(name, Json::new(&"own"))
                .constrain(Constrain::Always)
        };
        let (found, last) = sent(set, 1, vec![reply()]).await;
        assert_eq!((found.as_str(), &*last.text), (name, "Hello."));
        let model = set(OpenAi::new("http://localhost/v1", "m"));
        assert_eq!(model.constrains(), Constrain::Never);
    }
    // `null` sets nothing.
    let null = |model: OpenAi| {
        model
            .field("response_format", Json::new(&Value::Null))
            .constrain(Constrain::Always)
    };
    let (found, _) = sent(null, 1, vec![list("vllm"), reply()]).await;
    assert_eq!(found, "list response_format");
    assert_eq!(
        Anthropic::new("m").constrains(),
        Constrain::Never,
        "the API has no grammars"
    );
}

#[tokio::test]
async fn a_list_that_does_not_come_delays_only_one_request() {
    let scripts = vec![Script::nothing(Then::Stall), reply(), reply()];
    let server = ModelServer::start(scripts).await;
    let model = OpenAi::new(server.url(), "m").constrain(Constrain::Auto);
    let waits = async {
        while server.seen().requests.is_empty() {
            tokio::task::yield_now().await;
        }
        pass(6).await;
    };
    let (received, ()) = tokio::join!(Received::all(model.reply(constrained())), waits);
    assert_eq!(received.text, "Hello.");
    Received::all(model.reply(constrained())).await;
    assert_eq!(summary(&server.seen().requests), "list plain plain");
}

/// Lets time pass.
async fn pass(seconds: u64) {
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(seconds)).await;
    tokio::time::resume();
}
