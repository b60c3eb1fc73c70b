//! Chunks that are recognized without being read say the same as when they are read.

use plaincall_wire::openai::{ChatCompletionChunk, Content, RepeatedChunk};

/// Chunks with `@` in the place of the text; whether they have only a text.
const CHUNKS: &[(&str, bool)] = &[
    (r#"{"choices":[{"delta":{"content":"@"}}]}"#, true),
    (
        r#" {"id":"1","object":"chat.completion.chunk","created":7,"model":"m","service_tier":"t","choices":[{"index":0,"delta":{"role":"assistant","content":"@"},"logprobs":null,"finish_reason":null}],"usage":null} "#,
        true,
    ),
    (
        r#"{"choices":[{"delta":{"content":"@"},"finish_reason":""}]}"#,
        true,
    ),
    (
        r#"{"choices":[{"delta":{"content":"a","content":"@"}}]}"#,
        true,
    ),
    (
        r#"{"choices":[{"delta":{"content":"@","content":"a"}}]}"#,
        true,
    ),
    (
        r#"{"choices":[{"index":1,"delta":{"content":"@"}}]}"#,
        false,
    ),
    (
        r#"{"choices":[{"delta":{"content":"@"}},{"delta":{"content":"b"}}]}"#,
        false,
    ),
    (
        r#"{"choices":[{"delta":{"content":"@"},"finish_reason":"stop"}]}"#,
        false,
    ),
    (
        r#"{"choices":[{"delta":{"content":"@","reasoning":"r"}}]}"#,
        false,
    ),
    (
        r#"{"choices":[{"delta":{"content":"@","refusal":"r"}}]}"#,
        false,
    ),
    (
        r#"{"choices":[{"delta":{"content":"@","tool_calls":[]}}]}"#,
        false,
    ),
    (r#"{"choices":[{"delta":{"content":"@","more":1}}]}"#, false),
    (
        r#"{"choices":[{"delta":{"content":"@"},"logprobs":{}}]}"#,
        false,
    ),
    (r#"{"choices":[{"delta":{"content":"@"},"more":1}]}"#, false),
    (r#"{"choices":[{"delta":{"content":"@"}}],"more":1}"#, false),
    (
        r#"{"choices":[{"delta":{"content":"@"}}],"usage":{"prompt_tokens":1}}"#,
        false,
    ),
    (
        r#"{"object":"error","choices":[{"delta":{"content":"@"}}]}"#,
        false,
    ),
    (
        r#"{"error":{},"choices":[{"delta":{"content":"@"}}]}"#,
        false,
    ),
    (
        r#"{"choices":[{"delta":{"content":[{"type":"text","text":"@"}]}}]}"#,
        false,
    ),
    (
        r#"{"choices":[{"delta":{"reasoning_content":"@"}}]}"#,
        false,
    ),
];

/// Texts as they are written in JSON; the last ones are not read as one string, or have escapes.
const TEXTS: &[&str] = &[
    "",
    "a",
    " b ",
    "日本 \u{2028}",
    "{}[]:,/",
    "a\\n",
    "\\u0041",
    "\\",
    "\"",
    "\",\"x\":\"",
    "\n",
    "\u{1}",
];

#[test]
fn a_repeated_chunk_is_what_reading_returns() {
    let mut recognized = 0;
    for (chunk, is_only_text) in CHUNKS {
        for first in TEXTS {
            let mut repeated = RepeatedChunk::default();
            let first_data = chunk.replace('@', first);
            let Ok(Some(first_chunk)) = ChatCompletionChunk::read(&first_data) else {
                continue;
            };
            repeated.remember(&first_data, &first_chunk);
            for (other, _) in CHUNKS {
                for second in TEXTS {
                    let data = other.replace('@', second);
                    let text = repeated.text(&data);
                    // The text of the chunk may not be the one that differs.
                    if other == chunk && !chunk.ends_with(r#""content":"a"}}]}"#) {
                        let is_plain = !second.contains(['\\', '"', '\n', '\u{1}']);
                        let is_shown = !first.contains(['\\', '"']);

                        assert_eq!(
                            text.is_some(),
                            *is_only_text && is_plain && is_shown,
                            "{first:?} {data}"
                        );
                    }
                    let Some(text) = text else { continue };
                    let mut read = ChatCompletionChunk::read(&data).unwrap().unwrap();
                    let choice = &mut read.choices.as_mut().unwrap()[0];
                    assert_eq!(choice.content(), text, "{data}");
                    let delta = choice.delta.as_mut().unwrap();
                    delta.content = Some(Content::Text(first_chunk.choices()[0].content()));
                    assert_eq!(read, first_chunk, "{first:?} {data}");
                    recognized += 1;
                }
            }
        }
    }
    assert!(recognized > 100, "{recognized}");
}
