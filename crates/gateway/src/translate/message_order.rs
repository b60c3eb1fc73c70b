//! The order and the roles of messages that chat templates accept (`spec/gateway.md` 1.8).

use std::borrow::Cow;
use std::collections::HashMap;

use memchr::memmem;
use plaincall_syntax::ceil_char_boundary;
use plaincall_wire::openai::{Content, Message};

use crate::settings::ModelSettings;
use crate::translate::joined;

/// The line before a text of the system in a user's message.
const SYSTEM_WRITES: &str = "The system writes:";
/// That line in a text of a user, so that no user can write it.
const ESCAPED: &str = "The system writes\\:";
/// The line before a text of the user that follows something else in the same message.
const USER_WRITES: &str = "The user writes:";

/// Returns messages in an order that chat templates accept: results directly after the turn with their calls, and no neighbours
/// with the same role, of which templates accept only results. Empty messages are omitted.
pub(super) fn ordered<'r>(
    messages: Vec<Message<'r>>,
    settings: &ModelSettings,
) -> Vec<Message<'r>> {
    let mut ordered: Vec<Message<'r>> = Vec::with_capacity(messages.len());
    for mut message in after_their_calls(without_empty(messages)) {
        settings.adapt_role(&mut message);
        let is_first = ordered.len() == 1;
        match ordered.last_mut() {
            Some(last) if continues(last, &message, is_first) => merge(last, "\n\n", message),
            _ => ordered.push(message),
        }
    }
    ordered
}

/// Omits empty messages, except the last one if it is the user's: the model would continue its own turn.
fn without_empty(messages: Vec<Message<'_>>) -> impl Iterator<Item = Message<'_>> {
    let last = messages.len().saturating_sub(1);
    let messages = messages.into_iter().enumerate();
    messages.filter_map(move |(index, message)| {
        let may_be_empty = match message.role() {
            "user" => index == last,
            "assistant" | "system" | "developer" => false,
            _ => true,
        };
        (may_be_empty || !is_empty(&message)).then_some(message)
    })
}

fn is_empty(message: &Message<'_>) -> bool {
    let is_empty_text = |text: &Option<Cow<'_, str>>| text.as_deref().is_none_or(str::is_empty);
    let has_content = match &message.content {
        None => false,
        Some(Content::Text(text)) => !text.is_empty(),
        Some(Content::Parts(parts)) => !parts
            .iter()
            .all(|part| part.text.as_deref() == Some("") && part.thinking.is_none()),
    };
    let texts = [
        &message.refusal,
        &message.reasoning,
        &message.reasoning_content,
    ];
    let mut fields = message.unknown.iter().map(|(_, value)| value.text());
    !has_content
        && message.calls().is_empty()
        && texts.into_iter().all(is_empty_text)
        && fields.all(|value| matches!(value, "null" | "[]" | "{}" | "\"\""))
}

/// Moves results directly after the turn with their calls: the latest one with a call of this id, or else the last turn if it
/// has calls.
fn after_their_calls<'r>(messages: impl Iterator<Item = Message<'r>>) -> Vec<Message<'r>> {
    let mut groups: Vec<Vec<Message<'r>>> = Vec::new();
    let mut turns: HashMap<String, usize> = HashMap::new();
    let mut last_turn = None;
    for message in messages {
        if message.role() == "tool" {
            let id = message.tool_call_id.as_deref().unwrap_or_default();
            let turn = turns.get(id).copied().or(last_turn);
            if let Some(group) = turn.and_then(|turn| groups.get_mut(turn)) {
                group.push(message);
                continue;
            }
        }
        if message.role() == "assistant" {
            last_turn = (!message.calls().is_empty()).then_some(groups.len());
            let ids = message.calls().iter().filter_map(|call| call.id.as_deref());
            turns.extend(ids.map(|id| (id.to_owned(), groups.len())));
        }
        groups.push(vec![message]);
    }
    groups.into_iter().flatten().collect()
}

pub(super) fn is_system(message: &Message<'_>) -> bool {
    matches!(message.role(), "system" | "developer")
}

/// Returns whether a message becomes a part of the one before.
fn continues(last: &Message<'_>, message: &Message<'_>, is_first: bool) -> bool {
    if is_first && is_system(last) {
        return is_system(message);
    }
    let may_follow = match message.role() {
        // Results follow calls.
        "assistant" => last.calls().is_empty(),
        "user" | "system" | "developer" => true,
        _ => false,
    };
    may_follow && last.role() == message.role() && last.name == message.name
}

/// Adds a message to the one before. Of fields that both have, those of the first one are kept.
fn merge<'r>(last: &mut Message<'r>, separator: &str, message: Message<'r>) {
    last.content = match (last.content.take(), message.content) {
        (Some(before), Some(after)) => {
            let before = joined(Some(before), Some(separator.to_owned().into()));
            joined(before, Some(after))
        }
        (before, after) => before.or(after),
    };
    for (text, more) in [
        (&mut last.refusal, message.refusal),
        (&mut last.reasoning, message.reasoning),
        (&mut last.reasoning_content, message.reasoning_content),
    ] {
        match (text.as_mut(), more) {
            (Some(text), Some(more)) => text.to_mut().extend(["\n\n", &*more]),
            (None, more) => *text = more,
            (Some(_), None) => {}
        }
    }
    if is_system(last) && last.name != message.name {
        // It would be the name of all texts.
        last.name = None;
    } else {
        last.name = last.name.take().or(message.name);
    }
    last.tool_calls = last.tool_calls.take().or(message.tool_calls);
    for (name, value) in message.unknown.iter() {
        if last.unknown.get(name).is_none() {
            last.unknown.set(name.to_owned(), value.clone());
        }
    }
}

/// The writer of a part of a user's message.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writer {
    Tools,
    System,
    User,
}

/// The messages for the model. Results, texts of the system and texts of the user that follow each other are one user message.
#[derive(Debug)]
pub(super) struct ModelMessages<'r> {
    messages: Vec<Message<'r>>,
    /// The writer of the end of the last message, if it is a user's.
    last: Option<Writer>,
    keeps_system: bool,
}

impl<'r> ModelMessages<'r> {
    pub(super) fn new(settings: &ModelSettings) -> Self {
        Self {
            messages: Vec::new(),
            last: None,
            keeps_system: settings.system_anywhere,
        }
    }

    /// Returns the writer of a message that becomes a user's message.
    pub(super) fn writer(&self, message: &Message<'_>) -> Option<Writer> {
        match message.role() {
            "user" => Some(Writer::User),
            _ if is_system(message) && !self.keeps_system && !self.messages.is_empty() => {
                Some(Writer::System)
            }
            _ => None,
        }
    }

    /// Escapes the line that only the system may write, across the parts of a user's content.
    pub(super) fn escape_line(&self, content: &mut Content<'r>) {
        if self.keeps_system {
            return;
        }
        let parts = match content {
            Content::Text(text) => return escape_line(text, ""),
            Content::Parts(parts) => parts,
        };
        let mut before = String::new();
        for text in parts.iter_mut().filter_map(|part| part.text.as_mut()) {
            escape_line(text, &before);
            before.push_str(text);
            let from = before.len().saturating_sub(SYSTEM_WRITES.len());
            before.drain(..ceil_char_boundary(&before, from));
        }
    }

    /// Adds a message that a writer adds to a user's message, or of another role. `escape` escapes the lines between writers.
    pub(super) fn push(
        &mut self,
        mut message: Message<'r>,
        writer: Option<Writer>,
        escape: impl Fn(Cow<'r, str>) -> Cow<'r, str>,
    ) {
        let before = self.last.filter(|_| writer.is_some());
        self.last = writer;
        let line = match (writer, before) {
            (Some(Writer::System), _) => Some(SYSTEM_WRITES),
            (Some(Writer::User), Some(Writer::Tools | Writer::System)) => Some(USER_WRITES),
            _ => None,
        };
        if let Some(line) = line {
            let line = escape(format!("{line}\n\n").into());
            message.content = joined(Some(Content::Text(line)), message.content);
        }
        if writer.is_some() {
            message.role = Some("user".into());
        }
        if writer == Some(Writer::System) {
            message.name = None;
        }
        match (self.messages.last_mut(), before) {
            (Some(last), Some(before))
                if before != Writer::User || writer != Some(Writer::User) =>
            {
                // The text of results ends with a line ending.
                let separator = if before == Writer::Tools {
                    "\n"
                } else {
                    "\n\n"
                };
                merge(last, separator, message);
            }
            _ => self.messages.push(message),
        }
    }

    pub(super) fn into_messages(self) -> Vec<Message<'r>> {
        self.messages
    }
}

/// Escapes the line in a text that follows another one.
fn escape_line(text: &mut Cow<'_, str>, before: &str) {
    let all = match before {
        "" => Cow::Borrowed(&**text),
        before => Cow::Owned([before, text].concat()),
    };
    if memmem::find(all.as_bytes(), SYSTEM_WRITES.as_bytes()).is_some() {
        let mut escaped = all.replace(SYSTEM_WRITES, ESCAPED);
        escaped.drain(..before.len());
        *text = Cow::Owned(escaped);
    }
}
