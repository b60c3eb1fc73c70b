//! Answers that are not streamed.

use plaincall_gateway::translation::{CompleteResponse, Exchange, Next, Reply, StreamedResponse};
use plaincall_gateway::{ModelSettings, Secret};
use plaincall_wire::openai::{ChatCompletion, ChatCompletionChunk};
use plaincall_wire::sse::{Decoder, Limits};
use serde_json::{Value, json};

use crate::replies::model::{Stream, exchange, plan, streaming};

fn completion(text: &str, reason: &str) -> Value {
    json!({
        "id": "chatcmpl-9", "object": "chat.completion", "created": 7, "model": "m", "timings": {"ms": 1},
        "choices": [{"index": 0, "message": {"role": "assistant", "content": text, "reasoning": "hm", "annotations": []},
            "logprobs": {"content": []}, "finish_reason": reason}],
        "usage": {"prompt_tokens": 10, "completion_tokens": 1, "total_tokens": 11},
    })
}

/// The answer to the client, after as many rounds as there are texts.
fn answer(settings: &ModelSettings, texts: &[&str], reason: &str) -> Result<Value, String> {
    let fields = json!({"stream": false});
    let whole = CompleteResponse::new("chatcmpl-0", 1);
    let reply = Reply::new(
        plan(&fields, settings),
        Secret::new("seed"),
        Box::new(whole),
    );
    let mut exchange = Exchange::new(reply, Limits::default());
    for text in texts {
        let body = completion(text, reason).to_string();
        let upstream: ChatCompletion<'_> = plaincall_wire::read(body.as_bytes()).unwrap();
        match exchange.whole(upstream) {
            Next::Repair(_) => {}
            Next::Failed(error) => return Err(error.message().to_owned()),
            _ => return Ok(serde_json::from_slice(&exchange.take()).unwrap()),
        }
    }
    panic!("it wants another round");
}

const TEXTS: &[&str] = &[
    "Hi.\n",
    "So:\n!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END\n!!!GADGET_START:now\n!!!GADGET_END",
    "!!!GADGET_START:add\n!!!ARG:a\nfive\n!!!GADGET_END",
    "<think>a</think>\n!!!GADGET_START:write\n!!!ARG:path\na",
];

#[test]
fn an_answer_is_what_a_stream_gives() {
    for text in TEXTS.iter().filter(|text| !text.contains("five")) {
        for reason in ["stop", "length"] {
            let answer = answer(&ModelSettings::default(), &[text], reason).unwrap();
            let stream = Stream::new()
                .thought("reasoning", "hm")
                .texts([*text])
                .finish(reason)
                .done();
            let recorded = exchange(
                &plan(&json!({}), &ModelSettings::default()),
                &[stream],
                &[usize::MAX],
                false,
            )
            .recorded;
            let choice = &answer["choices"][0];
            let message = &choice["message"];
            assert_eq!(
                message["content"].as_str().unwrap_or_default(),
                recorded.content
            );
            assert_eq!(message["reasoning"], recorded.reasoning);
            assert_eq!(choice["finish_reason"], recorded.finish_reason.unwrap());
            let calls: Vec<Value> = recorded
                .calls
                .iter()
                .map(|call| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}))
                .collect();
            let given = message
                .get("tool_calls")
                .cloned()
                .unwrap_or_else(|| json!([]));
            assert_eq!(given, json!(calls), "{text:?}");
            // All else stays.
            assert_eq!(answer["timings"], json!({"ms": 1}));
            assert_eq!(message["annotations"], json!([]));
            assert_eq!(answer["usage"]["total_tokens"], 11);
            assert_eq!(choice["logprobs"], Value::Null);
        }
    }
}

/// Fields of each chunk are also in a complete answer.
#[test]
fn an_answer_with_few_fields() {
    let choices = r#""choices":[{"message":{"content":"Hi."},"delta":{"content":"Hi."},"finish_reason":"stop"}]"#;
    for (given, expected) in [
        ("", json!(["chatcmpl-0", 1, ""])),
        (
            r#""id":"","created":null,"model":null,"object":"","#,
            json!(["chatcmpl-0", 1, ""]),
        ),
        (
            r#""id":null,"created":"now","object":null,"#,
            json!(["chatcmpl-0", 1, ""]),
        ),
        (
            r#""id":"a","created":7,"model":"m","object":"text","#,
            json!(["a", 7, "m"]),
        ),
    ] {
        let body = format!("{{{given}{choices}}}");
        let plan = plan(&json!({}), &ModelSettings::default());
        let whole = CompleteResponse::new("chatcmpl-0", 1);
        let reply = Reply::new(plan.clone(), Secret::new("seed"), Box::new(whole));
        let mut exchange = Exchange::new(reply, Limits::default());
        let upstream: ChatCompletion<'_> = plaincall_wire::read(body.as_bytes()).unwrap();
        assert_eq!(exchange.whole(upstream), Next::Done);
        let answer: Value = serde_json::from_slice(&exchange.take()).unwrap();
        assert_eq!(answer["object"], "chat.completion");
        let head = |answer: &Value| json!([answer["id"], answer["created"], answer["model"]]);
        assert_eq!(head(&answer), expected, "{given}");

        let answer = StreamedResponse::new("chatcmpl-0", 1, false);
        let mut reply = Reply::new(plan, Secret::new("seed"), Box::new(answer));
        let chunk = ChatCompletionChunk::read(&body).unwrap().unwrap();
        reply.push(chunk);
        let bytes = reply.encoder_mut().take();
        let mut events = Decoder::new();
        let first = events.feed(&bytes).next().unwrap().unwrap();
        let first: Value = serde_json::from_str(&first.data).unwrap();
        assert_eq!(head(&first), expected, "{given}");
    }
}

#[test]
fn complete_answers_are_always_checked() {
    for settings in [ModelSettings::default(), streaming()] {
        let answer = |texts: &[&str]| answer(&settings, texts, "stop");
        let repaired = answer(&[TEXTS[2], TEXTS[1]]).unwrap();
        let calls = &repaired["choices"][0]["message"]["tool_calls"];
        assert_eq!(calls.as_array().unwrap().len(), 2);
        assert_eq!(repaired["usage"]["prompt_tokens"], 20);
        let error = answer(&[TEXTS[2]; 3]).unwrap_err();
        assert!(error.contains("invalid call"), "{error}");
    }
}

#[test]
fn an_answer_without_choices() {
    let none = "the model server returned no choices";
    let native = "the model server returned a native tool call although it was offered no tools: turn off its tool parsing";
    for (body, message) in [
        (r#"{"choices":null}"#, none),
        (r#"{"choices":[]}"#, none),
        ("{}", none),
        (r#"{"error":{"message":"too long"}}"#, "too long"),
        (
            r#"{"choices":[{"message":{"tool_calls":[{"id":"x","function":{"name":"now"}}]}}]}"#,
            native,
        ),
    ] {
        let plan = plan(&json!({}), &ModelSettings::default());
        let whole = CompleteResponse::new("chatcmpl-0", 1);
        let mut reply = Reply::new(plan, Secret::new("seed"), Box::new(whole));
        let upstream: ChatCompletion<'_> = plaincall_wire::read(body.as_bytes()).unwrap();
        let Next::Failed(error) = reply.whole(&upstream) else {
            panic!("{body}");
        };
        assert_eq!((error.status, error.message()), (502, message));
    }
}
