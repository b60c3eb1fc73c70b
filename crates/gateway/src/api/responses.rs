//! `OpenAI`'s Responses API, without stored responses.

mod encoder;
mod input;
mod output;
mod request;
mod tools;

use crate::api::encoder::Encoder;
use crate::api::responses::encoder::ResponsesEncoder;
pub(super) use crate::api::responses::request::read;
use crate::api::responses::tools::{ToolNames, ToolPlace};
use crate::api::split_index;

#[derive(Clone, Debug)]
pub(crate) struct ResponsesNotes {
    is_streamed: bool,
    /// The requested model, if the model server names none.
    model: String,
    names: ToolNames,
    /// Where each tool that the model server gets is in the request.
    places: Vec<ToolPlace>,
    /// The options that the response repeats.
    options: plaincall_wire::Unknown<'static>,
}

impl ResponsesNotes {
    /// Converts a JSON Pointer to a tool.
    pub(super) fn tool_pointer(&self, at: &str) -> String {
        let (index, rest) = split_index(at);
        let place = index
            .parse()
            .ok()
            .and_then(|index: usize| self.places.get(index));
        let place = place.map_or_else(|| "/tools".to_owned(), ToolPlace::to_string);
        place + rest
    }

    pub(super) fn encoder(self, word: &str, now: u64) -> Box<dyn Encoder + Send> {
        Box::new(ResponsesEncoder::new(self, word, now))
    }
}
