//! The conversations of subagents: the events of the run match what the subagents' models read.

use std::collections::{BTreeMap, BTreeSet};

use plaincall_agent::model::{Message, Role};
use plaincall_agent::plaincall::{RunEvent, Status};

use super::reading::check_replies;
use super::world::Asked;
use crate::scenarios::reported::{replies, reported};

/// The calls of subagents, and their conversations by the calls that run them.
#[derive(Debug, Default)]
pub(super) struct Nested {
    pub(super) calls: BTreeSet<u32>,
    conversations: BTreeMap<u32, Events>,
    results: BTreeMap<u32, Status>,
}

/// The events of a subagent's conversation.
#[derive(Debug, Default)]
struct Events {
    tag: String,
    replies: Vec<Written>,
    is_open: bool,
}

/// A reply, and the calls in it that were submitted.
#[derive(Debug, Default)]
struct Written {
    text: String,
    calls: Vec<(u32, String)>,
}

impl Nested {
    /// Takes the next event of the run.
    pub(super) fn take(&mut self, event: &RunEvent) {
        match event {
            RunEvent::Waiting(call) if matches!(&*call.name, "helper" | "leader") => {
                let mut arguments = call.arguments.0.iter();
                let task = arguments.find(|(pointer, _)| pointer == "task");
                let tag = task.map(|(_, task)| first_word(task)).unwrap_or_default();
                self.conversations.entry(call.call).or_default().tag = tag;
            }
            RunEvent::SubagentText(part) => {
                let events = self.conversations.entry(part.call).or_default();
                if !events.is_open {
                    events.replies.push(Written::default());
                }
                events.is_open = part.stop.is_none();
                events.replies.last_mut().unwrap().text += &part.text;
            }
            RunEvent::Call(call) if call.submitted.is_some() => {
                self.calls.insert(call.call);
                let parent = call.parent.expect("a call of a subagent has a parent");
                let events = self.conversations.entry(parent).or_default();
                let reply = events.replies.last_mut();
                let reply = reply.expect("a call without a reply");
                reply.calls.push((call.call, call.name.to_string()));
            }
            RunEvent::Result(result) => {
                self.results.insert(result.call, result.status);
            }
            _ => {}
        }
    }

    /// Asserts that each subagent's model reads its own texts byte for byte, and each result once. Returns the number of
    /// submitted calls whose results were read.
    pub(super) fn check(&self, asked: &[Vec<Asked>]) -> usize {
        let mut tags: BTreeMap<&str, Vec<&Events>> = BTreeMap::new();
        for events in self.conversations.values() {
            tags.entry(&events.tag).or_default().push(events);
        }
        let mut count = 0;
        for asked in asked {
            check_conversation(asked);
            let last = &asked.last().unwrap().messages;
            let task = last.iter().find(|message| message.role == Role::User);
            let tag = first_word(&task.expect("a conversation without a task").text);
            match tags.get(&*tag).map(Vec::as_slice) {
                Some([events]) => count += self.check_results(events, last),
                // A model repeats the first tag sometimes.
                Some(_) => assert_eq!(tag, "t1"),
                None => panic!("no subagent has the task {tag:?}"),
            }
        }
        count
    }

    /// Asserts that the messages have the replies in the events, and the result of each call that was submitted.
    fn check_results(&self, events: &Events, messages: &[Message]) -> usize {
        let written = events.replies.iter();
        let written: Vec<_> = written.filter(|one| !one.text.trim().is_empty()).collect();
        let read = replies(messages);
        let texts: Vec<&str> = written.iter().map(|one| &*one.text).collect();
        assert!(texts.starts_with(&read), "{read:#?} of {texts:#?}");
        let mut count = 0;
        let places = messages.iter().enumerate();
        let places = places.filter(|(_, message)| message.role == Role::Assistant);
        for ((place, _), written) in places.zip(written) {
            // Whether calls of each tool ended well. The subagent's conversation itself rejects and skips others.
            let mut expected: Vec<(String, &str)> = Vec::new();
            for (call, name) in &written.calls {
                let status = match self.results[call] {
                    Status::Ok => "ok",
                    _ => "error",
                };
                expected.push((name.clone(), status));
            }
            let found = reported(&messages[place + 1..=place + 1]).into_iter();
            let found = found.map(|one| (one.name, one.status));
            let mut found: Vec<_> = found
                .filter(|(_, status)| matches!(&**status, "ok" | "error"))
                .collect();
            found.sort();
            expected.sort();
            let is_same = found
                .iter()
                .zip(&expected)
                .all(|(one, other)| (&*one.0, &*one.1) == (&*other.0, other.1));
            assert!(
                found.len() == expected.len() && is_same,
                "{found:?}, not {expected:?}: {messages:#?}"
            );
            count += expected.len();
        }
        count
    }
}

/// Asserts that the requests of a conversation contain its replies, and each result once.
fn check_conversation(asked: &[Asked]) {
    check_replies(asked);
    let mut before = reported(&asked[0].messages);
    for request in asked {
        let now = reported(&request.messages);
        assert!(now.starts_with(&before), "{now:#?} after {before:#?}");
        before = now;
    }
}

/// Asserts the same for subagents that continued after a crash: they read what was written before it, as far as the log has
/// it.
pub(super) fn check_continued(asked: &[Vec<Asked>]) {
    let written: Vec<&str> = asked.iter().flatten().map(|one| &*one.text).collect();
    for asked in asked {
        check_conversation(asked);
        for reply in replies(&asked[0].messages) {
            let is_known = written.iter().any(|text| text.starts_with(reply));
            assert!(is_known, "no subagent wrote {reply:?}");
        }
    }
}

/// Returns the tag with which a task begins.
fn first_word(text: &str) -> String {
    let word = text.split(|character: char| !character.is_ascii_alphanumeric());
    word.into_iter().next().unwrap_or_default().to_owned()
}
