//! Chunks that differ from an earlier one only in their text.

use super::chunk::{ChatCompletionChunk, ChunkChoice, Delta};
use super::content::Content;

/// Recognizes the chunks of a stream that differ from an earlier one only in their text: most chunks of a stream. Comparing
/// them as bytes takes a small part of the time of reading JSON.
///
/// ```
/// use plaincall_wire::openai::{ChatCompletionChunk, RepeatedChunk};
///
/// let data = |text: &str| format!(r#"{{"id":"1","choices":[{{"delta":{{"content":"{text}"}}}}]}}"#);
/// let first = data("Hello");
/// let mut repeated = RepeatedChunk::default();
/// assert_eq!(repeated.text(&first), None);
/// if let Some(chunk) = ChatCompletionChunk::read(&first)? {
///     repeated.remember(&first, &chunk);
/// }
/// assert_eq!(repeated.text(&data(" world")), Some(" world"));
/// // An escape must be read.
/// assert_eq!(repeated.text(&data("\\n")), None);
/// # Ok::<(), plaincall_wire::ReadError>(())
/// ```
#[derive(Clone, Debug, Default)]
pub struct RepeatedChunk {
    /// The data before and after the text, or empty.
    before: String,
    after: String,
}

impl RepeatedChunk {
    /// Returns the text of a chunk if its data is that of the remembered one in all else. Texts with escapes are not recognized.
    pub fn text<'d>(&self, data: &'d str) -> Option<&'d str> {
        if self.before.is_empty() {
            return None;
        }
        let text = data.strip_prefix(&*self.before)?;
        let text = text.strip_suffix(&*self.after)?;
        // The string could end at a quote, and other characters cannot be in it.
        let is_plain = |byte| byte >= 0x20 && byte != b'"' && byte != b'\\';
        text.bytes().all(is_plain).then_some(text)
    }

    /// Remembers a chunk that was read from this data, if it has only a text. Otherwise forgets the one before.
    pub fn remember<'d>(&mut self, data: &'d str, chunk: &ChatCompletionChunk<'d>) {
        self.before.clear();
        self.after.clear();
        let parts = only_text(chunk).and_then(|text| {
            let at = text.as_ptr().addr().checked_sub(data.as_ptr().addr())?;
            let (before, rest) = data.split_at_checked(at)?;
            // A text with escapes is not part of the data.
            let after = rest.strip_prefix(text)?;
            (before.ends_with('"') && after.starts_with('"')).then_some((before, after))
        });
        if let Some((before, after)) = parts {
            self.before.push_str(before);
            self.after.push_str(after);
        }
    }
}

/// Returns the text of a chunk if all else in it names the response.
fn only_text<'c>(chunk: &'c ChatCompletionChunk<'_>) -> Option<&'c str> {
    let ChatCompletionChunk {
        object,
        choices: Some(choices),
        usage: None,
        error: None,
        unknown,
        ..
    } = chunk
    else {
        return None;
    };
    let [
        ChunkChoice {
            index: None | Some(0),
            delta: Some(delta),
            logprobs: None,
            finish_reason,
            unknown: of_choice,
        },
    ] = &choices[..]
    else {
        return None;
    };
    let Delta {
        role: _,
        content: Some(Content::Text(text)),
        refusal: None,
        reasoning_content: None,
        reasoning: None,
        tool_calls: None,
        unknown: of_delta,
    } = delta
    else {
        return None;
    };
    let has_unknown = [unknown, of_choice, of_delta].map(|fields| fields.iter().next().is_some());
    let is_ended = finish_reason
        .as_deref()
        .is_some_and(|reason| !reason.is_empty());
    let is_error = object.as_deref() == Some("error");
    (!has_unknown.contains(&true) && !is_ended && !is_error).then_some(text)
}
