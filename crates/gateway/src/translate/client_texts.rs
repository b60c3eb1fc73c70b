//! The texts of a request that may be untrusted.

use std::borrow::Cow;

use memchr::{memchr, memmem};
use plaincall_wire::openai::{ChatCompletionRequest, Content, Message};
use serde_json::Value;

use crate::reply::plan::UntrustedTexts;
use crate::translate::conversation::take_calls;
use crate::translate::json_texts::{self, Fields};

/// All texts of a request, for every role. JSON texts are included both as they are and without escapes.
#[derive(Default)]
pub(super) struct Texts<'r> {
    /// The system prompt: the contents of the system messages at the beginning.
    system: Vec<Cow<'r, str>>,
    plain: Vec<Cow<'r, str>>,
    /// The texts of the model.
    own: Vec<Cow<'r, str>>,
    json: Vec<Cow<'r, str>>,
    calls: Vec<Cow<'r, str>>,
}

impl<'r> Texts<'r> {
    pub(super) fn of(request: &'r ChatCompletionRequest<'_>) -> Self {
        let mut texts = Self::default();
        let form = request.response_format.as_ref();
        let form = form.and_then(|form| form.json_schema.as_ref());
        let json = request.tools.iter().chain(form);
        texts.json.extend(json.map(|json| json.text().into()));
        let is_system = |message: &&Message<'_>| matches!(message.role(), "system" | "developer");
        let system = request.messages.iter().take_while(is_system).count();
        for message in request.messages.get(..system).into_iter().flatten() {
            texts.add(message);
        }
        texts.system = std::mem::take(&mut texts.plain);
        for message in request.messages.get(system..).into_iter().flatten() {
            let others = (message.role() == "assistant").then(|| std::mem::take(&mut texts.plain));
            texts.add(message);
            if let Some(others) = others {
                texts
                    .own
                    .extend(std::mem::replace(&mut texts.plain, others));
            }
        }
        texts
            .plain
            .extend(json_texts::texts(&request.unknown, Fields::Request));
        texts.plain.extend(unescaped(&texts.json));
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
            let texts = texts.map(|text| Cow::Owned(text.into_owned()));
            self.calls.extend(texts);
        }
    }

    /// All of them.
    pub(super) fn iter(&self) -> impl Iterator<Item = &str> {
        let texts = self.system.iter().chain(&self.plain);
        let texts = texts.chain(&self.own).chain(&self.json).chain(&self.calls);
        texts.map(|text| &**text)
    }

    /// Returns all texts except those of the model and its calls.
    pub(super) fn into_untrusted(self) -> UntrustedTexts {
        let json = self.json.iter().map(|text| without_parameters(text));
        let plain = self.plain.into_iter().map(Cow::into_owned);
        UntrustedTexts {
            system: self.system.into_iter().map(Cow::into_owned).collect(),
            others: plain.chain(json).collect(),
        }
    }
}

/// Removes a key that every tool definition has, and calls in other formats too.
fn without_parameters(json: &str) -> String {
    const KEY: &str = "\"parameters\"";
    let mut out = String::with_capacity(json.len());
    let mut end = 0;
    for found in memmem::find_iter(json.as_bytes(), KEY) {
        out.push_str(json.get(end..found).unwrap_or_default());
        end = found + KEY.len();
    }
    out + json.get(end..).unwrap_or_default()
}

/// Returns the JSON texts that contain escapes, without them.
fn unescaped<'r>(texts: &[Cow<'r, str>]) -> Vec<Cow<'r, str>> {
    let escaped = texts.iter();
    let escaped = escaped.filter(|text| memchr(b'\\', text.as_bytes()).is_some());
    let values = escaped.filter_map(|text| serde_json::from_str::<Value>(text).ok());
    let plain = values.map(|value| Cow::Owned(value.to_string()));
    plain.collect()
}
