//! Halves of surrogate pairs: replaced if they are alone, joined if an event split a pair.

use std::borrow::Cow;
use std::fmt::Write as _;

use plaincall_wire::{SurrogateJoiner, read, replace_lone_surrogates};

/// Texts with halves, and their results.
#[test]
fn lone_halves_become_a_replacement_character() {
    let rows = [
        (r#""plain \u0041 é""#, r#""plain \u0041 é""#),
        (r#""\ud83d""#, r#""\ufffd""#),
        (r#""\uD83D""#, r#""\ufffd""#),
        (r#""\ude00""#, r#""\ufffd""#),
        (r#""\ud83d\ude00""#, r#""\ud83d\ude00""#),
        (r#""\uD83D\uDE00""#, r#""\uD83D\uDE00""#),
        (r#""a\ud83db""#, r#""a\ufffdb""#),
        (r#""\ud83d\ud83d\ude00""#, r#""\ufffd\ud83d\ude00""#),
        (r#""\ude00\ud83d""#, r#""\ufffd\ufffd""#),
        (r#""\ud83d\n""#, r#""\ufffd\n""#),
        (r#""\ud83d\u0041""#, r#""\ufffd\u0041""#),
        // The backslash is escaped, so nothing else is.
        (r#""\\ud83d""#, r#""\\ud83d""#),
        (r#""\\\ud83d""#, r#""\\\ufffd""#),
        (r#""\\\\ud83d""#, r#""\\\\ud83d""#),
        (
            r#"{"\ud83d":["\ude00",{"a":"\ud83d"}]}"#,
            r#"{"\ufffd":["\ufffd",{"a":"\ufffd"}]}"#,
        ),
        (
            r#"{"a": "x\"\ud83d" , "b":"\""}"#,
            r#"{"a": "x\"\ufffd" , "b":"\""}"#,
        ),
        // Invalid JSON is not read further.
        (r#""\ud83"#, r#""\ud83"#),
        (r"\ud83d", r"\ud83d"),
        (r#""\ud83d"#, r#""\ud83d"#),
        (r#""\é\ud83d""#, r#""\é\ud83d""#),
        ("", ""),
    ];
    for (json, expected) in rows {
        assert_eq!(replace_lone_surrogates(json), expected, "{json}");
        if let Ok(value) = serde_json::from_str::<serde_json::Value>(expected) {
            assert!(!value.is_null(), "{json}");
        }
    }
    assert!(matches!(
        replace_lone_surrogates(r#""\ude 😀 \n""#),
        Cow::Borrowed(_) | Cow::Owned(_)
    ));
}

/// Checks the texts of a stream's events.
#[test]
fn pairs_are_joined_over_events() {
    let rows: [(&[&str], &[&str]); 8] = [
        (
            &[r#"{"content":"a\ud83d"}"#, r#"{"content":"\ude00b"}"#],
            &[r#"{"content":"a"}"#, r#"{"content":"\ud83d\ude00b"}"#],
        ),
        // Other fields and empty strings between them do not separate them.
        (
            &[
                r#"{"content":"\ud83d","finish":null}"#,
                r#"{"usage":{"a":1},"content":"","role":"assistant"}"#,
                r#"{"id":"x","content":"\ude00"}"#,
            ],
            &[
                r#"{"content":"","finish":null}"#,
                r#"{"usage":{"a":1},"content":"","role":"assistant"}"#,
                r#"{"id":"x","content":"\ud83d\ude00"}"#,
            ],
        ),
        (
            &[
                r#"{"content":"\ud83d"}"#,
                r#"{"content":"b"}"#,
                r#"{"content":"\ude00"}"#,
            ],
            &[
                r#"{"content":""}"#,
                r#"{"content":"\ufffdb"}"#,
                r#"{"content":"\ufffd"}"#,
            ],
        ),
        (
            &[
                r#"{"content":"\ud83d"}"#,
                r#"{"content":"\ud83d"}"#,
                r#"{"content":"\ude00"}"#,
            ],
            &[
                r#"{"content":""}"#,
                r#"{"content":"\ufffd"}"#,
                r#"{"content":"\ud83d\ude00"}"#,
            ],
        ),
        // Halves in different fields do not belong together.
        (
            &[r#"{"reasoning":"\ud83d"}"#, r#"{"content":"\ude00"}"#],
            &[r#"{"reasoning":""}"#, r#"{"content":"\ufffd"}"#],
        ),
        // Two pairs, both split.
        (
            &[
                r#"{"text":"\ud83d"}"#,
                r#"{"text":"\ude00\ud83d"}"#,
                r#"{"text":"\udee0"}"#,
            ],
            &[
                r#"{"text":""}"#,
                r#"{"text":"\ud83d\ude00"}"#,
                r#"{"text":"\ud83d\udee0"}"#,
            ],
        ),
        (
            &[r#"{"a":"\\ud83d"}"#, r#"{"a":"\ude00"}"#],
            &[r#"{"a":"\\ud83d"}"#, r#"{"a":"\ufffd"}"#],
        ),
        (&["[DONE]", ""], &["[DONE]", ""]),
    ];
    for (events, expected) in rows {
        let mut surrogates = SurrogateJoiner::default();
        let joined: Vec<_> = events.iter().map(|event| surrogates.join(event)).collect();
        assert_eq!(joined, expected);
    }
}

/// A text as JavaScript writes its JSON: halves as escapes, everything else unchanged.
fn as_node_writes(units: &[u16]) -> String {
    let mut json = String::from('"');
    for character in char::decode_utf16(units.iter().copied()) {
        match character {
            Ok(character @ ('"' | '\\')) => json.extend(['\\', character]),
            Ok('\n') => json.push_str("\\n"),
            Ok(character) => json.push(character),
            Err(half) => {
                let _ = write!(json, "\\u{:04x}", half.unpaired_surrogate());
            }
        }
    }
    json + "\""
}

/// A text that is split anywhere between UTF-16 units reads as the same text.
#[test]
fn a_text_that_was_cut_anywhere_is_read_whole() {
    let text = "🛠️[say hi]😀\\ud83d\"\n🛠️[/end] 👨‍👩‍👧 \\";
    let units: Vec<u16> = text.encode_utf16().collect();
    for first in 0..=units.len() {
        for second in first..=units.len() {
            let mut cuts = SurrogateJoiner::default();
            let mut read_back = String::new();
            for piece in [&units[..first], &units[first..second], &units[second..]] {
                let json = format!(
                    "{{\"choices\":[{{\"delta\":{{\"content\":{}}}}}]}}",
                    as_node_writes(piece)
                );
                let json = cuts.join(&json);
                let chunk: plaincall_wire::openai::ChatCompletionChunk<'_> =
                    read(json.as_bytes()).unwrap();
                read_back += &chunk.choices()[0].content();
            }
            assert_eq!(read_back, text, "{first} {second}");
        }
    }
}

/// A thousand halves cost no more than a thousand letters: eight times as many take about eight times as long, not 64 times.
#[test]
fn rewriting_is_linear() {
    let long = |count: usize| format!("\"{}\"", "\\ud83d".repeat(count));
    let seconds = |count: usize| {
        let json = long(count);
        let best = (0..10).map(|_| {
            let begun = std::time::Instant::now();
            assert_eq!(replace_lone_surrogates(&json).len(), json.len());
            begun.elapsed()
        });
        best.min().unwrap().as_secs_f64()
    };
    let ratio = seconds(400_000) / seconds(50_000);
    assert!(ratio < 40.0, "{ratio}");
}
