//! From one request of a conversation to the next, the prompt only grows, so that the model server can keep its prefix cache.
#![allow(
    clippy::unwrap_used,
    clippy::panic,
    reason = "a panic is how a test fails, in its helpers too"
)]

use plaincall_gateway::translation::{Adapter, Ask, Host};
use plaincall_gateway::{Markers, ModelSettings, Secret, ToolMode};
use plaincall_syntax::Dialect;
use plaincall_testkit::recordings::{Recording, recordings};
use plaincall_wire::openai::ChatCompletionRequest;
use plaincall_wire::{read, write};

use crate::settings;

/// Returns the requests for the model server. Each conversation is handled by two instances in turn.
fn converted(recording: &Recording, settings: &ModelSettings) -> Vec<String> {
    let instances = [(); 2].map(|()| Adapter::new(Secret::new("secret"), settings.clone()));
    let requests = recording.requests.iter().zip(instances.iter().cycle());
    let bodies = requests.zip(0..).map(|((request, adapter), now)| {
        let host = Host::new(Secret::new(now.to_string()), now);
        match adapter.ask(recording.path, request.as_bytes(), host) {
            Ask::Asked(asked) => String::from_utf8(asked.body().to_vec()).unwrap(),
            other => panic!("{}: {other:?}", recording.client),
        }
    });
    bodies.collect()
}

/// Returns a request up to the end of its last message, which is all that its prompt has.
fn prompt(body: &str) -> &str {
    let request: ChatCompletionRequest<'_> = read(body.as_bytes()).unwrap();
    assert!(request.tools.is_none());
    let messages = write(&request.messages);
    let begin = body.find(&messages).unwrap();
    &body[..begin + messages.len() - "]".len()]
}

fn text_settings() -> Vec<ModelSettings> {
    vec![
        ModelSettings::default(),
        settings(|settings| settings.dialect = Dialect::emoji()),
        settings(|settings| settings.markers = Markers::Keyed),
        settings(|settings| {
            settings.prompt_budget.hidden_tools = vec!["*task*".to_owned()];
            settings.prompt_budget.description_length = "80".parse().ok();
        }),
    ]
}

#[test]
fn a_prompt_begins_with_the_one_before() {
    for recording in recordings() {
        assert!(recording.requests.len() > 2, "{}", recording.client);
        for settings in text_settings() {
            let bodies = converted(&recording, &settings);
            for (before, body) in bodies.iter().zip(&bodies[1..]) {
                let (before, prompt) = (prompt(before), prompt(body));
                let same = before.bytes().zip(prompt.bytes());
                let same = same.take_while(|(one, other)| one == other).count();
                let from = before.floor_char_boundary(same.saturating_sub(100));
                assert!(
                    same == before.len() && prompt.len() > same,
                    "{}: {same} of {} bytes are the same; then {:?} becomes {:?}",
                    recording.client,
                    before.len(),
                    before[from..].chars().take(200).collect::<String>(),
                    prompt[from..].chars().take(200).collect::<String>(),
                );
            }
        }
    }
}

#[test]
fn a_prompt_of_native_mode_begins_with_the_one_before() {
    let settings = settings(|settings| settings.mode = ToolMode::Native);
    for recording in recordings() {
        let bodies = converted(&recording, &settings);
        let read = |body: &str| -> (String, Vec<String>) {
            let request: ChatCompletionRequest<'_> = read(body.as_bytes()).unwrap();
            let messages = request.messages.iter().map(write);
            (write(&request.tools), messages.collect())
        };
        for (before, body) in bodies.iter().zip(&bodies[1..]) {
            let ((tools_before, before), (tools, messages)) = (read(before), read(body));
            let client = recording.client;
            // A deferred tool is sent once a result refers to it.
            let is_grown = client == "agent on Messages" && tools.len() > tools_before.len();
            assert!(tools == tools_before || is_grown, "{client}");
            assert!(messages.len() > before.len(), "{client}");
            assert_eq!(messages[..before.len()], before, "{client}");
        }
    }
}
