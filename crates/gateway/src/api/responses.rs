//! `OpenAI`'s Responses API, without stored responses.

mod encoder;
mod input;
mod output;
mod request;
mod tools;

use crate::api::encoder::Encoder;
use crate::api::responses::encoder::ResponsesEncoder;
pub(super) use crate::api::responses::request::read;
use crate::api::responses::tools::ToolNames;

#[derive(Clone, Debug)]
pub(crate) struct ResponsesNotes {
    is_streamed: bool,
    /// The requested model, if the model server names none.
    model: String,
    names: ToolNames,
    /// The options that the response repeats.
    options: plaincall_wire::Unknown<'static>,
}

impl ResponsesNotes {
    pub(super) fn encoder(self, word: &str, now: u64) -> Box<dyn Encoder + Send> {
        Box::new(ResponsesEncoder::new(self, word, now))
    }
}
