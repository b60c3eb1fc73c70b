//! Random model servers that send the shapes of the tables, and clients of each API that obey its rules strictly: the calls that are
//! complete arrive once, no part of another one does, ids are unique, a failure is never a success, and texts are unchanged.
//!
//! `REPORTED_CASE` selects one server, and `REPORTED_CASES` sets how many there are.

use std::collections::BTreeSet;

use plaincall_gateway::translation::{Adapter, AskEnd, ClientApi, Flow};
use plaincall_gateway::{ModelSettings, Secret};
use plaincall_testkit::arbitrary_texts::Random;
use plaincall_testkit::cases::{Playing, cases};
use plaincall_testkit::strict_client::Recorded;
use serde_json::{Value, json};

use crate::apis::{ALL, asked, read_stream, read_whole};
use crate::native::model::native;
use crate::reported::conversations;

/// Errors in a stream, in every form.
const ERRORS: &[&str] = &[
    "error: {\"code\":400,\"message\":\"no\"}\n\n",
    "data: {\"error\":{\"code\":503,\"message\":\"no\"}}\n\n",
    "event: error\ndata: {\"message\":\"no\"}\n\n",
    "data: {\"object\":\"error\",\"message\":\"no\",\"code\":400}\n\n",
    "data: {\"error_type\":\"x\",\"error_message\":\"no\"}\n\n",
    "data: {\"detail\":\"no\"}\n\n",
    "data: {\"message\":\"no\",\"code\":\"1113\"}\n\n",
    "data: {\"msg\":\"no\",\"status\":500}\n\n",
    "{\n  \"error\": {\"message\": \"no\"}\n}\n\n",
    "data: {\"choices\":[{\"index\":0,\"delta\":{},\"finish_reason\":\"error\"}]}\n\n",
];
const TEXTS: &[&str] = &[
    "",
    "I look.\n",
    "It ends with `</think>`, `!!!GADGET_END` or <tool_call>.\n",
    "A é\u{2028}.\n",
];
const NATURAL: &[&str] = &["stop", "tool_calls", "eos", "end_turn", "function_call"];

/// How a server names its calls.
#[derive(Clone, Copy, PartialEq)]
enum Ids {
    New,
    Numbers,
    Kimi,
    /// Those of another call.
    Taken,
    Empty,
    None,
    /// The predecessor of `tool_calls`.
    Old,
}

#[derive(Clone, Copy, PartialEq)]
enum Indexes {
    Numbers,
    Texts,
    Zero,
    None,
}

/// A call of the model, and its pieces.
struct Call {
    name: &'static str,
    value: Value,
    pieces: Vec<Piece>,
}

/// A piece, and the text of its arguments.
#[derive(Clone)]
struct Piece {
    delta: Value,
    text: String,
}

/// The end of a reply.
#[derive(Clone, Copy, PartialEq)]
enum End {
    Natural(&'static str),
    Truncated(&'static str),
    /// `[DONE]` without a reason.
    Missing,
    /// Neither.
    Broken,
    Error(&'static str),
}

struct Case {
    is_native: bool,
    is_streamed: bool,
    content: String,
    reasoning: String,
    answer: Vec<u8>,
    end: End,
    /// The calls of which everything was sent.
    calls: Vec<(&'static str, Value)>,
    has_truncated_call: bool,
}

fn event(delta: &Value) -> String {
    let chunk = json!({"id": "c", "object": "chat.completion.chunk", "created": 7, "model": "m",
        "choices": [{"index": 0, "delta": delta, "finish_reason": null}]});
    format!("data: {chunk}\n\n")
}

fn end(random: &mut Random, is_native: bool, is_streamed: bool) -> End {
    let unknown = if is_native { "abort" } else { "max_tokens" };
    match random.below(8) {
        0 => End::Truncated("length"),
        1 => End::Truncated(random.pick(&["content_filter", unknown])),
        2 if is_streamed => End::Missing,
        3 if is_streamed => End::Broken,
        4 => End::Error(random.pick(ERRORS)),
        _ => End::Natural(random.pick(NATURAL)),
    }
}

/// The pieces of the arguments, and whether the last of several is missing.
fn pieces(random: &mut Random, call: &Value, place: usize, may_be_absent: bool) -> Vec<Piece> {
    let text = call.to_string();
    let mut texts = vec![text.clone()];
    while random.one_in(2) {
        let last = texts.pop().unwrap();
        if last.is_empty() {
            break;
        }
        let mut at = 1 + random.below(last.len());
        while !last.is_char_boundary(at) {
            at += 1;
        }
        texts.extend([last[..at].to_owned(), last[at..].to_owned()]);
    }
    texts.retain(|text| !text.is_empty());
    let mut pieces: Vec<Piece> = texts
        .into_iter()
        .map(|text| Piece {
            delta: json!({"index": place, "function": {"arguments": text}}),
            text,
        })
        .collect();
    let is_empty = text == "{}";
    match random.below(5) {
        0 if pieces.len() == 1 => pieces[0].delta["function"]["arguments"] = call.clone(),
        form @ 1..=3 if is_empty && may_be_absent => {
            let absent = [json!(""), Value::Null, json!("null")];
            pieces.truncate(1);
            pieces[0].delta["function"]["arguments"] = absent[form - 1].clone();
            pieces[0].text = String::new();
        }
        _ => {}
    }
    pieces
}

fn calls(random: &mut Random, is_streamed: bool) -> (Vec<Call>, bool) {
    let all = [
        Ids::New,
        Ids::Numbers,
        Ids::Kimi,
        Ids::Taken,
        Ids::Empty,
        Ids::None,
        Ids::Old,
    ];
    let ids = random.pick(&all);
    let all = [
        Indexes::Numbers,
        Indexes::Numbers,
        Indexes::Texts,
        Indexes::Zero,
        Indexes::None,
    ];
    let indexes = random.pick(&all);
    let are_numbered = matches!(indexes, Indexes::Numbers | Indexes::Texts) && ids != Ids::Old;
    let count = if ids == Ids::Old {
        random.below(2)
    } else {
        random.below(4)
    };
    let is_alternating = is_streamed && are_numbered && random.one_in(3);
    let is_named = matches!(ids, Ids::New | Ids::Numbers | Ids::Kimi);
    // Without numbers and names, only complete arguments end a call.
    let may_be_absent = !is_alternating && (are_numbered || is_named && indexes == Indexes::Zero);
    let calls = (0..count).map(|place| {
        let (name, value) = match random.below(3) {
            0 => ("now", json!({})),
            1 => ("add", json!({"a": random.below(1000)})),
            _ => ("write", json!({"path": "a \"{[\\ é", "text": "}]"})),
        };
        let mut pieces = if is_streamed {
            pieces(random, &value, place, may_be_absent)
        } else {
            let mut pieces = pieces(random, &value, place, true);
            let text: String = pieces.iter().map(|piece| &*piece.text).collect();
            if pieces.len() > 1 {
                pieces.truncate(1);
                pieces[0].delta["function"]["arguments"] = json!(text);
                pieces[0].text = text;
            }
            pieces
        };
        let given = match random.below(6) {
            0 => format!("functions.{name}"),
            1 => format!("default_api:{name}"),
            2 => format!("{name}<|channel|>commentary"),
            _ => name.to_owned(),
        };
        let head = &mut pieces[0].delta;
        head["function"]["name"] = json!(given);
        match ids {
            Ids::New => head["id"] = json!(format!("call_{place}x")),
            Ids::Numbers => head["id"] = json!(place + 7),
            Ids::Kimi => head["id"] = json!(format!("functions.{name}:{place}")),
            Ids::Taken => head["id"] = json!("call_taken"),
            Ids::Empty => head["id"] = json!(""),
            Ids::None | Ids::Old => {}
        }
        for piece in &mut pieces {
            let index = match indexes {
                Indexes::Numbers => json!(place),
                Indexes::Texts => json!(place.to_string()),
                Indexes::Zero => json!(0),
                Indexes::None => Value::Null,
            };
            piece.delta["index"] = index;
            piece.delta = match ids {
                Ids::Old => json!({"function_call": piece.delta["function"]}),
                _ => json!({"tool_calls": [piece.delta]}),
            };
        }
        Call {
            name,
            value,
            pieces,
        }
    });
    (calls.collect(), is_alternating)
}

impl Case {
    fn new(seed: u64) -> Self {
        let mut random = Random::new(seed);
        let is_native = !random.one_in(4);
        let is_streamed = !random.one_in(3);
        let end = end(&mut random, is_native, is_streamed);
        if is_native {
            Self::native(&mut random, is_streamed, end)
        } else {
            Self::text(&mut random, is_streamed, end)
        }
    }

    /// Calls of the model server.
    fn native(random: &mut Random, is_streamed: bool, end: End) -> Self {
        let mut content = random.pick(TEXTS).to_owned();
        let mut reasoning = String::new();
        let (calls, is_alternating) = calls(random, is_streamed);
        if calls.is_empty() && content.is_empty() {
            // A reply with only reasoning would be repaired.
            "So.\n".clone_into(&mut content);
        }
        // The pieces in their order: of one call after another, or one of each call in turn.
        let mut order: Vec<(usize, usize)> = Vec::new();
        let longest = calls.iter().map(|call| call.pieces.len()).max();
        for number in 0..longest.unwrap_or_default() {
            let pieces = calls.iter().enumerate();
            let with_it = pieces.filter(|(_, call)| call.pieces.len() > number);
            order.extend(with_it.map(|(place, _)| (place, number)));
        }
        if !is_alternating {
            order.sort_unstable();
        }
        let is_natural = matches!(end, End::Natural(_));
        if (is_natural || matches!(end, End::Truncated(_) | End::Missing)) && random.one_in(2) {
            // Some servers report a natural end if the limit truncated a call.
            let most = order.len().saturating_sub(usize::from(is_natural));
            let cut = random.below(3).min(most);
            order.truncate(order.len() - cut);
            if !is_streamed {
                order.truncate(calls.len());
            }
        }
        let mut events = Vec::new();
        if !content.is_empty() {
            events.push(event(&json!({"content": content})));
        }
        let name = random.pick(&["reasoning", "reasoning_content"]);
        for (place, number) in &order {
            match random.below(8) {
                0 => {
                    reasoning.push_str("Hm.");
                    events.push(event(&json!({name: "Hm."})));
                }
                1 => events.push(event(&json!({"content": " "}))),
                _ => {}
            }
            events.push(event(&calls[*place].pieces[*number].delta));
        }
        let mut sent = order.as_slice();
        if let End::Error(error) = end {
            let at = random.below(events.len() + 1);
            events.truncate(at);
            events.push(error.to_owned());
            // What was sent of it is checked as a beginning.
            sent = &order;
        }
        let is_cut = matches!(end, End::Truncated(_) | End::Missing);
        let received = |place: usize| {
            let pieces = sent.iter().filter(|(of, _)| *of == place);
            let texts = pieces.map(|(_, number)| &*calls[place].pieces[*number].text);
            texts.collect::<String>()
        };
        let has_begun = |place: &usize| sent.iter().any(|(of, _)| of == place);
        let begun: Vec<usize> = (0..calls.len()).filter(has_begun).collect();
        let is_complete = |place: &usize| {
            let text = received(*place);
            let later = begun.iter().filter(|one| *one > place);
            let has_later = later
                .clone()
                .any(|one| !is_streamed || !received(*one).is_empty());
            let is_whole = serde_json::from_str::<Value>(&text).is_ok();
            is_whole || (text.is_empty() && (!is_cut || has_later))
        };
        let complete: Vec<usize> = begun.iter().copied().filter(is_complete).collect();
        let list = complete.iter().map(|place| &calls[*place]);
        let list = list.map(|call| (call.name, call.value.clone())).collect();
        let answer = if is_streamed {
            streamed(events, end)
        } else {
            let mut message = json!({"role": "assistant", "content": content});
            reasoning.clear();
            let mut elements = Vec::new();
            for (place, number) in sent {
                let mut delta = calls[*place].pieces[*number].delta.clone();
                match delta.get_mut("tool_calls") {
                    Some(list) => elements.push(list[0].take()),
                    None => message["function_call"] = delta["function_call"].take(),
                }
            }
            if !elements.is_empty() {
                message["tool_calls"] = json!(elements);
            }
            whole(&message, end)
        };
        Self {
            is_native: true,
            is_streamed,
            content,
            reasoning,
            answer,
            end,
            has_truncated_call: complete.len() < begun.len(),
            calls: list,
        }
    }

    /// Calls in the text.
    fn text(random: &mut Random, is_streamed: bool, end: End) -> Self {
        let content = random.pick(&["", "I look.\n", "A é\u{2028}.\n"]).to_owned();
        let mut text = content.clone();
        let mut calls = Vec::new();
        for _ in 0..random.below(4) {
            let number = random.below(1000);
            let number_text = number.to_string();
            text.extend([
                "!!!GADGET_START:add\n!!!ARG:a\n",
                &number_text,
                "\n!!!GADGET_END\n",
            ]);
            calls.push(("add", json!({"a": number})));
        }
        let is_cut = matches!(end, End::Truncated(_) | End::Missing);
        let has_truncated_call = is_cut && random.one_in(2);
        if has_truncated_call {
            text += "!!!GADGET_START:write\n!!!ARG:path\na.t";
        }
        let mut events = Vec::new();
        let mut rest = &*text;
        while !rest.is_empty() {
            let most = rest.chars().count().min(20);
            let size: usize = rest
                .chars()
                .take(1 + random.below(most))
                .map(char::len_utf8)
                .sum();
            let (piece, after) = rest.split_at(size);
            events.push(event(&json!({"content": piece})));
            rest = after;
        }
        if let End::Error(error) = end {
            events.truncate(random.below(events.len() + 1));
            // A native call was not asked for.
            let call = json!({"tool_calls": [{"index": 0, "id": "x", "function": {"name": "now", "arguments": "{}"}}]});
            let is_call = random.one_in(4);
            events.push(if is_call {
                event(&call)
            } else {
                error.to_owned()
            });
        }
        let message = json!({"role": "assistant", "content": text});
        Self {
            is_native: false,
            is_streamed,
            content,
            reasoning: String::new(),
            answer: if is_streamed {
                streamed(events, end)
            } else {
                whole(&message, end)
            },
            end,
            calls,
            has_truncated_call,
        }
    }

    fn check(&self, api: ClientApi) {
        let settings = if self.is_native {
            native()
        } else {
            ModelSettings::default()
        };
        let adapter = Adapter::new(Secret::new("secret"), settings);
        let mut body = crate::apis::request(api, &json!({"stream": self.is_streamed}));
        let talk = ["user: Go.", "call call_taken", "result call_taken: noon"];
        let talk = conversations::request(api, &talk);
        for field in ["messages", "input"] {
            if let Some(messages) = talk.get(field) {
                body[field] = messages.clone();
            }
        }
        let mut asked = asked(&adapter, api, &body);
        for piece in self.answer.chunks(11) {
            if asked.feed(piece) == Flow::Stop {
                break;
            }
        }
        let has_begun = asked.has_begun();
        let recorded = match asked.end(None) {
            AskEnd::Refused(error) if !has_begun => {
                assert!(error.status >= 400);
                return assert!(self.fails(api), "{error:?}");
            }
            AskEnd::Again => panic!("the model is asked again"),
            _ if self.is_streamed => read_stream(api, &asked.take(), false),
            _ => read_whole(api, &asked.take()),
        };
        self.check_calls(api, &recorded);
        let failed = self.fails(api);
        assert_eq!(recorded.error.is_some(), failed, "{recorded:?}");
        assert_eq!(recorded.finish_reason.is_none(), failed, "{recorded:?}");
        if matches!(self.end, End::Error(_) | End::Broken) {
            let content = recorded.content.trim_end();
            assert!(self.content.starts_with(content), "{content:?}");
            return;
        }
        assert_eq!(recorded.content.trim_end(), self.content.trim_end());
        assert_eq!(recorded.reasoning, self.reasoning);
        if failed {
            return;
        }
        let expected = match self.end {
            End::Truncated("content_filter") => "content_filter",
            End::Truncated(_) => "length",
            End::Missing if self.has_truncated_call => "length",
            // The last native call may be truncated.
            End::Missing if self.is_native && !self.calls.is_empty() => {
                assert!(matches!(
                    recorded.finish_reason.as_deref(),
                    Some("length" | "tool_calls")
                ));
                return;
            }
            _ if self.has_truncated_call => "length",
            _ if !self.calls.is_empty() => "tool_calls",
            _ => "stop",
        };
        assert_eq!(recorded.finish_reason.as_deref(), Some(expected));
    }

    fn check_calls(&self, api: ClientApi, recorded: &Recorded) {
        let found = recorded.calls.iter().map(|call| {
            let value: Value = serde_json::from_str(&call.arguments).expect("a whole call");
            (&*call.name, value)
        });
        let found: Vec<_> = found.collect();
        let expected = match self.end {
            // Those of which everything had arrived.
            End::Error(_) | End::Broken => self.calls.get(..found.len()),
            _ => Some(&*self.calls),
        };
        assert_eq!(Some(&*found), expected);
        let ids: BTreeSet<&str> = recorded.calls.iter().map(|call| &*call.id).collect();
        assert_eq!(ids.len(), found.len());
        assert!(!ids.contains("") && !ids.contains("call_taken"), "{ids:?}");
        let is_valid = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
        let are_valid = ids.iter().all(|id| id.bytes().all(is_valid));
        assert!(are_valid || api != ClientApi::Messages, "{ids:?}");
    }

    /// Whether the client gets an error.
    fn fails(&self, api: ClientApi) -> bool {
        match self.end {
            End::Error(_) | End::Broken => true,
            End::Natural(_) | End::Truncated(_) | End::Missing => {
                let is_alone = self.has_truncated_call && self.calls.is_empty();
                is_alone && !self.content.trim().is_empty() && api != ClientApi::Messages
            }
        }
    }
}

fn streamed(mut events: Vec<String>, end: End) -> Vec<u8> {
    let finish = |reason: &str| {
        let chunk = json!({"choices": [{"index": 0, "delta": {}, "finish_reason": reason}]});
        format!("data: {chunk}\n\n")
    };
    match end {
        End::Natural(reason) | End::Truncated(reason) => events.push(finish(reason)),
        End::Missing | End::Broken | End::Error(_) => {}
    }
    if end == End::Missing && events.is_empty() {
        events.push(event(&json!({})));
    }
    if end != End::Broken {
        events.push("data: [DONE]\n\n".to_owned());
    }
    events.concat().into_bytes()
}

fn whole(message: &Value, end: End) -> Vec<u8> {
    let reason = match end {
        End::Natural(reason) | End::Truncated(reason) => reason,
        End::Missing | End::Broken => unreachable!("only in streams"),
        End::Error(_) => return br#"{"error":{"code":503,"message":"no"}}"#.to_vec(),
    };
    crate::native::model::completion(message, reason)
}

#[test]
fn random_servers() {
    let seeds = cases("REPORTED", 150);
    let (mut calls, mut failures) = (0, 0);
    for seed in seeds.clone() {
        let _playing = Playing::new("REPORTED", seed);
        let case = Case::new(seed);
        if seeds.end - seeds.start == 1 {
            println!("{}", String::from_utf8_lossy(&case.answer));
        }
        for api in ALL {
            case.check(api);
            calls += case.calls.len();
            failures += usize::from(case.fails(api));
        }
    }
    println!(
        "servers with reported shapes: {} for each API, {calls} calls, {failures} failures",
        seeds.end - seeds.start
    );
}
