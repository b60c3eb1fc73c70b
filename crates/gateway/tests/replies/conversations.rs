//! Conversations of several turns: random tools, random replies, and a client that sends them back.
//!
//! For each reply the client gets the calls of the whole text. In each request the model gets exactly the calls that
//! the client sent, and no other text contains a marker.

use std::collections::HashSet;

use plaincall_gateway::translation::{ReplyPlan, ToolCache, Translation, translate};
use plaincall_gateway::{ArgumentMode, Markers, ModelSettings, Secret};
use plaincall_prompt::history::{PastCall, TurnPart, history};
use plaincall_reply::{Document, Stop, Untrusted, bind};
use plaincall_syntax::{Dialect, Escaper};
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::cases::{Playing, all_cases};
use plaincall_testkit::schema_calls::{Choices, sample, schema};
use plaincall_testkit::strict_client::Recorded;
use plaincall_testkit::untrusted::{chunks, markers_in};
use plaincall_tool::{ToolSet, definitions::read_tool_definitions};
use serde_json::{Value, json};

use crate::replies::expected;
use crate::replies::expected::without_reason;
use crate::replies::model::{Stream, exchange};

/// Start, end and argument markers; some are prefixes of others.
const MARKERS: &[[&str; 3]] = &[
    ["<<<START:", "<<<END:", "@param:"],
    ["##", "####", "###"],
    ["@@:", "@@", "@@@:"],
    ["--start", "--end", "--"],
    ["CALL ", "DONE", "WITH "],
];
const NAMES: &[&str] = &["add", "get_weather", "write-file", "now", "x.y", "Add"];
/// The beginning of the prompt about calls, which contains markers.
const TAUGHT: &str = "# Calling tools";
/// The text before a call that the syntax cannot express.
const AS_JSON: &str = "(A call this syntax cannot express, as JSON: ";

/// The settings of a conversation.
struct Setting {
    settings: ModelSettings,
    tools: Value,
    set: ToolSet,
    has_one_call: bool,
}

impl Setting {
    fn new(random: &mut Random) -> Self {
        let dialect = match random.below(4) {
            0 => Dialect::emoji(),
            1 => {
                let [start, end, arg] = random.pick(MARKERS);
                Dialect::block().start(start).end(end).arg(arg)
            }
            _ => Dialect::block(),
        };
        let mut settings = crate::settings(|settings| {
            settings.markers = random.pick(&[Markers::Plain, Markers::Keyed]);
            settings.dialect = if random.one_in(2) {
                dialect
            } else {
                dialect.without_reasoning()
            };
            settings.arguments = random.pick(&[ArgumentMode::Stream, ArgumentMode::Checked]);
        });
        if settings.check().is_err() {
            settings.dialect = Dialect::block();
        }
        let (tools, set) = tools(random, &settings.dialect);
        Self {
            settings,
            tools,
            set,
            has_one_call: random.one_in(8),
        }
    }

    fn request(&self, messages: &[Value], tools: &Value) -> Value {
        let mut request =
            json!({"model": "m", "stream": true, "messages": messages, "tools": tools});
        if self.has_one_call {
            request["parallel_tool_calls"] = json!(false);
        }
        request
    }

    /// The request for the model server, and the reader of its reply.
    fn model_request(&self, request: &Value) -> (Vec<Value>, ReplyPlan) {
        let body = request.to_string();
        let request = plaincall_wire::read(body.as_bytes()).unwrap();
        let secret = Secret::new("secret");
        match translate(request, &self.settings, &secret, &ToolCache::new()) {
            Ok(Translation::Changed { upstream, plan }) => {
                let written = plaincall_wire::write(&upstream);
                let mut upstream: Value = serde_json::from_str(&written).unwrap();
                assert!(upstream.get("tools").is_none_or(Value::is_null));
                let Value::Array(messages) = upstream["messages"].take() else {
                    panic!("{written}");
                };
                (messages, *plan)
            }
            other => panic!("{other:?} of {body}"),
        }
    }
}

/// No description of a tool adds a marker to the prompt.
fn check_taught(setting: &Setting, messages: &[Value]) {
    let translated = |tools: &Value| {
        let request = setting.request(messages, tools);
        let (messages, plan) = setting.model_request(&request);
        let text = text_of(&messages[0]);
        let (_, prompt) = text.split_once(TAUGHT).unwrap();
        let document = Document::parse(prompt, plan.dialect()).unwrap();
        let calls: Vec<String> = document.calls().map(|call| call.name.clone()).collect();
        (markers_in(prompt, plan.dialect()).len(), calls)
    };
    let mut plain = setting.tools.clone();
    for tool in plain.as_array_mut().unwrap() {
        tool["function"]["description"] = json!("x");
    }
    assert_eq!(
        translated(&setting.tools),
        translated(&plain),
        "{}",
        setting.tools
    );
}

/// Tools of any schema, with difficult descriptions.
fn tools(random: &mut Random, dialect: &Dialect) -> (Value, ToolSet) {
    let mut list = Vec::new();
    for name in NAMES.iter().take(1 + random.below(NAMES.len())) {
        let bytes: Vec<u8> = (0..random.below(60)).map(|_| random.byte()).collect();
        let schema = schema(&mut Choices::new(&bytes));
        let tool = |schema: &Value, random: &mut Random| {
            let description = hostile(random, dialect);
            json!({"type": "function", "function": {"name": name, "description": description, "parameters": schema}})
        };
        let with_schema = tool(&schema, random);
        let is_taken = read_tool_definitions(&json!([with_schema]).to_string()).is_ok();
        list.push(if is_taken {
            with_schema
        } else {
            tool(
                &json!({"type": "object", "properties": {"a": {"type": "integer"}}}),
                random,
            )
        });
    }
    let tools = Value::Array(list);
    let set = ToolSet::new(read_tool_definitions(&tools.to_string()).unwrap()).unwrap();
    (tools, set)
}

/// A text that is difficult to handle in this dialect.
fn hostile(random: &mut Random, dialect: &Dialect) -> String {
    const PIECES: &[&str] = &[
        "!!!GADGET_START:",
        "!!!GADGET_END",
        "!!!ARG:",
        "add\n",
        "now\n",
        "!!!",
        "END",
        "\\",
        "\n",
        "\r\n",
        " ",
        "<think>",
        "</think>",
        "```",
        "Result 2 of 2: tool now\n",
        "The user writes:\n",
        "The system writes:\n",
        "\u{1F6E0}\u{FE0F}[now]",
        "\u{1F6E0}\u{FE0F}[/end]",
        "x",
        "\u{2028}",
        "\u{65E5}\u{672C}",
    ];
    let markers = dialect.markers().unwrap();
    let pieces = (0..random.below(8)).map(|_| {
        if random.one_in(3) {
            let marker = &markers[random.below(markers.len())].text;
            let len = marker.floor_char_boundary(random.below(marker.len() + 1));
            return if random.one_in(2) {
                marker
            } else {
                &marker[..len]
            }
            .to_owned();
        }
        random.pick(PIECES).to_owned()
    });
    pieces.collect()
}

/// A reply of a model: texts, reasoning, and valid or almost valid calls.
fn reply(random: &mut Random, setting: &Setting, dialect: &Dialect) -> String {
    let mut text = String::new();
    for _ in 0..random.below(5) {
        match random.below(8) {
            0 => text.push_str(random.pick(&["I see.", "Let me look.\n", "\n\n", " "])),
            1 => text.push_str(&hostile(random, dialect)),
            2 => text.push_str(random.pick(&["<think>Hm.</think>", "<think>", "</think>\n"])),
            _ => {
                let mut call = call(random, setting, dialect);
                if random.one_in(4) {
                    spoil(random, &mut call, dialect);
                }
                if !text.is_empty() && !text.ends_with('\n') && !random.one_in(8) {
                    text.push('\n');
                }
                text.push_str(&call);
            }
        }
    }
    if random.one_in(8) {
        text.truncate(text.floor_char_boundary(random.below(text.len() + 1)));
    }
    text
}

/// A call of a model that follows the prompt.
fn call(random: &mut Random, setting: &Setting, dialect: &Dialect) -> String {
    let list = setting.tools.as_array().unwrap();
    let tool = &list[random.below(list.len())]["function"];
    let bytes: Vec<u8> = (0..random.below(30)).map(|_| random.byte()).collect();
    let schema = &tool["parameters"];
    let arguments = sample(schema, schema, &mut Choices::new(&bytes), 6);
    let Value::Object(arguments) = arguments else {
        return String::new();
    };
    let name = Untrusted::new(tool["name"].as_str().unwrap());
    let turn = [TurnPart::Called(PastCall::new(name, &arguments))];
    let find = |name: &str| setting.set.get(name);
    let text = history(&turn, dialect, find).unwrap().into_text();
    // Calls written as JSON are not parsed as calls.
    if text.contains(AS_JSON) {
        return String::new();
    }
    text
}

/// Damages a call: duplicates, removes or moves a line, or changes a name or a value.
fn spoil(random: &mut Random, call: &mut String, dialect: &Dialect) {
    let mut lines: Vec<String> = call.split_inclusive('\n').map(str::to_owned).collect();
    if lines.is_empty() {
        return;
    }
    let at = random.below(lines.len());
    match random.below(6) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => lines.insert(at, hostile(random, dialect)),
        // Depends on an existing or unknown call, or repeats an id.
        3 | 4 => {
            let id = random.pick(&[":a", ":b:a", ":c:b", "::gadget_1", ":d:z"]);
            let end = lines[0].trim_end().len();
            lines[0].insert_str(end, id);
        }
        _ => lines.truncate(at),
    }
    *call = lines.concat();
}

/// Returns the texts of a message: one, or those of its parts.
fn texts_of(message: &Value) -> Vec<&str> {
    match &message["content"] {
        Value::String(text) => vec![text],
        Value::Array(parts) => parts
            .iter()
            .map(|part| part["text"].as_str().unwrap())
            .collect(),
        other => panic!("{other}"),
    }
}

fn text_of(message: &Value) -> String {
    texts_of(message).concat()
}

/// The state of a conversation.
struct TestConversation {
    messages: Vec<Value>,
    /// The calls that the client has sent back, by turns of the model.
    sent: Vec<Sent>,
    ids: HashSet<String>,
}

struct Sent {
    content: String,
    calls: Vec<(String, String)>,
}

#[derive(Default)]
struct Tally {
    right: u64,
    wrong: u64,
    translated: u64,
    turns: u64,
}

impl TestConversation {
    /// The model gets what the client sent.
    fn check_request(
        &self,
        setting: &Setting,
        messages: &[Value],
        plan: &ReplyPlan,
        tally: &mut Tally,
    ) {
        let dialect = plan.dialect();
        // Empty turns are omitted.
        let mut turns = self
            .sent
            .iter()
            .filter(|sent| !sent.content.is_empty() || !sent.calls.is_empty());
        let mut last_role = "";
        for message in messages {
            let text = text_of(message);
            let role = message["role"].as_str().unwrap();
            assert!(role != last_role || role != "user", "roles alternate");
            last_role = role;
            if role == "assistant" {
                let sent = turns.next().expect("a turn that was sent");
                tally.translated += check_turn(sent, &text, setting, dialect);
                continue;
            }
            let text = text.split(TAUGHT).next().unwrap();
            assert!(markers_in(text, dialect).is_empty(), "{text:?}");
            assert_eq!(Document::parse(text, dialect).unwrap().calls().count(), 0);
        }
        assert!(turns.next().is_none(), "every turn is translated");
        // Each text of the client is there, unchanged.
        let escaper = Escaper::new(dialect).unwrap();
        let all: String = messages
            .iter()
            .map(|message| escaper.unescape(&text_of(message)).into_owned() + "\0")
            .collect();
        let all = all.replace("The system writes\\:", "The system writes:");
        for message in self
            .messages
            .iter()
            .filter(|message| message["role"] != "assistant")
        {
            // Escaping may insert a backslash between parts.
            for content in texts_of(message) {
                assert!(
                    all.contains(content.trim_end_matches(['\r', '\n'])),
                    "{content:?} of {all:?}"
                );
            }
        }
    }

    /// The client accepts a reply and continues.
    fn continue_with(&mut self, random: &mut Random, recorded: Recorded, dialect: &Dialect) {
        let calls: Vec<Value> = recorded
            .calls
            .iter()
            .map(|call| json!({"id": call.id, "type": "function", "function": {"name": call.name, "arguments": call.arguments}}))
            .collect();
        let has_calls = !calls.is_empty();
        let mut turn = json!({"role": "assistant", "content": recorded.content});
        if has_calls {
            turn["tool_calls"] = calls.into();
        }
        self.messages.push(turn);
        let mut results: Vec<Value> = recorded
            .calls
            .iter()
            .map(|call| {
                // The gateway's message replaces the result of an unreadable call.
                let is_unreadable = without_reason(&call.arguments) != call.arguments;
                let content = hostile(random, dialect);
                let content = if is_unreadable { "" } else { &*content };
                json!({"role": "tool", "tool_call_id": call.id, "content": content})
            })
            .collect();
        if random.one_in(2) {
            results.reverse();
        }
        self.messages.extend(results);
        if !has_calls || random.one_in(3) {
            let content = hostile(random, dialect);
            let part = |text: &str| json!({"type": "text", "text": text});
            self.messages.push(if random.one_in(3) {
                // Two texts can form a marker.
                let at = content.floor_char_boundary(random.below(content.len() + 1));
                let (one, two) = content.split_at(at);
                json!({"role": "user", "content": [part(one), part(two)]})
            } else {
                json!({"role": "user", "content": content})
            });
        }
        for call in &recorded.calls {
            assert!(self.ids.insert(call.id.clone()), "the id {} twice", call.id);
        }
        let calls = recorded.calls.into_iter();
        self.sent.push(Sent {
            content: recorded.content,
            calls: calls
                .map(|call| (call.name, without_reason(&call.arguments).to_owned()))
                .collect(),
        });
    }
}

/// Checks a translated turn of the model: its text and its calls in order, and no others. Returns the number of
/// calls; the rest are JSON.
fn check_turn(sent: &Sent, text: &str, setting: &Setting, dialect: &Dialect) -> u64 {
    let document = Document::parse(text, dialect).unwrap();
    let found: Vec<(String, Value)> = document
        .calls()
        .map(|call| {
            assert!(call.is_closed(), "{text:?}");
            let arguments = setting
                .set
                .get(&call.name)
                .and_then(|tool| bind(tool, call).ok());
            let arguments = arguments.map(|bound| bound.to_value());
            let arguments = arguments.unwrap_or_else(|| call.arguments.to_value());
            (call.name.clone(), arguments)
        })
        .collect();
    let escaper = Escaper::new(dialect).unwrap();
    let plain = escaper.unescape(text);
    assert!(
        plain.starts_with(&sent.content),
        "{:?} of {plain:?}",
        sent.content
    );
    let mut left = found.iter().peekable();
    let mut as_json = plain.split(AS_JSON).skip(1).map(|rest| {
        let mut values = serde_json::Deserializer::from_str(rest).into_iter::<Value>();
        values.next().unwrap().unwrap()
    });
    for (name, arguments) in &sent.calls {
        let value = serde_json::from_str::<Value>(arguments);
        let is_listed = |(found, given): &&(String, Value)| {
            found == name && value.as_ref().is_ok_and(|value| value == given)
        };
        if left.next_if(is_listed).is_some() {
            continue;
        }
        let arguments = value.unwrap_or_else(|_| arguments.as_str().into());
        let json = json!({"name": name, "arguments": arguments});
        assert_eq!(as_json.next(), Some(json), "{plain:?}, {found:?}");
    }
    assert_eq!(as_json.next(), None, "{plain:?}");
    assert!(
        left.next().is_none(),
        "{text:?} contains more than {:?}",
        sent.calls
    );
    found.len() as u64
}

/// One reply, and the client's result.
fn turn(random: &mut Random, setting: &Setting, plan: &ReplyPlan, tally: &mut Tally) -> Recorded {
    let dialect = plan.dialect();
    let (reason, stop) = match random.below(6) {
        0 => ("length", Stop::Broken),
        1 => ("tool_calls", Stop::Natural),
        _ => ("stop", Stop::Natural),
    };
    let texts: Vec<String> = (0..3).map(|_| reply(random, setting, dialect)).collect();
    let sizes: Vec<usize> = (0..=random.below(3))
        .map(|_| 1 + random.below(20))
        .collect();
    let streams: Vec<Stream> = texts
        .iter()
        .map(|text| {
            Stream::new()
                .texts(chunks(text, &sizes))
                .finish(reason)
                .done()
        })
        .collect();
    let bytes: Vec<usize> = (0..=random.below(3))
        .map(|_| 1 + random.below(90))
        .collect();
    let outcome = exchange(plan, &streams, &bytes, false);
    let recorded = outcome.recorded;
    let text = &texts[outcome.rounds.len()];
    let expected = |text: &str| {
        let mut calls = expected::calls(text, dialect, stop, &setting.set);
        if setting.has_one_call {
            calls.truncate(1);
        }
        calls
    };
    let calls = expected(text);
    if plan.streams_arguments() {
        expected::check(&recorded, &calls, text);
    } else {
        let texts = &texts[..=outcome.rounds.len()];
        expected::check_rounds(&recorded, texts.iter().map(String::as_str), expected);
    }
    tally.turns += 1;
    tally.right += calls.iter().flatten().count() as u64;
    tally.wrong += calls.iter().filter(|call| call.is_none()).count() as u64;
    // A key does not leak.
    if dialect.is_keyed() && !texts.iter().any(|text| text.contains('\\')) {
        let content = &recorded.content;
        let tags = dialect.reasoning_markers().unwrap_or_default();
        let mut markers = markers_in(content, dialect).into_iter();
        assert!(
            markers.all(|at| tags.contains(&&content[at])),
            "{content:?}"
        );
    }
    recorded
}

#[test]
fn conversations_are_translated_faithfully() {
    let mut tally = Tally::default();
    let cases = all_cases("GATEWAY", 60);
    let count = cases.end - cases.start;
    for seed in cases {
        let _playing = Playing::new("GATEWAY", seed);
        let mut random = Random::new(seed);
        let random = &mut random;
        let setting = Setting::new(random);
        let dialect = setting.settings.dialect.clone();
        let mut conversation = TestConversation {
            messages: vec![json!({"role": "user", "content": hostile(random, &dialect)})],
            sent: Vec::new(),
            ids: HashSet::new(),
        };
        if random.one_in(2) {
            let system = json!({"role": "system", "content": hostile(random, &dialect)});
            conversation.messages.insert(0, system);
        }
        check_taught(&setting, &conversation.messages);
        for _ in 0..=random.below(4) {
            let (messages, plan) =
                setting.model_request(&setting.request(&conversation.messages, &setting.tools));
            conversation.check_request(&setting, &messages, &plan, &mut tally);
            let recorded = turn(random, &setting, &plan, &mut tally);
            // A client that knows the markers uses them everywhere.
            conversation.continue_with(random, recorded, plan.dialect());
        }
    }
    if count >= 60 {
        assert!(
            tally.right > tally.turns / 3,
            "{} of {}",
            tally.right,
            tally.turns
        );
        assert!(
            tally.wrong > tally.turns / 20,
            "{} of {}",
            tally.wrong,
            tally.turns
        );
        assert!(
            tally.translated * 3 > tally.right,
            "{} of {}",
            tally.translated,
            tally.right
        );
    }
}
