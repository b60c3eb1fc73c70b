//! The content of a message.

use std::borrow::Cow;

content! {
    /// The content of a message: a text, or parts of several kinds.
    pub enum Content {
        /// A text.
        Text,
        /// Texts, images, sounds, files and what else a model takes.
        Parts(ContentPart) expected "a string or a list of parts",
    }
}

object! {
    /// A part of a [`Content`]. What is not text stands in `unknown`, under the name of its kind.
    pub struct ContentPart<'a> {
        /// The kind: `text`, `image_url`, `input_audio`, `file`, `refusal`, `thinking` …
        "type" kind: Option<Cow<'a, str>>,
        /// The text of a part of kind `text`.
        "text" text: Option<Cow<'a, str>>,
        /// What a model thought, in a part of kind `thinking`, as Mistral has it.
        "thinking" thinking: Option<Content<'a>>,
    }
}

impl Content<'_> {
    /// What a model thought, from parts of kind `thinking`.
    pub fn thinking(&self) -> impl Iterator<Item = Cow<'_, str>> {
        let parts = match self {
            Self::Text(_) => &[],
            Self::Parts(parts) => parts.as_slice(),
        };
        parts
            .iter()
            .filter_map(|part| part.thinking.as_ref())
            .map(Self::text)
    }
}
