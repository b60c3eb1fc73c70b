//! Translates the messages of a conversation to plain text.

use std::borrow::Cow;
use std::collections::HashMap;

use plaincall_prompt::history::{
    PastCall, ResultMessage, Status, TurnPart, history, in_call_order, results,
};
use plaincall_prompt::tool_entry;
use plaincall_reply::{PromptTextBuilder, Untrusted};
use plaincall_syntax::{Dialect, DialectError};
use plaincall_wire::openai::{CallArguments, Content, ContentPart, Message};
use serde_json::Value;

use crate::compiled::CompiledDialect;
use crate::invalid_call_mark::InvalidCallMark;
use crate::key::Secret;
use crate::settings::ModelSettings;
use crate::tools::{OfferedTools, list_options};
use crate::translate::json_texts::{self, Fields, is_name};
use crate::translate::message_order::{ModelMessages, Writer};
use crate::translate::{IS_ERROR, TOOL_REFERENCE, joined};
use crate::unreadable_call::UnreadableCall;

/// Translates the messages one after another.
pub(super) struct Conversation<'o, 'r> {
    dialect: &'o Dialect,
    /// An empty builder, for cloning.
    prompt_text: &'o PromptTextBuilder,
    offer: &'o OfferedTools,
    secret: &'o Secret,
    settings: &'o ModelSettings,
    messages: ModelMessages<'r>,
    /// The names and ids of the last turn's calls.
    calls: Vec<(Untrusted<'r>, Untrusted<'r>)>,
    /// The reason if the last turn ended before an invalid call.
    invalid_call: Option<InvalidCallMark>,
    /// The ids of the last turn's calls that were sent with unreadable arguments, and the messages about them.
    unreadable: Vec<(Cow<'r, str>, String)>,
    /// The results of those calls.
    results: Vec<ResultMessage<'r>>,
    /// Parts of results other than text, such as images.
    other_parts: Vec<ContentPart<'r>>,
}

impl<'o, 'r> Conversation<'o, 'r> {
    pub(super) fn new(
        compiled: &'o CompiledDialect,
        offer: &'o OfferedTools,
        secret: &'o Secret,
        settings: &'o ModelSettings,
    ) -> Self {
        Self {
            dialect: &compiled.dialect,
            prompt_text: &compiled.prompt_text,
            offer,
            secret,
            settings,
            messages: ModelMessages::new(settings),
            calls: Vec::new(),
            invalid_call: None,
            unreadable: Vec::new(),
            results: Vec::new(),
            other_parts: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, mut message: Message<'r>) -> Result<(), DialectError> {
        if message.role() == "tool" {
            return self.result(message);
        }
        self.end_results()?;
        let writer = self.messages.writer(&message);
        // Servers include these in the prompt too.
        for text in [
            &mut message.reasoning_content,
            &mut message.reasoning,
            &mut message.refusal,
            &mut message.name,
            &mut message.tool_call_id,
        ] {
            *text = text.take().map(|text| self.escaped_text(text));
        }
        message.role = message.role.take().map(|role| self.escaped_name(role));
        json_texts::escape(&mut message.unknown, Fields::Message, self.prompt_text);
        if message.role() == "assistant" {
            message = self.turn(message)?;
        } else if let Some(mut content) = message.content.take() {
            if writer == Some(Writer::User) {
                self.messages.escape_line(&mut content);
            }
            message.content = Some(self.escaped(content));
        }
        self.push(message, writer);
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Vec<Message<'r>>, DialectError> {
        self.end_results()?;
        Ok(self.messages.into_messages())
    }

    fn push(&mut self, message: Message<'r>, writer: Option<Writer>) {
        let prompt_text = self.prompt_text;
        let escape = |text| prompt_text.escape(Untrusted::new(text));
        self.messages.push(message, writer, escape);
    }

    /// Collects a result until the next message of another kind.
    fn result(&mut self, mut message: Message<'r>) -> Result<(), DialectError> {
        if let Some(Content::Parts(parts)) = &mut message.content {
            for part in parts
                .iter_mut()
                .filter(|part| part.kind.as_deref() == Some(TOOL_REFERENCE))
            {
                part.text = Some(self.introduced(part)?);
            }
        }
        let is_error = message.unknown.get(IS_ERROR);
        let is_error = is_error.is_some_and(|json| json.text() == "true");
        let name = self.alias(message.name.unwrap_or_default());
        let name = Untrusted::new(name);
        let id = Untrusted::new(message.tool_call_id.unwrap_or_default());
        let text = match message.content {
            None => Cow::Borrowed(""),
            Some(Content::Text(text)) => text,
            Some(content) => {
                let text = Cow::Owned(content.text().into_owned());
                let others = self.escaped(Content::Parts(without_text(content)));
                self.other_parts.extend(without_text(others));
                text
            }
        };
        let mut result = ResultMessage::new(name, id).output(Untrusted::new(text));
        if is_error {
            result = result.status(Status::Error);
        }
        self.results.push(result);
        Ok(())
    }

    /// Returns the model's name of a tool.
    fn alias(&self, name: Cow<'r, str>) -> Cow<'r, str> {
        match self.offer.alias(&name) {
            same if same == name => name,
            alias => Cow::Owned(alias.to_owned()),
        }
    }

    /// Returns the definition of the tool that a part of a result introduces.
    fn introduced(&self, part: &ContentPart<'_>) -> Result<Cow<'r, str>, DialectError> {
        let name = part.unknown.get("tool_name");
        let name = name.and_then(|json| json.read::<String>().ok());
        let name = name.unwrap_or_default();
        Ok(match self.offer.get(&name) {
            Some(tool) => tool_entry(tool, self.dialect, &list_options(self.settings))?.into(),
            None => format!("There is no tool named {name}.\n").into(),
        })
    }

    /// Adds the results of the last turn's calls.
    fn end_results(&mut self) -> Result<(), DialectError> {
        let calls = std::mem::take(&mut self.calls);
        let mut given = std::mem::take(&mut self.results);
        for (id, message) in self.unreadable.drain(..) {
            // The client's error describes the arguments that the gateway made unreadable.
            let id = Untrusted::new(id);
            given.retain(|result| result.id != id);
            let result = ResultMessage::new(Untrusted::new(""), id);
            let result = result.output(Untrusted::new(message));
            given.push(result.status(Status::Error));
        }
        if calls.is_empty() && given.is_empty() {
            return Ok(());
        }
        let called = calls.len();
        let mut ordered = in_call_order(calls, given);
        // The model never sees ids; the order identifies its calls.
        for result in ordered.iter_mut().take(called) {
            result.id = Untrusted::new("");
        }
        let mut text = results(&ordered, self.dialect)?.into_text();
        if let Some(mark) = self.invalid_call.take() {
            text.push_str(&self.escaped_text(mark.sentence().into()));
        }
        let mut message = Message::new("user", text);
        let others = std::mem::take(&mut self.other_parts);
        if !others.is_empty() {
            message.content = joined(message.content, Some(Content::Parts(others)));
        }
        self.push(message, Some(Writer::Tools));
        Ok(())
    }

    fn turn(&mut self, mut message: Message<'r>) -> Result<Message<'r>, DialectError> {
        let mut calls = take_calls(&mut message);
        if calls.is_empty() {
            message.content = message.content.map(|content| self.escaped(content));
            return Ok(message);
        }
        let (text, others) = match message.content.take() {
            None => (Cow::Borrowed(""), Vec::new()),
            Some(Content::Text(text)) => (text, Vec::new()),
            Some(content) => {
                let text = Cow::Owned(content.text().into_owned());
                (text, without_text(self.escaped(content)))
            }
        };
        for call in &mut calls {
            call.name = self.alias(std::mem::take(&mut call.name));
            let found = UnreadableCall::find(self.secret, &call.id, &call.arguments);
            if let Some(found) = found {
                self.unreadable.push((call.id.clone(), found.message()));
                call.name = found.name.into();
                call.arguments = found.arguments.into();
            }
        }
        let text = Some(text).filter(|text| !text.is_empty());
        let mut turn: Vec<TurnPart<'_>> = Vec::with_capacity(calls.len() + 1);
        turn.extend(text.map(|text| TurnPart::Claimed(Untrusted::new(text))));
        for call in &calls {
            let name = Untrusted::new(&*call.name);
            let arguments = Untrusted::new(&*call.arguments);
            turn.push(TurnPart::Called(PastCall::from_text(name, arguments)));
        }
        let find = |name: &str| self.offer.get(name);
        let text = history(&turn, self.dialect, find)?.into_text();
        drop(turn);
        self.invalid_call = calls
            .last()
            .and_then(|call| InvalidCallMark::find(self.secret, &call.id));
        self.calls = calls
            .into_iter()
            .map(|call| (Untrusted::new(call.name), Untrusted::new(call.id)))
            .collect();
        let others = (!others.is_empty()).then_some(Content::Parts(others));
        message.content = joined(others, Some(text.into()));
        Ok(message)
    }

    fn escaped_text(&self, text: Cow<'r, str>) -> Cow<'r, str> {
        self.prompt_text.escape(Untrusted::new(text))
    }

    /// Escapes a role or a kind, which a server may write into the prompt.
    fn escaped_name(&self, name: Cow<'r, str>) -> Cow<'r, str> {
        if is_name(&name) {
            return name;
        }
        self.escaped_text(name)
    }

    fn escaped(&self, content: Content<'r>) -> Content<'r> {
        let mut parts = match content {
            Content::Text(text) => {
                return Content::Text(self.escaped_text(text));
            }
            Content::Parts(parts) => parts,
        };
        for part in &mut parts {
            let thinking = part.thinking.take();
            part.thinking = thinking.map(|content| self.escaped(content));
            part.kind = part.kind.take().map(|kind| self.escaped_name(kind));
            json_texts::escape(&mut part.unknown, Fields::Message, self.prompt_text);
        }
        let mut prompt_text = self.prompt_text.clone();
        // The texts of all parts are joined later, so they are escaped together.
        let has_text =
            |part: &&mut ContentPart<'r>| part.text.as_deref().is_some_and(|text| !text.is_empty());
        for part in parts.iter_mut().filter(has_text) {
            let text = part.text.take().unwrap_or_default();
            prompt_text.untrusted(&Untrusted::new(text.clone()));
            part.text = Some(text);
        }
        let prompt_text = prompt_text.finish();
        let starts: Vec<usize> = prompt_text
            .parts()
            .iter()
            .map(|part| part.span.start)
            .collect();
        for (index, part) in parts.iter_mut().filter(has_text).enumerate() {
            let from = if index == 0 {
                0
            } else {
                starts.get(index).copied().unwrap_or_default()
            };
            let to = starts
                .get(index + 1)
                .copied()
                .unwrap_or(prompt_text.text().len());
            let text = prompt_text.text().get(from..to).unwrap_or_default();
            part.text = Some(Cow::Owned(text.to_owned()));
        }
        Content::Parts(parts)
    }
}

/// Returns the parts of a content other than text, such as images.
fn without_text(content: Content<'_>) -> Vec<ContentPart<'_>> {
    let Content::Parts(mut parts) = content else {
        return Vec::new();
    };
    parts.retain(|part| part.text.is_none());
    parts
}

/// A call of an earlier turn, as reported by the client.
#[derive(Default)]
pub(super) struct EarlierCall<'r> {
    pub(super) name: Cow<'r, str>,
    pub(super) id: Cow<'r, str>,
    pub(super) arguments: Cow<'r, str>,
}

/// Takes the calls out of a message, in all formats of the API.
pub(super) fn take_calls<'r>(message: &mut Message<'r>) -> Vec<EarlierCall<'r>> {
    let mut past: Vec<EarlierCall<'r>> = Vec::new();
    for call in message.tool_calls.take().unwrap_or_default() {
        let id = call.id.unwrap_or_default();
        let Some(function) = call.function else {
            // A call of a custom tool, whose input is a text.
            let custom = call.unknown.get("custom");
            let custom = custom.and_then(|json| json.read::<HashMap<String, Value>>().ok());
            let mut custom = custom.unwrap_or_default();
            let mut text = |field: &str| match custom.remove(field) {
                Some(Value::String(text)) => Cow::Owned(text),
                other => Cow::Owned(other.map(|other| other.to_string()).unwrap_or_default()),
            };
            let (name, arguments) = (text("name"), text("input"));
            past.push(EarlierCall {
                name,
                id,
                arguments,
            });
            continue;
        };
        past.push(EarlierCall {
            name: function.name.unwrap_or_default(),
            id,
            arguments: match function.arguments {
                None => Cow::default(),
                Some(CallArguments::Text(text)) => text,
                Some(CallArguments::Json(json)) => Cow::Owned(json.text().to_owned()),
            },
        });
    }
    past
}

/// Returns whether a message contains calls or the result of one.
pub(super) fn has_calls(message: &Message<'_>) -> bool {
    message.role() == "tool" || !message.calls().is_empty()
}
