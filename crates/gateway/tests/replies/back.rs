//! The client sends a reply back in its next request, and the model gets its own text.

use plaincall_gateway::translation::{ToolCache, Translation, translate};
use plaincall_gateway::{ModelSettings, Secret};
use plaincall_reply::{Document, bind, document::Segment};
use plaincall_syntax::Dialect;
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::cases::cases;
use plaincall_testkit::strict_client::{Recorded, RecordedCall};
use plaincall_tool::{ToolSet, definitions::read_tool_definitions};
use plaincall_wire::openai::ChatCompletionRequest;
use serde_json::{Value, json};

use crate::replies::chunks::reply;
use crate::replies::model::{plan, recorded, request, streaming, tools};

/// Returns the messages for the model when the client sends the reply and the results back.
fn for_model(recorded: &Recorded, settings: &ModelSettings, secret: &str) -> Vec<String> {
    let calls: Vec<Value> = recorded
        .calls
        .iter()
        .map(|call| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}))
        .collect();
    let mut messages = vec![
        json!({"role": "user", "content": "Do it."}),
        json!({"role": "assistant", "content": recorded.content}),
    ];
    if !calls.is_empty() {
        messages[1]["tool_calls"] = json!(calls);
    }
    for call in &recorded.calls {
        messages.push(json!({"role": "tool", "tool_call_id": call.id, "content": "done"}));
    }
    let body = request(&json!({"messages": messages})).to_string();
    let request: ChatCompletionRequest<'_> = plaincall_wire::read(body.as_bytes()).unwrap();
    let secret = Secret::new(secret);
    match translate(request, settings, &secret, &ToolCache::new()) {
        Ok(Translation::Changed { upstream, .. }) => {
            let messages = upstream.messages.into_iter();
            let content = messages.map(|message| message.content.unwrap().text().into_owned());
            content.collect()
        }
        other => panic!("{other:?}"),
    }
}

/// Returns the last message of the next request, when the client sends the reply back.
pub(crate) fn next_message(recorded: &Recorded, settings: &ModelSettings) -> String {
    next_message_of("secret", recorded, settings)
}

/// The same for a gateway with this secret.
fn next_message_of(secret: &str, recorded: &Recorded, settings: &ModelSettings) -> String {
    for_model(recorded, settings, secret)
        .pop()
        .expect("a message")
}

/// Returns the model's turn in the next request.
fn turn_for_model(recorded: &Recorded, settings: &ModelSettings) -> String {
    let mut messages = for_model(recorded, settings, "secret");
    let results = messages.get(3).map(String::as_str);
    assert_eq!(results.is_some(), !recorded.calls.is_empty());
    let count = results.unwrap_or_default().matches("Output: done").count();
    assert_eq!(count, recorded.readable().len());
    let count = results.unwrap_or_default();
    let count = count.matches("This call was not run: ").count();
    assert_eq!(count, recorded.calls.len() - recorded.readable().len());
    // An empty turn is omitted.
    messages.drain(2..).next().unwrap_or_default()
}

#[test]
fn history_has_the_text_of_the_model() {
    let tools = ToolSet::new(read_tool_definitions(&tools().to_string()).unwrap()).unwrap();
    let settings = streaming();
    let plan = plan(&json!({}), &settings);
    for seed in cases("GATEWAY", 150) {
        let mut random = Random::new(seed);
        let with_escapes = random.one_in(2);
        let text = reply(&mut random, with_escapes);
        let recorded = recorded(&plan, &[&text], "stop").recorded;
        let for_model = turn_for_model(&recorded, &settings);
        let document = Document::parse(&for_model, plan.dialect()).unwrap();
        // The valid calls are there as calls, in order, and no others.
        let calls: Vec<(String, String)> = document
            .calls()
            .map(|call| {
                (
                    call.name.clone(),
                    bind(tools.get(&call.name).unwrap(), call)
                        .unwrap()
                        .to_value()
                        .to_string(),
                )
            })
            .collect();
        let right: Vec<(String, String)> = recorded
            .readable()
            .iter()
            .map(|(name, arguments)| ((*name).to_owned(), (*arguments).to_owned()))
            .collect();
        assert_eq!(calls, right, "seed {seed}: {for_model:?}");
        // The text and each other call as a line of JSON come first.
        let prose: String = document
            .segments
            .iter()
            .map(|segment| match segment {
                Segment::Text { text, .. } => text.as_ref(),
                _ => "",
            })
            .collect();
        assert!(
            prose.starts_with(&recorded.content),
            "seed {seed}: {prose:?}"
        );
        let lines = prose
            .lines()
            .filter(|line| line.starts_with("(A call this syntax"));
        assert_eq!(
            lines.count(),
            recorded.calls.len() - right.len(),
            "seed {seed}: {for_model:?}"
        );
    }
}

#[test]
fn a_valid_turn_is_sent_back_byte_for_byte() {
    for (dialect, text) in [
        (
            Dialect::block(),
            "I look.\n!!!GADGET_START:search\n!!!ARG:query\na !!!ARG\\: b\n!!!ARG:range/from\n1.5\n!!!GADGET_END\n!!!GADGET_START:now\n!!!GADGET_END\n",
        ),
        (
            Dialect::emoji(),
            "I look.\n🛠️[add 5]\n🛠️[/end]\n🛠️[now]\n🛠️[/end]\n",
        ),
    ] {
        let settings = crate::settings(|settings| {
            settings.dialect = dialect;
        });
        let plan = plan(&json!({}), &settings);
        let recorded = recorded(&plan, &[text], "stop").recorded;
        assert_eq!(turn_for_model(&recorded, &settings), text);
    }
}

/// The next request reports that the reply ended before an invalid call, and why it was invalid. Two instances agree;
/// with another secret there is no report.
#[test]
fn the_next_request_reports_an_invalid_call() {
    const NOW: &str = "!!!GADGET_START:now\n!!!GADGET_END\n";
    let settings = ModelSettings::default();
    let plan = plan(&json!({}), &settings);
    for (invalid, words) in [
        (
            "!!!GADGET_START:Now\n!!!GADGET_END\n",
            "named no available tool",
        ),
        (
            "!!!GADGET_START:add\n!!!GADGET_END\n",
            "had invalid arguments",
        ),
        (
            "!!!GADGET_START:add\n!!!ARG:a\n5\n!!!ARG:a\n5\n!!!GADGET_END\n",
            "incomplete or malformed",
        ),
        ("Then.\n", ""),
    ] {
        let recorded = recorded(&plan, &[&format!("{NOW}{invalid}")], "stop").recorded;
        assert_eq!(recorded.readable().len(), 1);
        let for_model = next_message(&recorded, &settings);
        let (_, behind) = for_model.split_once("Output: done\n").unwrap();
        assert!(behind.contains(words), "{behind:?}");
        assert_eq!(behind.is_empty(), words.is_empty(), "{behind:?}");
        assert_eq!(behind.contains("That call was not run."), !words.is_empty());
        let is_untold = |secret: &str, change: fn(&mut RecordedCall)| {
            let mut recorded = recorded.clone();
            change(&mut recorded.calls[0]);
            next_message_of(secret, &recorded, &settings).ends_with("Output: done\n")
        };
        assert_eq!(is_untold("secret", |_| {}), words.is_empty());
        // The mark is that of this secret and this id alone. The arguments may be written again.
        assert!(is_untold("other", |_| {}));
        assert!(is_untold("secret", |call| call.id.push('x')));
        assert_eq!(
            is_untold("secret", |call| call.arguments += "\n"),
            words.is_empty()
        );
    }
}
