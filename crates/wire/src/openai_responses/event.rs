//! The events of a streamed response.

use std::borrow::Cow;

use super::item::{Item, Part};
use super::response::Response;
use crate::json::Json;
use crate::sse::encode_event;
use crate::write;

object! {
    /// The data of an event of a streamed response. Its kind decides which fields it has.
    pub struct ResponseEvent<'a> {
        /// The kind, which is also the event's name.
        "type" kind: Option<Cow<'a, str>>,
        /// The number of the event, from 0 without gaps.
        "sequence_number" sequence_number: Option<u64>,
        /// The response, of events about it.
        "response" response: Option<Response<'a>>,
        /// The id of the item, of events about its content.
        "item_id" item_id: Option<Cow<'a, str>>,
        /// The index of the item.
        "output_index" output_index: Option<u64>,
        /// The item, of events about it.
        "item" item: Option<Item<'a>>,
        /// The index of the part.
        "content_index" content_index: Option<u64>,
        /// The part, of events about it.
        "part" part: Option<Part<'a>>,
        /// A piece of text.
        "delta" delta: Option<Cow<'a, str>>,
        /// The complete text.
        "text" text: Option<Cow<'a, str>>,
        /// The complete text with which the model declines to answer.
        "refusal" refusal: Option<Cow<'a, str>>,
        /// The name of the called function.
        "name" name: Option<Cow<'a, str>>,
        /// The complete arguments of a function call.
        "arguments" arguments: Option<Cow<'a, str>>,
        /// The complete input of a custom tool's call.
        "input" input: Option<Cow<'a, str>>,
        /// The probabilities of the tokens.
        "logprobs" logprobs: Option<Json<'a>>,
    }
}

impl ResponseEvent<'_> {
    /// Appends the event to a stream.
    pub fn encode(&self, out: &mut Vec<u8>) {
        encode_event(self.kind.as_deref().unwrap_or_default(), &write(self), out);
    }
}
