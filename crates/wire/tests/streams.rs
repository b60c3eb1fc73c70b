//! The contents of streams and answers of real servers.

#![allow(clippy::expect_used, clippy::panic, reason = "a test fails by a panic")]

use crate::payloads;

use std::fmt::Write as _;

use payloads::{data_of, folder};
use plaincall_wire::anthropic::{
    MessageResponse, StreamEvent, StreamUpdate, Usage as MessageUsage,
};
use plaincall_wire::openai::{
    ChatCompletion, ChatCompletionChunk, ChatCompletionRequest, Choose, ErrorObject, ModelList,
    read_error,
};
use plaincall_wire::read;

fn file(folder_name: &str, name: &str) -> String {
    let found = folder(folder_name)
        .into_iter()
        .find(|(found, _)| found == name);
    found.unwrap_or_else(|| panic!("{folder_name}/{name}")).1
}

/// All files of the folder are in the table.
fn check_complete(folder_name: &str, table: &[(&str, &str)]) {
    let names: Vec<_> = folder(folder_name)
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    let listed: Vec<_> = table.iter().map(|(name, _)| (*name).to_owned()).collect();
    assert_eq!(listed, names, "{folder_name}");
}

fn error_summary(error: &ErrorObject<'_>) -> String {
    let message = error.message.as_deref().unwrap_or_default();
    let kind = error.kind.as_deref().unwrap_or("-");
    let code = error.code.as_ref().map_or("-", |code| code.text());
    format!("{kind} {code}: {message}")
}

/// Summarizes a stream: reasoning in (), text, calls in [], the finish reason in <>, the tokens in {}.
fn stream_summary(stream: &str) -> String {
    let (mut thoughts, mut text, mut calls, mut rest) =
        (String::new(), String::new(), String::new(), String::new());
    for data in data_of(stream) {
        let Some(chunk) = ChatCompletionChunk::read(&data).expect("a chunk") else {
            rest.push_str(" done");
            continue;
        };
        for choice in chunk.choices() {
            assert_eq!(choice.index, Some(0));
            thoughts.push_str(&choice.thought());
            text.push_str(&choice.content());
            for call in choice.calls() {
                if !call.name().is_empty() {
                    write!(calls, " {:?}/{}", call.index, call.name()).expect("a string");
                }
                calls.push_str(call.arguments());
            }
            if let Some(reason) = choice.finished() {
                write!(rest, " <{reason}>").expect("a string");
            }
        }
        if let Some(usage) = &chunk.usage {
            write!(rest, " {{{:?}}}", usage.completion_tokens.unwrap_or(0)).expect("a string");
        }
        if chunk.error.is_some() {
            write!(
                rest,
                " error {}",
                error_summary(&read_error(data.as_bytes()))
            )
            .expect("a string");
        }
    }
    format!("({thoughts}){text}[{calls}]{rest}")
}

#[test]
fn streams_of_chunks() {
    let table = [
        ("azure.sse", "()Hello[] <stop> done"),
        (
            "gemini.sse",
            "()Fine[ None/get_weather{\"city\":\"Paris\"}] {1} <tool_calls> {14} done",
        ),
        ("llamacpp.sse", "(Greet)Hello![] <stop> {7} done"),
        ("lmstudio.sse", "()Hi[] <stop> done"),
        ("mistral.sse", "(Two and two.)Four.[] <stop> {49} done"),
        ("ollama.sse", "(Hm.)Hi[] <stop> {9} done"),
        (
            "openai-tools.sse",
            "()[ Some(0)/get_weather{\"city\":\"Paris\"} Some(1)/now{}] <tool_calls> done",
        ),
        ("openai.sse", "()Grüße, \"Łódź\"\n 🛰🚀[] <stop> {12} done"),
        (
            "openrouter-error.sse",
            "()Hal[] <error> error - 502: Provider disconnected",
        ),
        ("vllm.sse", "(Let me see)Seen[] <length> {3} done"),
    ];
    check_complete("stream", &table);
    for (name, expected) in table {
        assert_eq!(stream_summary(&file("stream", name)), expected, "{name}");
    }
}

#[test]
fn whole_answers() {
    let table = [
        ("azure.json", "()I[] content_filter 1"),
        ("gemini.json", "()It is fine.[] stop 4"),
        ("llamacpp.json", "(Greeting.)Hello![] stop 7"),
        ("lmstudio.json", "(Short.)Hi![] stop 12"),
        ("mistral.json", "(Two and two.)Four.[] stop 49"),
        ("null-choices.json", ""),
        ("ollama.json", "(The user says hi.\n)Hi.[] stop 9"),
        (
            "openai-tool-calls.json",
            "()[get_weather{\"city\":\"Paris\"}] tool_calls 83",
        ),
        ("vllm.json", "()Hello[] length 3"),
    ];
    check_complete("response", &table);
    for (name, expected) in table {
        let json = file("response", name);
        let answer: ChatCompletion = read(json.as_bytes()).expect("an answer");
        let tokens = answer
            .usage
            .as_ref()
            .and_then(|usage| usage.completion_tokens);
        let found: Vec<String> = answer
            .choices()
            .iter()
            .map(|choice| {
                let message = choice.message.as_ref().expect("a message");
                let content = message.content.as_ref();
                let in_parts: String = content
                    .map(|content| content.thinking().collect())
                    .unwrap_or_default();
                let calls = message.calls().iter();
                let calls: Vec<String> = calls
                    .map(|call| format!("{}{}", call.name(), call.arguments()))
                    .collect();
                format!(
                    "({}){}[{}] {} {}",
                    message.thought().unwrap_or(&in_parts),
                    content.map(|content| content.text()).unwrap_or_default(),
                    calls.concat(),
                    choice.finish_reason.as_deref().unwrap_or_default(),
                    tokens.unwrap_or(0)
                )
            })
            .collect();
        assert_eq!(found.concat(), expected, "{name}");
    }
}

#[test]
fn requests() {
    let table = [
        (
            "allowed-tools.json",
            "Some(\"gpt-5\") 0 messages, 0 tools, Allowed { names: [\"a\", \"b\"], is_required: true }",
        ),
        (
            "arguments-as-object.json",
            "Some(\"m\") 2 messages, 0 tools, None",
        ),
        (
            "langchain.json",
            "Some(\"qwen3:8b\") 4 messages, 1 tools, Named(\"add\")",
        ),
        (
            "legacy-functions.json",
            "Some(\"gpt-3.5-turbo-0613\") 3 messages, 0 tools, None",
        ),
        ("llamacpp-extras.json", "None 1 messages, 0 tools, None"),
        (
            "openai-parts.json",
            "Some(\"gpt-4o\") 1 messages, 0 tools, None",
        ),
        (
            "openai-tools.json",
            "Some(\"gpt-5-mini\") 5 messages, 2 tools, Auto streamed with usage",
        ),
    ];
    check_complete("request", &table);
    for (name, expected) in table {
        let json = file("request", name);
        let request: ChatCompletionRequest = read(json.as_bytes()).expect("a request");
        let choice = request
            .tool_choice
            .as_ref()
            .map(|choice| format!("{:?}", choice.choose()));
        let found = format!(
            "{:?} {} messages, {} tools, {}{}{}",
            request.model,
            request.messages.len(),
            request.tools().expect("tools").len(),
            choice.as_deref().unwrap_or("None"),
            if request.is_streamed() {
                " streamed"
            } else {
                ""
            },
            if request.includes_usage() {
                " with usage"
            } else {
                ""
            },
        );
        assert_eq!(found, expected, "{name}");
    }
}

#[test]
fn every_form_of_tool_choice() {
    let table = [
        ("\"none\"", Choose::None),
        ("\"auto\"", Choose::Auto),
        ("\"required\"", Choose::Required),
        ("\"any\"", Choose::Required),
        ("\"always\"", Choose::Other),
        (
            r#"{"type":"function","function":{"name":"f"}}"#,
            Choose::Named("f"),
        ),
        (
            r#"{"function":{"name":"f"},"type":"function"}"#,
            Choose::Named("f"),
        ),
        (r#"{"type":"function","name":"f"}"#, Choose::Named("f")),
        (r#"{"type":"tool","name":"f"}"#, Choose::Named("f")),
        (r#"{"type":"auto"}"#, Choose::Auto),
        (r#"{"type":"any"}"#, Choose::Required),
        (r#"{"type":"custom","custom":{"name":"f"}}"#, Choose::Other),
        (r#"{"type":"function"}"#, Choose::Other),
        (r#"{"type":"allowed_tools"}"#, Choose::Other),
        (
            r#"{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[]}}"#,
            Choose::Allowed {
                names: vec![],
                is_required: false,
            },
        ),
        (
            r#"{"type":"allowed_tools","allowed_tools":{"mode":"auto","tools":[{"type":"mcp"}]}}"#,
            Choose::Other,
        ),
        ("{}", Choose::Other),
    ];
    for (json, expected) in table {
        let body = format!(r#"{{"messages":[],"tool_choice":{json}}}"#);
        let request: ChatCompletionRequest = read(body.as_bytes()).expect("a request");
        assert_eq!(
            request.tool_choice.as_ref().expect("a choice").choose(),
            expected,
            "{json}"
        );
        assert_eq!(plaincall_wire::write(&request), body);
    }
}

#[test]
fn models() {
    let table = [
        ("llamacpp.json", "m.gguf"),
        ("ollama-empty.json", ""),
        ("openai.json", "gpt-5 o3"),
        ("vllm.json", "Qwen/Qwen3-8B"),
    ];
    check_complete("models", &table);
    for (name, expected) in table {
        let json = file("models", name);
        let list: ModelList = read(json.as_bytes()).expect("a list");
        let models = list.data.unwrap_or_default();
        let ids: Vec<_> = models
            .iter()
            .filter_map(|model| model.id.as_deref())
            .collect();
        assert_eq!(ids.join(" "), expected, "{name}");
    }
}

#[test]
fn errors_in_every_form() {
    let table = [
        ("anthropic.json", "overloaded_error null: Overloaded"),
        ("fastapi.json", "- null: Unauthorized"),
        ("gemini.json", "- 429: Quota exceeded"),
        (
            "llamacpp.json",
            "exceed_context_size_error 500: the request exceeds the available context size",
        ),
        (
            "mistral.json",
            r#"invalid_request_error null: {"detail":[{"type":"missing","loc":["body","messages"],"msg":"Field required"}]}"#,
        ),
        (
            "nginx.html",
            "- null: <html><body><h1>502 Bad Gateway</h1></body></html>",
        ),
        (
            "ollama.json",
            r#"api_error null: model "x" not found, try pulling it first"#,
        ),
        (
            "openai.json",
            r#"invalid_request_error "unknown_parameter": Unrecognized request argument supplied: tolls"#,
        ),
        ("text.json", "- null: model is loading"),
        (
            "vllm-old.json",
            "BadRequestError 400: This model's maximum context length is 4096 tokens.",
        ),
    ];
    check_complete("error", &table);
    for (name, expected) in table {
        let body = file("error", name);
        assert_eq!(
            error_summary(&read_error(body.as_bytes())),
            expected,
            "{name}"
        );
    }
    for (body, expected) in [
        ("", "- null: "),
        ("{}", "- null: {}"),
        ("[]", "- null: []"),
        ("\"no\"", "- null: no"),
        (r#"{"error":{}}"#, r#"- null: {"error":{}}"#),
        (r#"{"error":null,"message":"m"}"#, "- null: m"),
        (r#"{"error":{"error":{"message":"m"}}}"#, "- null: m"),
        (r#"[[[[[["deep"]]]]]]"#, r#"- null: [[[[[["deep"]]]]]]"#),
    ] {
        assert_eq!(
            error_summary(&read_error(body.as_bytes())),
            expected,
            "{body}"
        );
    }
}

/// Summarizes a stream of Anthropic events: thinking in (), text, calls in [], then the rest.
fn messages_summary(stream: &str) -> String {
    let (mut thoughts, mut text, mut calls, mut rest) =
        (String::new(), String::new(), String::new(), String::new());
    let mut sum = MessageUsage::default();
    for data in data_of(stream) {
        let event: StreamEvent = read(data.as_bytes()).expect("an event");
        match event.update() {
            StreamUpdate::Start(message) => {
                if let Some(usage) = &message.usage {
                    sum.update(&usage.clone().into_owned());
                }
            }
            StreamUpdate::BlockStart(block) => match block.kind.as_deref() {
                Some("tool_use") => calls.push_str(block.name.as_deref().expect("a name")),
                Some("text") => text.push_str(block.text.as_deref().expect("text")),
                _ => {}
            },
            StreamUpdate::Text(piece) => text.push_str(piece),
            StreamUpdate::Thinking(piece) => thoughts.push_str(piece),
            StreamUpdate::InputJson => calls.push('.'),
            StreamUpdate::Ending { stop_reason, usage } => {
                sum.update(&usage.expect("usage").clone().into_owned());
                write!(rest, " {stop_reason:?}").expect("a string");
            }
            StreamUpdate::Stop => rest.push_str(" stop"),
            StreamUpdate::Error => {
                write!(rest, " {}", error_summary(&read_error(data.as_bytes()))).expect("a string");
            }
            _ => rest.push_str(" other"),
        }
    }
    let (input, output) = (sum.all_input_tokens(), sum.output_tokens.unwrap_or(0));
    format!("({thoughts}){text}[{calls}]{rest} {{{input}+{output}}}")
}

#[test]
fn streams_of_messages() {
    let table = [
        (
            "overloaded.sse",
            "()[] other overloaded_error null: Overloaded {3+1}",
        ),
        (
            "thinking.sse",
            "(Let me see.)Grüße[add..] other other other other other other Some(\"tool_use\") stop {32+89}",
        ),
    ];
    check_complete("messages-stream", &table);
    for (name, expected) in table {
        assert_eq!(
            messages_summary(&file("messages-stream", name)),
            expected,
            "{name}"
        );
    }
    let json = file("messages-response", "thinking.json");
    let answer: MessageResponse = read(json.as_bytes()).expect("an answer");
    let blocks = answer.content.as_deref().unwrap_or_default();
    let texts: String = blocks
        .iter()
        .filter_map(|block| block.text.as_deref())
        .collect();
    let thoughts = blocks.iter().filter_map(|block| block.thinking.as_deref());
    assert_eq!(texts, "Hello!");
    assert_eq!(thoughts.collect::<String>(), "Let me see.");
    assert_eq!(answer.stop_reason.as_deref(), Some("end_turn"));
}
