//! Error responses of servers, and the errors that result from them.

use std::time::Duration;

use plaincall_agent::http::Waits;
use plaincall_agent::model::{ModelError, ModelErrorKind, OpenAi};
use plaincall_testkit::model_server::{Head, ModelServer, Script, Then};
use serde_json::json;

use crate::models::received::ask;

use ModelErrorKind::{Broken, Busy, Connect, NotRunning, Refused, Timeout, TooLong};

/// Returns the error of an answer, without the address that it contains.
async fn error(script: Script) -> ModelError {
    let server = ModelServer::start(vec![script]).await;
    let received = ask(&OpenAi::new(server.url(), "m").key("sk-12345678")).await;
    assert_eq!((received.text.as_str(), received.usage), ("", None));
    let mut error = received.error().clone();
    error.message = error.message.replace(&server.url(), "URL");
    error
}

fn body(status: u16, content_type: &str, body: &str) -> Script {
    let head = Head::new(status).header("content-type", content_type);
    Script::new(head, vec![body.as_bytes().to_vec()])
}

#[tokio::test]
#[allow(clippy::too_many_lines, reason = "a table")]
async fn refusals() {
    let message = |message: &str| json!({"error": {"message": message}}).to_string();
    let page = "<!doctype html><title>Welcome</title>".to_owned();
    let json = "application/json";
    let long = format!("{}!", "no ".repeat(50_000));
    for (script, kind, expected) in [
        (
            body(401, json, &json!({"error": {"message": "Incorrect API key provided: sk-12345678", "code": "invalid_api_key"}}).to_string()),
            Refused,
            "the model's server at URL rejected the key (status 401): Incorrect API key provided: [key]; is it the right one for this server?",
        ),
        (
            body(401, json, &json!({"error": {"message": "wrong: \u{73}k-12345678"}}).to_string()),
            Refused,
            "the model's server at URL rejected the key (status 401): wrong: [key]; is it the right one for this server?",
        ),
        (
            body(403, json, &json!({"detail": "Forbidden"}).to_string()),
            Refused,
            "the model's server at URL denied access (status 403): Forbidden; may the key use the model `m`?",
        ),
        (
            body(404, json, &message("model \"m\" not found, try pulling it first")),
            Refused,
            "the model's server at URL does not have the model `m` (status 404): model \"m\" not found, try pulling it first; URL/models lists its models",
        ),
        (
            body(404, "text/plain", "404 page not found"),
            Refused,
            "the model's server at URL has no endpoint /chat/completions (status 404): 404 page not found; is the URL right?",
        ),
        (
            body(405, "text/html", "<html><title>Not Allowed</title>"),
            Refused,
            "the model's server at URL has no endpoint /chat/completions (status 405): an HTML page, Not Allowed; is the URL right?",
        ),
        (
            body(400, json, &message("Unsupported parameter: 'max_tokens'")),
            Refused,
            "the model's server at URL rejected the request (status 400): Unsupported parameter: 'max_tokens'",
        ),
        (
            body(422, json, &json!({"detail": [{"loc": ["body"], "msg": "no"}]}).to_string()),
            Refused,
            "the model's server at URL rejected the request (status 422): [{\"loc\":[\"body\"],\"msg\":\"no\"}]",
        ),
        (
            body(402, json, &message("Insufficient credits")),
            Refused,
            "the model's server at URL requires payment (status 402): Insufficient credits; check the account of the key",
        ),
        (
            body(429, json, &json!({"error": {"message": "You exceeded your current quota, please check your plan and billing details.", "type": "insufficient_quota"}}).to_string()),
            Refused,
            "the model's server at URL requires payment (status 429): You exceeded your current quota, please check your plan and billing details.; check the account of the key",
        ),
        (
            body(429, json, &message("Rate limit reached: too many tokens per minute")),
            Busy,
            "the model's server at URL is busy (status 429): Rate limit reached: too many tokens per minute",
        ),
        (body(408, json, ""), Busy, "the model's server at URL is busy (status 408)"),
        (body(500, "text/plain", ""), Busy, "the model's server at URL failed (status 500)"),
        (
            body(502, "text/html", "<html><head><title>502 Bad\nGateway</title></head></html>"),
            Busy,
            "the model's server at URL failed (status 502): an HTML page, 502 Bad Gateway",
        ),
        (
            body(503, json, &json!({"error": "model is loading"}).to_string()),
            Busy,
            "the model's server at URL failed (status 503): model is loading",
        ),
        (
            body(529, json, &json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}).to_string()),
            Busy,
            "the model's server at URL failed (status 529): Overloaded",
        ),
        (
            body(200, json, "\u{1f}").header("content-encoding", "gzip"),
            Refused,
            "the model's server at URL sent a reply with the content encoding `gzip`, although the request accepts none; is there a proxy in front of it?",
        ),
        (
            body(302, "text/plain", "").header("location", "https://elsewhere.example/"),
            Refused,
            "the model's server at URL redirects to https://elsewhere.example/ (status 302), which is not followed; use the URL of the server itself",
        ),
        (
            body(200, "text/html", &page),
            Refused,
            "the model's server at URL returned an HTML page (Welcome) instead of a model's response; is the URL right?",
        ),
        (
            body(200, "text/plain", "Ollama is running"),
            Refused,
            "the model's server at URL returned something other than a model's response: Ollama is running; is the URL right?",
        ),
        (
            body(200, "application/json", ""),
            Broken,
            "the response of the model's server at URL is invalid: the text ends inside a value (line 1, column 0)",
        ),
        (
            body(400, "text/plain", &long),
            Refused,
            &format!("the model's server at URL rejected the request (status 400): {}no …", "no ".repeat(199)),
        ),
    ] {
        let error = error(script).await;
        assert_eq!((error.kind, error.message.as_str()), (kind, expected));
    }
}

#[tokio::test]
async fn too_long_in_many_words() {
    for (status, code, words) in [
        (
            400,
            "context_length_exceeded",
            "Your input exceeds the window.",
        ),
        (
            400,
            "",
            "This model's maximum context length is 4096 tokens. However, you requested 9000.",
        ),
        (
            500,
            "exceed_context_size_error",
            "the request exceeds the available context size",
        ),
        (
            400,
            "",
            "The input token count (9000) exceeds the maximum number of tokens allowed (8192).",
        ),
        (
            400,
            "",
            "prompt is too long: 200001 tokens > 200000 maximum",
        ),
        (
            400,
            "",
            "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000",
        ),
        (
            400,
            "",
            "Trying to keep the first 9000 tokens when context the overflows. However, the model is loaded with context length of 4096",
        ),
        (
            422,
            "",
            "Prompt contains 40000 tokens, too large for model with 32768 maximum context length",
        ),
        (400, "", "Input is too long for requested model."),
        (413, "", "Request Entity Too Large"),
    ] {
        let json = json!({"error": {"message": words, "code": code}});
        let error = error(Script::json(status, &json)).await;
        assert_eq!(error.kind, TooLong, "{words}");
        let expected =
            format!("the conversation exceeds the context window of the model `m`: {words}");
        assert_eq!(error.message, expected);
    }
}

#[tokio::test]
async fn when_to_come_again() {
    let seconds = Duration::from_secs;
    let google = json!([{"error": {"code": 429, "message": "Quota exceeded", "details": [{"a": 1}, {"retryDelay": "30.5s"}]}}]);
    for (headers, expected) in [
        (vec![("retry-after", "7")], Some(seconds(7))),
        (
            vec![("retry-after", "0.25")],
            Some(Duration::from_millis(250)),
        ),
        (
            vec![("retry-after-ms", "1500"), ("retry-after", "2")],
            Some(Duration::from_millis(1500)),
        ),
        (
            vec![
                ("date", "Sun, 06 Nov 1994 08:49:37 GMT"),
                ("retry-after", "Sun, 06 Nov 1994 08:50:00 GMT"),
            ],
            Some(seconds(23)),
        ),
        (
            vec![("retry-after", "Sun, 06 Nov 1994 08:50:00 GMT")],
            Some(Duration::ZERO),
        ),
        // A time that no clock can represent is omitted.
        (
            vec![("retry-after", "-1")],
            Some(Duration::from_millis(30_500)),
        ),
        (
            vec![("retry-after", "1e99")],
            Some(Duration::from_millis(30_500)),
        ),
        (
            vec![("retry-after", "soon")],
            Some(Duration::from_millis(30_500)),
        ),
        (vec![], Some(Duration::from_millis(30_500))),
    ] {
        let mut script = Script::json(429, &google);
        for (name, value) in &headers {
            script = script.header(name, *value);
        }
        let error = error(script).await;
        assert_eq!(
            (error.kind, error.retry_after),
            (Busy, expected),
            "{headers:?}"
        );
    }
}

#[tokio::test]
async fn wrong_addresses_of_a_server() {
    let server = ModelServer::start(vec![body(404, "text/plain", "404 page not found")]).await;
    let url = format!("http://{}", server.address);
    let received = ask(&OpenAi::new(&url, "m")).await;
    let words = format!("; the URL may need to end with /v1: {url}/v1");
    assert!(
        received.error().message.ends_with(&words),
        "{}",
        received.error()
    );
    server.play([Script::json(401, &json!({"error": "no"}))]);
    let received = ask(&OpenAi::new(server.url(), "m")).await;
    assert!(
        received
            .error()
            .message
            .ends_with("requires a key (status 401): no"),
        "{}",
        received.error()
    );
    // No server listens.
    let absent = server.address;
    drop(server);
    let closed = |error: &std::io::Error| error.kind() == std::io::ErrorKind::ConnectionRefused;
    while !std::net::TcpStream::connect(absent).is_err_and(|error| closed(&error)) {
        tokio::task::yield_now().await;
    }
    let received = ask(&OpenAi::new(format!("http://{absent}/v1"), "m")).await;
    let error = received.error();
    assert_eq!(error.kind, NotRunning);
    assert_eq!(
        error.message,
        format!(
            "the model's server at http://{absent}/v1 cannot be reached: connection refused; is it running?"
        )
    );
    let received = ask(&OpenAi::new("http://no-such-host.invalid/v1", "m")).await;
    let error = received.error();
    assert_eq!(error.kind, Connect);
    assert!(
        error
            .message
            .ends_with("; is it running, and is the URL right?"),
        "{error}"
    );
}

#[tokio::test]
async fn connections_that_break() {
    let half = || Script::stream(&["Hel", "lo"], "stop");
    for (script, text) in [
        (Script::nothing(Then::Break), ""),
        (Script::nothing(Then::Reset), ""),
        (half().only(1, Then::Break), "Hel"),
        (half().only(1, Then::Reset), "Hel"),
        (half().only(2, Then::End), "Hello"),
        (
            Script::json(200, &json!({"choices": []})).only(0, Then::Break),
            "",
        ),
    ] {
        let server = ModelServer::start(vec![script.clone()]).await;
        let received = ask(&OpenAi::new(server.url(), "m")).await;
        let is_received =
            received.text == text || (script.then == Then::Reset && received.text.is_empty());
        assert!(is_received, "{received:?}");
        assert_eq!(received.error().kind, Broken, "{}", received.error());
        // No request is retried automatically.
        assert_eq!(server.seen().requests.len(), 1);
    }
}

#[tokio::test]
async fn waits_have_an_end() {
    let (short, long) = (Duration::from_millis(50), Duration::from_mins(5));
    let waits = |first, idle, whole| {
        let mut waits = Waits::default();
        (waits.first, waits.idle, waits.whole) = (first, idle, whole);
        waits
    };
    let slow = Script::stream(&vec!["a"; 10_000], "stop").after(Duration::from_millis(5));
    for (script, waits, expected) in [
        (
            Script::nothing(Then::Stall),
            waits(short, long, long),
            "has not started to respond for 50 ms",
        ),
        (
            Script::nothing(Then::Stall),
            waits(long, long, short),
            "has not started to respond for 50 ms",
        ),
        (
            Script::stream(&["a"], "stop").only(1, Then::Stall),
            waits(long, short, long),
            "stopped sending data for 50 ms",
        ),
        (
            slow,
            waits(long, long, short * 4),
            "has not finished its response for 200 ms",
        ),
    ] {
        let server = ModelServer::start(vec![script]).await;
        let received = ask(&OpenAi::new(server.url(), "m").waits(waits)).await;
        assert_eq!(received.error().kind, Timeout);
        let message = format!("the model's server at {} {expected}", server.url());
        assert_eq!(received.error().message, message);
        server.until(|seen| seen.dropped == 1).await;
    }
}

#[tokio::test]
async fn too_long_responses_are_errors() {
    let giant = json!({"choices": [{"delta": {"content": "x".repeat(5 << 20)}}]});
    let stream = body(200, "text/event-stream", &format!("data: {giant}\n\n"));
    let found = error(stream).await;
    assert_eq!(found.kind, Broken);
    assert!(
        found
            .message
            .ends_with("a line of the event stream has more than 4194304 bytes"),
        "{found}"
    );
    // At most as much of an error's body is read as the message contains.
    let server = ModelServer::start(vec![
        body(500, "text/plain", &"x".repeat(1 << 20)).cut(&[1 << 14]),
    ])
    .await;
    let received = ask(&OpenAi::new(server.url(), "m")).await;
    assert!(
        received.error().message.len() < 1000,
        "{}",
        received.error()
    );
}
