//! The texts of a request that may be untrusted.

use std::borrow::Cow;

use memchr::memchr;
use plaincall_wire::openai::{ChatCompletionRequest, Content, Message};
use serde_json::Value;

use crate::reply::untrusted::{EarlierText, UntrustedTexts};
use crate::translate::conversation::take_calls;
use crate::translate::json_texts::{self, Fields};

/// All texts of a request, for every role. JSON texts are included both as they are and without escapes.
#[derive(Default)]
pub(super) struct Texts<'r> {
    /// The texts of users and tools, and the calls of the model, in order.
    conversation: Vec<EarlierText>,
    /// The texts of the current message.
    plain: Vec<Cow<'r, str>>,
    /// The texts of the model.
    model: Vec<Cow<'r, str>>,
    /// The texts of system messages.
    system: Vec<Cow<'r, str>>,
    definitions: Vec<Cow<'r, str>>,
    json: Vec<Cow<'r, str>>,
    calls: Vec<Cow<'r, str>>,
}

impl<'r> Texts<'r> {
    pub(super) fn of(request: &'r ChatCompletionRequest<'_>) -> Self {
        let mut texts = Self::default();
        let form = request.response_format.as_ref();
        let form = form.and_then(|form| form.json_schema.as_ref());
        let definitions = request.tools.iter().chain(form);
        texts
            .definitions
            .extend(definitions.map(|json| json.text().into()));
        let fields = json_texts::texts(&request.unknown, Fields::Request);
        let fields = fields.map(Cow::into_owned);
        texts
            .conversation
            .extend(fields.map(EarlierText::Untrusted));
        for message in &request.messages {
            texts.add(message);
            let plain = std::mem::take(&mut texts.plain);
            match message.role() {
                "assistant" => texts.model.extend(plain),
                "system" | "developer" => texts.system.extend(plain),
                _ => {
                    let plain = plain.into_iter().map(Cow::into_owned);
                    texts.conversation.extend(plain.map(EarlierText::Untrusted));
                }
            }
        }
        texts.json.extend(unescaped(&texts.definitions));
        texts.calls.extend(unescaped(&texts.calls));
        texts
    }

    fn add(&mut self, message: &'r Message<'_>) {
        if let Some(content) = &message.content {
            self.plain.push(content.text());
            self.plain.extend(content.thinking());
            if let Content::Parts(parts) = content {
                let unknown = parts.iter().map(|part| &part.unknown);
                self.plain.extend(
                    unknown.flat_map(|unknown| json_texts::texts(unknown, Fields::Message)),
                );
            }
        }
        self.plain
            .extend(json_texts::texts(&message.unknown, Fields::Message));
        let others = [
            &message.reasoning_content,
            &message.reasoning,
            &message.refusal,
            &message.name,
            &message.tool_call_id,
        ];
        let others = others.into_iter().flatten();
        self.plain.extend(others.map(|text| (&**text).into()));
        let mut calls = Message {
            tool_calls: message.tool_calls.clone(),
            unknown: message.unknown.clone(),
            ..Message::default()
        };
        for call in take_calls(&mut calls) {
            let texts = [call.name, call.id, call.arguments];
            let texts = texts.map(Cow::into_owned);
            let [name, _, arguments] = texts.clone();
            self.conversation
                .push(EarlierText::Call { name, arguments });
            self.calls.extend(texts.map(Cow::Owned));
        }
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let untrusted = self.conversation.iter().filter_map(EarlierText::untrusted);
        let texts = self.model.iter().chain(&self.system);
        let texts = texts.chain(&self.definitions);
        let texts = texts.chain(&self.json).chain(&self.calls);
        untrusted.chain(texts.map(|text| &**text))
    }

    /// Returns the texts of users, tools and system messages.
    pub(super) fn not_of_model(&self) -> impl Iterator<Item = &str> {
        let untrusted = self.conversation.iter().filter_map(EarlierText::untrusted);
        untrusted.chain(self.system.iter().map(|text| &**text))
    }

    /// Returns the texts from which a call could be copied, and the calls of the model.
    pub(super) fn into_untrusted(self) -> UntrustedTexts {
        let definitions = self.definitions.iter();
        let definitions = definitions.map(|json| EarlierText::Untrusted(words_of(json)));
        UntrustedTexts::new(definitions.chain(self.conversation).collect())
    }
}

/// Returns the words of definitions without their JSON, which looks like that of calls.
fn words_of(json: &str) -> String {
    fn add(value: &Value, words: &mut String) {
        match value {
            Value::Object(members) => {
                for (key, value) in members {
                    words.extend([key, "\n"]);
                    add(value, words);
                }
            }
            Value::Array(items) => items.iter().for_each(|item| add(item, words)),
            Value::String(text) => words.extend([text, "\n"]),
            Value::Null | Value::Bool(_) | Value::Number(_) => {}
        }
    }
    let Ok(value) = serde_json::from_str::<Value>(json) else {
        return json.to_owned();
    };
    let mut words = String::with_capacity(json.len());
    add(&value, &mut words);
    words
}

/// Returns the JSON texts that contain escapes, without them.
fn unescaped<'r>(texts: &[Cow<'r, str>]) -> Vec<Cow<'r, str>> {
    let escaped = texts.iter();
    let escaped = escaped.filter(|text| memchr(b'\\', text.as_bytes()).is_some());
    let values = escaped.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let plain = values.map(|value| Cow::Owned(value.to_string()));
    plain.collect()
}
