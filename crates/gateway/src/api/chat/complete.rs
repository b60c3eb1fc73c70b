//! A reply as one complete response.

use plaincall_wire::Json;
use plaincall_wire::openai::{
    CallArguments, ChatCompletion, Choice, Content, OLD_CALL, ReasoningField, ToolCall, Usage,
};

use crate::api::encoder::Encoder;
use crate::error::GatewayError;

/// Collects a reply into one response.
#[derive(Debug, Default)]
pub struct CompleteResponse {
    /// Used if the model server sends no id.
    id: String,
    created: u64,
    content: String,
    reasoning: String,
    reasoning_name: Option<ReasoningField>,
    refusal: String,
    calls: Vec<ToolCall<'static>>,
    finish_reason: Option<String>,
    usage: Option<Usage<'static>>,
    bytes: Vec<u8>,
}

impl CompleteResponse {
    /// Creates an empty response. The id and the time (seconds since 1970) are used if the server sends none.
    pub fn new(id: impl Into<String>, created: u64) -> Self {
        Self {
            id: id.into(),
            created,
            ..Self::default()
        }
    }

    /// Returns the model server's answer with this reply in it. Other fields stay, except token probabilities, which belong to the
    /// model's text.
    pub(crate) fn into_completion(self, mut completion: ChatCompletion<'_>) -> ChatCompletion<'_> {
        if completion.id.as_deref().is_none_or(str::is_empty) {
            completion.id = Some(self.id.into());
        }
        completion.object = Some("chat.completion".into());
        let created = completion.created.take();
        let is_time = |json: &Json<'_>| json.read::<u64>().is_ok();
        let created = created.filter(is_time);
        completion.created = created.or_else(|| Some(Json::new(&self.created)));
        completion.model.get_or_insert_default();
        let choices = completion.choices.take().unwrap_or_default();
        let mut choice = choices.into_iter().next().unwrap_or_else(|| Choice {
            index: Some(0),
            ..Choice::default()
        });
        let mut message = choice.message.take().unwrap_or_default();
        message.role = Some("assistant".into());
        let has_content = !self.content.is_empty() || self.calls.is_empty();
        message.content = has_content.then(|| Content::from(self.content));
        let reasoning = Some(self.reasoning).filter(|text| !text.is_empty());
        (message.reasoning_content, message.reasoning) = match self.reasoning_name {
            Some(ReasoningField::Reasoning) => (None, reasoning.map(Into::into)),
            _ => (reasoning.map(Into::into), None),
        };
        let refusal = Some(self.refusal).filter(|text| !text.is_empty());
        message.refusal = refusal.map(Into::into);
        message.tool_calls = Some(self.calls).filter(|calls| !calls.is_empty());
        // It is one of the calls.
        message.unknown.remove(OLD_CALL);
        choice.message = Some(message);
        choice.logprobs = choice.logprobs.map(|_| Json::default());
        choice.finish_reason = self.finish_reason.map(Into::into);
        completion.choices = Some(vec![choice]);
        if self.usage.is_some() {
            completion.usage = self.usage;
        }
        completion
    }
}

impl Encoder for CompleteResponse {
    fn content(&mut self, text: &str) {
        self.content.push_str(text);
    }

    fn reasoning(&mut self, name: ReasoningField, text: &str) {
        self.reasoning_name.get_or_insert(name);
        self.reasoning.push_str(text);
    }

    fn refusal(&mut self, text: &str) {
        self.refusal.push_str(text);
    }

    fn call(&mut self, _index: u64, id: &str, name: &str) {
        let call = ToolCall::new(id.to_owned(), name.to_owned(), String::new());
        self.calls.push(call);
    }

    fn arguments(&mut self, index: u64, piece: &str) {
        let index = usize::try_from(index).ok();
        let call = index.and_then(|index| self.calls.get_mut(index));
        let function = call.and_then(|call| call.function.as_mut());
        match function.map(|function| &mut function.arguments) {
            Some(Some(CallArguments::Text(arguments))) => arguments.to_mut().push_str(piece),
            Some(arguments @ None) => {
                *arguments = Some(CallArguments::Text(piece.to_owned().into()));
            }
            // Its arguments are complete.
            Some(Some(_)) | None => {}
        }
    }

    fn native_call(&mut self, index: u64, is_first: bool, piece: &ToolCall<'_>) {
        if is_first {
            self.calls.push(piece.clone().into_owned());
        } else {
            self.arguments(index, piece.arguments());
        }
    }

    fn can_interleave(&self) -> bool {
        true
    }

    fn finish(&mut self, reason: &str) {
        self.finish_reason = Some(reason.to_owned());
    }

    fn usage(&mut self, usage: &Usage<'_>) {
        self.usage = Some(usage.clone().into_owned());
    }

    fn has_begun(&self) -> bool {
        false
    }

    fn take(&mut self) -> Vec<u8> {
        std::mem::take(&mut self.bytes)
    }

    fn answer(&mut self, completion: ChatCompletion<'_>) {
        let completion = std::mem::take(self).into_completion(completion);
        self.bytes = plaincall_wire::write_bytes(&completion);
    }

    fn done(&mut self) {}

    fn error(&mut self, _error: &GatewayError) {}
}
