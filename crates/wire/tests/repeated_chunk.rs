//! Chunks that are recognized without being read are the same as when they are read.

use plaincall_wire::openai::{ChatCompletionChunk, Content, RepeatedChunk};

/// Chunks with `@` in the place of the text. Those after `+` have only a text.
const CHUNKS: &str = r#"
+ {"choices":[{"delta":{"content":"@"}}]}
+ {"id":"1","object":"chat.completion.chunk","created":7,"model":"m","service_tier":"t","choices":[{"index":0,"delta":{"role":"assistant","content":"@"},"logprobs":null,"finish_reason":null}],"usage":null}
+ {"choices":[{"delta":{"content":"@"},"finish_reason":""}]}
+ {"choices":[{"delta":{"content":"a","content":"@"}}]}
- {"choices":[{"delta":{"content":"@","content":"a"}}]}
- {"choices":[{"index":1,"delta":{"content":"@"}}]}
- {"choices":[{"delta":{"content":"@"}},{"delta":{"content":"b"}}]}
- {"choices":[{"delta":{"content":"@"},"finish_reason":"stop"}]}
- {"choices":[{"delta":{"content":"@","reasoning":"r"}}]}
- {"choices":[{"delta":{"content":"@","refusal":"r"}}]}
- {"choices":[{"delta":{"content":"@","tool_calls":[]}}]}
- {"choices":[{"delta":{"content":"@","more":1}}]}
- {"choices":[{"delta":{"content":"@"},"logprobs":{}}]}
- {"choices":[{"delta":{"content":"@"},"more":1}]}
- {"choices":[{"delta":{"content":"@"}}],"more":1}
- {"choices":[{"delta":{"content":"@"}}],"usage":{"prompt_tokens":1}}
- {"object":"error","choices":[{"delta":{"content":"@"}}]}
- {"error":{},"choices":[{"delta":{"content":"@"}}]}
- {"choices":[{"delta":{"content":[{"type":"text","text":"@"}]}}]}
- {"choices":[{"delta":{"reasoning_content":"@"}}]}
"#;

/// Texts as they are written in JSON. Some have escapes, and some are not in one string.
const TEXTS: [&str; 12] = [
    "",
    "b",
    " b ",
    "日本 \u{2028}",
    "{}[]:,/",
    "b\\n",
    "\\u0041",
    "\\",
    "\"",
    "\",\"x\":\"",
    "\n",
    "\u{1}",
];

#[test]
fn a_repeated_chunk_is_what_reading_returns() {
    let chunks = || CHUNKS.trim().lines().map(|line| line.split_at(2));
    let mut recognized = 0;
    for (kind, chunk) in chunks() {
        for first in TEXTS {
            let mut repeated = RepeatedChunk::default();
            let first_data = chunk.replace('@', first);
            let Ok(Some(first_chunk)) = ChatCompletionChunk::read(&first_data) else {
                continue;
            };
            repeated.remember(&first_data, &first_chunk);
            for (_, other) in chunks() {
                for second in TEXTS {
                    let data = other.replace('@', second);
                    let text = repeated.text(&data);
                    if other == chunk && first != second {
                        let is_shown = !first.contains(['\\', '"']);
                        let is_plain = !second.contains(['\\', '"', '\n', '\u{1}']);
                        let is_expected = kind == "+ " && is_shown && is_plain;
                        assert_eq!(text.is_some(), is_expected, "{first:?} {data}");
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
