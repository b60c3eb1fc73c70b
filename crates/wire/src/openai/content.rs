//! The content of a message.

use std::borrow::Cow;

content! {
    /// The content of a message: a text, or parts of several kinds.
    pub enum Content {
        /// A text.
        Text,
        /// Text, images, audio, files and other parts.
        Parts(ContentPart) expected "a string or a list of parts",
    }
}

object! {
    /// A part of a [`Content`]. Fields other than text are in `unknown`.
    pub struct ContentPart<'a> {
        /// The kind: `text`, `image_url`, `input_audio`, `file`, `refusal`, `thinking` …
        "type" kind: Option<Cow<'a, str>>,
        /// The text of a part of kind `text`.
        "text" text: Option<Cow<'a, str>>,
        /// Reasoning, in a part of kind `thinking`, as sent by Mistral.
        "thinking" thinking: Option<Content<'a>>,
    }
}

impl Content<'_> {
    /// Returns the reasoning in parts of kind `thinking`.
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
