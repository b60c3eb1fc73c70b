//! The client for servers with the `OpenAI` API, over sockets.

use plaincall::Stop;
use plaincall_agent::model::{Finish, ModelErrorKind, OpenAi};
use plaincall_testkit::model_server::{ModelServer, Script};
use serde_json::json;

use crate::heard::ask;

#[tokio::test]
async fn a_streamed_reply() {
    let server = ModelServer::start(vec![Script::stream(&["Hel", "lo."], "stop")]).await;
    let model = OpenAi::new(server.url(), "m").key("sk-12345678");
    let heard = ask(&model).await;
    assert_eq!(heard.text, "Hello.");
    assert_eq!(heard.finish(), &Finish::new(Stop::Natural).reason("stop"));
    let asked = &server.seen().requests[0];
    assert!(
        asked.head.starts_with("post /v1/chat/completions http/1.1"),
        "{}",
        asked.head
    );
    assert!(
        asked.head.contains("authorization: bearer sk-12345678"),
        "{}",
        asked.head
    );
    assert_eq!(
        asked.json(),
        json!({
            "model": "m",
            "messages": [
                {"role": "system", "content": "Be brief."},
                {"role": "user", "content": "Hi."}
            ],
            "stream": true,
            "stream_options": {"include_usage": true}
        })
    );
}

#[tokio::test]
async fn a_refusal() {
    let error = json!({"error": {"message": "Incorrect API key provided: sk-12345678", "code": "invalid_api_key"}});
    let server = ModelServer::start(vec![Script::json(401, &error)]).await;
    let heard = ask(&OpenAi::new(server.url(), "m").key("sk-12345678")).await;
    assert_eq!(heard.error().kind, ModelErrorKind::Refused);
    assert_eq!(
        heard.error().message,
        format!(
            "the model's server at {} does not take the key (status 401): Incorrect API key provided: [key]; is it the right one for this server?",
            server.url()
        )
    );
}
