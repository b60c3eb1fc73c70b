//! The messages of a conversation, told to a model that knows no tools.

use std::borrow::Cow;
use std::collections::HashMap;

use plaincall_call::{
    PromptTextBuilder, Untrusted,
    history::{PastCall, ResultMessage, TurnPart, history, in_call_order, results},
};
use plaincall_syntax::{Dialect, DialectError};
use plaincall_wire::Json;
use plaincall_wire::openai::{CallArguments, Content, ContentPart, Message};
use serde_json::Value;

use crate::compiled::CompiledDialect;
use crate::invalid_call_mark::InvalidCallMark;
use crate::key::Secret;
use crate::tools::OfferedTools;
use crate::translate::joined;

const LABEL: &str = "\nThe user writes:\n\n";

/// Takes the messages one after another and gives those for the model.
pub(super) struct Conversation<'o, 'r> {
    dialect: &'o Dialect,
    /// A prompt text without anything, to be copied.
    prompt_text: &'o PromptTextBuilder,
    offer: &'o OfferedTools,
    secret: &'o Secret,
    developer_is_system: bool,
    told: Vec<Message<'r>>,
    /// The calls of the last turn, by name and id, and the results that have come for them.
    calls: Vec<(Untrusted<'r>, Untrusted<'r>)>,
    /// Why the last turn ended before another call.
    cut: Option<InvalidCallMark>,
    results: Vec<ResultMessage<'r>>,
    /// What stands in results beside texts: pictures and the like.
    other_parts: Vec<ContentPart<'r>>,
}

impl<'o, 'r> Conversation<'o, 'r> {
    pub(super) fn new(
        compiled: &'o CompiledDialect,
        offer: &'o OfferedTools,
        secret: &'o Secret,
        developer_is_system: bool,
    ) -> Self {
        Self {
            dialect: &compiled.prompt_dialect,
            prompt_text: &compiled.prompt_text,
            offer,
            secret,
            developer_is_system,
            told: Vec::new(),
            calls: Vec::new(),
            cut: None,
            results: Vec::new(),
            other_parts: Vec::new(),
        }
    }

    pub(super) fn add(&mut self, mut message: Message<'r>) -> Result<(), DialectError> {
        match message.role() {
            "tool" => {
                self.result(message);
                return Ok(());
            }
            "developer" if self.developer_is_system => message.role = Some("system".into()),
            _ => {}
        }
        let before = self.told_results()?;
        // Servers put these into the prompt too.
        for text in [
            &mut message.reasoning_content,
            &mut message.reasoning,
            &mut message.refusal,
            &mut message.name,
        ] {
            *text = text.take().map(|text| self.escaped_text(text));
        }
        if message.role() == "assistant" {
            self.told.extend(before);
            let turn = self.turn(message)?;
            self.told.push(turn);
            return Ok(());
        }
        message.content = message.content.map(|content| self.escaped(content));
        match before {
            // Both are of the user: one message.
            Some(results) if message.role() == "user" => {
                let label = self.escaped_text(LABEL.into());
                let results = joined(results.content, Some(Content::Text(label)));
                message.content = joined(results, message.content);
                self.told.push(message);
            }
            before => {
                self.told.extend(before);
                self.told.push(message);
            }
        }
        Ok(())
    }

    pub(super) fn finish(mut self) -> Result<Vec<Message<'r>>, DialectError> {
        let last = self.told_results()?;
        self.told.extend(last);
        Ok(self.told)
    }

    /// Keeps the result of a call until the next message that is none.
    fn result(&mut self, message: Message<'r>) {
        let name = Untrusted::new(message.name.unwrap_or_default());
        let id = Untrusted::new(message.tool_call_id.unwrap_or_default());
        let text = match message.content {
            None => Cow::Borrowed(""),
            Some(Content::Text(text)) => text,
            Some(content) => {
                let text = Cow::Owned(content.text().into_owned());
                self.other_parts.extend(without_text(content));
                text
            }
        };
        let result = ResultMessage::new(name, id).output(Untrusted::new(text));
        self.results.push(result);
    }

    fn told_results(&mut self) -> Result<Option<Message<'r>>, DialectError> {
        let calls = std::mem::take(&mut self.calls);
        let given = std::mem::take(&mut self.results);
        if calls.is_empty() && given.is_empty() {
            return Ok(None);
        }
        let called = calls.len();
        let mut told = in_call_order(calls, given);
        // The model has given no ids and has seen none: its calls are known by their order.
        for result in told.iter_mut().take(called) {
            result.id = Untrusted::new("");
        }
        let mut text = results(&told, self.dialect)?.into_text();
        if let Some(cut) = self.cut.take() {
            text.push_str(&self.escaped_text(cut.sentence().into()));
        }
        let mut message = Message::new("user", text);
        let others = std::mem::take(&mut self.other_parts);
        if !others.is_empty() {
            message.content = joined(message.content, Some(Content::Parts(others)));
        }
        Ok(Some(message))
    }

    fn turn(&mut self, mut message: Message<'r>) -> Result<Message<'r>, DialectError> {
        let calls = past_calls(&mut message);
        if calls.is_empty() {
            message.content = message.content.map(|content| self.escaped(content));
            return Ok(message);
        }
        let (said, others) = match message.content.take() {
            None => (Cow::Borrowed(""), Vec::new()),
            Some(Content::Text(text)) => (text, Vec::new()),
            Some(content) => {
                let text = Cow::Owned(content.text().into_owned());
                (text, without_text(self.escaped(content)))
            }
        };
        let said = Some(said).filter(|text| !text.is_empty());
        let mut turn: Vec<TurnPart<'_>> = Vec::with_capacity(calls.len() + 1);
        turn.extend(said.map(|text| TurnPart::Claimed(Untrusted::new(text))));
        for call in &calls {
            let name = Untrusted::new(&*call.name);
            let arguments = Untrusted::new(&*call.arguments);
            turn.push(TurnPart::Called(PastCall::from_text(name, arguments)));
        }
        let find = |name: &str| self.offer.get(name);
        let text = history(&turn, self.dialect, find)?.into_text();
        drop(turn);
        self.cut = calls
            .last()
            .and_then(|call| InvalidCallMark::find(self.secret, &call.id, &call.arguments));
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
            let refusal = part.unknown.get("refusal");
            if let Some(refusal) = refusal.and_then(|json| json.read::<String>().ok()) {
                let refusal = self.escaped_text(refusal.into());
                part.unknown.set("refusal", Json::new(&refusal));
            }
        }
        let mut prompt_text = self.prompt_text.clone();
        // The texts of all parts will stand together, so they are escaped together.
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
        for (place, part) in parts.iter_mut().filter(has_text).enumerate() {
            let from = if place == 0 {
                0
            } else {
                starts.get(place).copied().unwrap_or_default()
            };
            let to = starts
                .get(place + 1)
                .copied()
                .unwrap_or(prompt_text.text().len());
            let text = prompt_text.text().get(from..to).unwrap_or_default();
            part.text = Some(Cow::Owned(text.to_owned()));
        }
        Content::Parts(parts)
    }
}

/// The parts of a content that are no texts: pictures and the like.
fn without_text(content: Content<'_>) -> Vec<ContentPart<'_>> {
    let Content::Parts(mut parts) = content else {
        return Vec::new();
    };
    parts.retain(|part| part.text.is_none());
    parts
}

/// A call of an earlier turn, as the client tells it.
#[derive(Default)]
pub(super) struct Past<'r> {
    pub(super) name: Cow<'r, str>,
    pub(super) id: Cow<'r, str>,
    pub(super) arguments: Cow<'r, str>,
}

/// Takes the calls out of a message, in each of the forms that they have had.
pub(super) fn past_calls<'r>(message: &mut Message<'r>) -> Vec<Past<'r>> {
    let mut past: Vec<Past<'r>> = Vec::new();
    for call in message.tool_calls.take().unwrap_or_default() {
        let id = call.id.unwrap_or_default();
        let Some(function) = call.function else {
            // A call of a tool that takes a text: to us the text is what its arguments are.
            let custom = call.unknown.get("custom");
            let custom = custom.and_then(|json| json.read::<HashMap<String, Value>>().ok());
            let mut custom = custom.unwrap_or_default();
            let mut text = |field: &str| match custom.remove(field) {
                Some(Value::String(text)) => Cow::Owned(text),
                other => Cow::Owned(other.map(|other| other.to_string()).unwrap_or_default()),
            };
            let (name, arguments) = (text("name"), text("input"));
            past.push(Past {
                name,
                id,
                arguments,
            });
            continue;
        };
        past.push(Past {
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

/// Whether a message is or holds something that a model without tools does not know.
pub(super) fn tells_of_calls(message: &Message<'_>) -> bool {
    message.role() == "tool" || !message.calls().is_empty()
}
