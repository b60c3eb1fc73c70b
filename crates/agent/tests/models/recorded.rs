//! Recorded answers of various servers.

use std::fs;
use std::path::Path;

use plaincall_agent::model::{Anthropic, Model, OpenAi};
use plaincall_testkit::model_server::{Head, ModelServer, Script};

use crate::models::received::{ask, summary};

const STREAM: &str = "text/event-stream; charset=utf-8";
const JSON: &str = "application/json";

/// Checks the content of each recorded answer of a folder. Errors end with their message.
async fn check<M: Model>(
    folder: &str,
    content_type: &str,
    model: impl Fn(String) -> M,
    table: &[(&str, &str)],
) {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../wire/tests/payloads");
    let files = fs::read_dir(path.join(folder)).expect("the folder");
    let names = files.map(|file| file.expect("a file").file_name());
    let mut names: Vec<_> = names
        .map(|name| name.to_string_lossy().into_owned())
        .collect();
    names.sort();
    let listed: Vec<_> = table.iter().map(|(name, _)| *name).collect();
    assert_eq!(listed, names, "{folder}");
    let server = ModelServer::start(Vec::new()).await;
    for (name, expected) in table {
        let body = fs::read(path.join(folder).join(name)).expect("a file");
        // Complete, in small pieces, and with other line ends.
        let crlf = String::from_utf8_lossy(&body)
            .replace('\n', "\r\n")
            .into_bytes();
        for (body, sizes) in [(&body, usize::MAX), (&body, 7), (&crlf, 50)] {
            let head = Head::new(200).header("content-type", content_type);
            server.play([Script::new(head, vec![body.clone()]).cut(&[sizes])]);
            let reply = ask(&model(server.url())).await;
            let words = reply.end.as_ref().expect("an end").as_ref().err();
            let words = words.map_or(String::new(), |error| {
                let (_, words) = error.message.split_once(&server.url()).unwrap_or_default();
                words.to_owned()
            });
            assert_eq!(format!("{}{words}", summary(&reply)), *expected, "{name}");
        }
    }
}

const CALL: &str = " returned a native tool call although the request has no tools; turn off its tool calls (vLLM: without --enable-auto-tool-choice; llama.cpp: without --jinja, or with another chat template)";

#[tokio::test]
async fn streams() {
    let gemini = format!("()Fine <Refused> {{6 0 14}}{CALL}");
    let openai_tools = format!("() <Refused>{CALL}");
    check(
        "stream",
        STREAM,
        |url| OpenAi::new(url, "m"),
        &[
            ("azure.sse", "()Hello <Natural stop>"),
            ("gemini.sse", &gemini),
            ("llamacpp.sse", "(Greet)Hello! <Natural stop> {68 0 7}"),
            ("lmstudio.sse", "()Hi <Natural stop>"),
            (
                "mistral.sse",
                "(Two and two.)Four. <Natural stop> {17 0 49}",
            ),
            ("ollama.sse", "(Hm.)Hi <Natural stop> {11 0 9}"),
            ("openai-tools.sse", &openai_tools),
            (
                "openai.sse",
                "()Grüße, \"Łódź\"\n 🛰🚀 <Natural stop> {9 0 12}",
            ),
            (
                "openrouter-error.sse",
                "()Hal <Busy> failed (status 502): Provider disconnected",
            ),
            ("vllm.sse", "(Let me see)Seen <Length length> {9 0 3}"),
        ],
    )
    .await;
}

#[tokio::test]
async fn whole_answers() {
    let openai = format!("() <Refused> {{135 0 83}}{CALL}");
    check(
        "response",
        JSON,
        |url| OpenAi::new(url, "m"),
        &[
            ("azure.json", "()I <Broken content_filter> {8 0 1}"),
            ("gemini.json", "()It is fine. <Natural stop> {6 0 4}"),
            ("llamacpp.json", "(Greeting.)Hello! <Natural stop> {68 0 7}"),
            ("lmstudio.json", "(Short.)Hi! <Natural stop> {70 0 12}"),
            (
                "mistral.json",
                "(Two and two.)Four. <Natural stop> {17 0 49}",
            ),
            (
                "null-choices.json",
                "() <Broken> {0 0 3} is incomplete: it contains no reply",
            ),
            (
                "ollama.json",
                "(The user says hi.\n)Hi. <Natural stop> {11 0 9}",
            ),
            ("openai-tool-calls.json", &openai),
            ("vllm.json", "()Hello <Length length> {9 0 3}"),
        ],
    )
    .await;
}

#[tokio::test]
async fn messages() {
    let thinking = format!("(Let me see.)Grüße <Refused> {{32 7 1}}{CALL}");
    check(
        "messages-stream",
        STREAM,
        |url| Anthropic::at(url, "m"),
        &[
            (
                "overloaded.sse",
                "() <Busy> {3 0 1} failed (status 529): Overloaded",
            ),
            ("thinking.sse", &thinking),
        ],
    )
    .await;
    check(
        "messages-response",
        JSON,
        |url| Anthropic::at(url, "m"),
        &[(
            "thinking.json",
            "(Let me see.)Hello! <Natural end_turn> {2110 5 503}",
        )],
    )
    .await;
}
