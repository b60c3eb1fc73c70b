//! The facts about model servers in `servers/facts.txt`, in every API, streamed and whole.

use std::fmt::Write as _;

use plaincall_gateway::translation::{Adapter, AskEnd, ClientApi, Flow};
use plaincall_gateway::{ArgumentMode, ModelSettings, Secret, ToolMode};
use plaincall_testkit::strict_client::Recorded;
use serde_json::{Value, json};

use crate::apis::{ALL, asked, read_stream, read_whole, request};
use crate::native::model::completion;
use crate::replies::model::Stream;

/// A fact: the answers of a model server, and the client's view of them.
#[derive(Default)]
struct Fact {
    name: String,
    settings: ModelSettings,
    request: Value,
    /// The answers, streamed and whole, one for each round.
    streams: Vec<Stream>,
    wholes: Vec<Vec<u8>>,
    /// The expected line for each form.
    stream_client: Option<String>,
    whole_client: Option<String>,
    /// The expected line in Messages and in Ollama's API, if it is another.
    messages_client: Option<String>,
    ollama_client: Option<String>,
    requests: usize,
    apis: &'static [ClientApi],
}

impl Fact {
    fn new(name: &str) -> Self {
        Self {
            name: name.to_owned(),
            request: json!({}),
            requests: 1,
            apis: &ALL,
            ..Self::default()
        }
    }

    fn add(&mut self, line: &str) {
        let (word, rest) = line.split_once(' ').unwrap_or((line, ""));
        let text = |json: &str| serde_json::from_str::<String>(json).unwrap();
        match word {
            "mode" => self.settings.mode = ToolMode::Native,
            "arguments" => self.settings.arguments = ArgumentMode::Stream,
            "in-reasoning" => {
                let dialect = self.settings.dialect.clone();
                self.settings.dialect = dialect.for_reply().in_reasoning();
            }
            "no-reasoning" => self.settings.dialect = self.settings.dialect.without_reasoning(),
            "request" => self.request = serde_json::from_str(rest).unwrap(),
            "raw" | "text" => {
                let stream = self.streams.pop().unwrap_or_default();
                self.streams.push(if word == "raw" {
                    let raw = rest.replace("\\n", "\n") + "\n\n";
                    Stream([stream.0, raw.into_bytes()].concat())
                } else {
                    stream.texts([&*text(rest)])
                });
            }
            "whole" => self.wholes.push(rest.as_bytes().to_vec()),
            "reply" => {
                let (reason, message) = rest.split_once(' ').unwrap();
                let mut message: Value = serde_json::from_str(message).unwrap();
                if message.is_string() {
                    message = json!({"content": message});
                }
                message["role"] = json!("assistant");
                self.wholes.push(completion(&message, reason));
                let stream = Stream::new().delta(&message, &Value::Null);
                self.streams.push(stream.finish(reason).done());
            }
            "client" => {
                self.stream_client = Some(rest.to_owned());
                self.whole_client = Some(rest.to_owned());
            }
            "chat" => {
                self.apis = &[ClientApi::Chat];
                self.stream_client = Some(rest.to_owned());
                self.whole_client = Some(rest.to_owned());
            }
            "messages" => self.messages_client = Some(rest.to_owned()),
            "ollama" => self.ollama_client = Some(rest.to_owned()),
            "client-stream" => self.stream_client = Some(rest.to_owned()),
            "client-whole" => self.whole_client = Some(rest.to_owned()),
            "asked" => self.requests = rest.parse().unwrap(),
            other => panic!("{other}?"),
        }
    }

    fn check(&self) {
        let streams: Vec<_> = self.streams.iter().map(|stream| &*stream.0).collect();
        let wholes: Vec<_> = self.wholes.iter().map(Vec::as_slice).collect();
        for (is_streamed, answers, expected) in [
            (true, streams, &self.stream_client),
            (false, wholes, &self.whole_client),
        ] {
            if answers.is_empty() {
                continue;
            }
            for &api in self.apis {
                let (found, requests) = self.ask(api, is_streamed, &answers);
                let own = match api {
                    ClientApi::Messages => &self.messages_client,
                    ClientApi::Ollama => &self.ollama_client,
                    _ => &None,
                };
                let expected = own.as_ref().or(expected.as_ref()).unwrap();
                let form = if is_streamed { "streamed" } else { "whole" };
                assert_eq!(found, *expected, "{api:?}, {form}: {}", self.name);
                assert_eq!(requests, self.requests, "{api:?}, {form}: {}", self.name);
            }
        }
    }

    /// Returns what the client gets, and the number of requests to the model server.
    fn ask(&self, api: ClientApi, is_streamed: bool, answers: &[&[u8]]) -> (String, usize) {
        let adapter = Adapter::new(Secret::new("secret"), self.settings.clone());
        let mut body = request(api, &self.request);
        body["stream"] = json!(is_streamed);
        let mut asked = asked(&adapter, api, &body);
        let mut bytes = Vec::new();
        let mut requests = 0;
        for answer in answers {
            requests += 1;
            for piece in answer.chunks(7) {
                if asked.feed(piece) == Flow::Stop {
                    break;
                }
            }
            let has_begun = asked.has_begun();
            let end = asked.end(None);
            bytes.append(&mut asked.take());
            match end {
                AskEnd::Again => continue,
                AskEnd::Refused(error) if !has_begun => {
                    return (format!("{} {}", error.status, error.message()), requests);
                }
                _ => {}
            }
            let recorded = if is_streamed {
                read_stream(api, &bytes, false)
            } else {
                read_whole(api, &bytes)
            };
            return (line(&recorded), requests);
        }
        panic!("{}: the model is asked again", self.name)
    }
}

/// The text, the calls and the end on one line.
fn line(recorded: &Recorded) -> String {
    let mut line = format!("{:?}", recorded.content);
    if !recorded.reasoning.is_empty() {
        let _ = write!(line, " thought {:?}", recorded.reasoning);
    }
    for call in &recorded.calls {
        let _ = write!(line, " {}({})", call.name, call.arguments);
    }
    match (&recorded.finish_reason, &recorded.error) {
        (Some(reason), None) => line + " " + reason,
        (None, Some(error)) => line + " error: " + error,
        other => panic!("{other:?}"),
    }
}

#[test]
fn facts() {
    let mut facts: Vec<Fact> = Vec::new();
    for text in include_str!("servers/facts.txt").lines() {
        if let Some(name) = text.strip_prefix("== ") {
            assert!(name.contains("; "), "{name}: where it was reported");
            facts.push(Fact::new(name));
        } else if let Some(fact) = facts.last_mut()
            && !text.is_empty()
        {
            fact.add(text);
        }
    }
    assert!(facts.len() > 20);
    facts.iter().for_each(Fact::check);
}
