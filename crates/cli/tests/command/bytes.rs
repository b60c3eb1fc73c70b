//! Bytes that are not text, and characters that chunks split.

use std::path::Path;

use crate::command::process::run;

const HERE: &str = env!("CARGO_MANIFEST_DIR");

/// Texts in which a split at any byte matters: characters of two, three and four bytes, invalid ones, markers, line
/// ends.
const TEXTS: &[&[u8]] = &[
    "é\u{20ac}\u{1F6E0}\u{FE0F}[a \u{1F600}]\r\nü\u{1F6E0}[/end]\r\n".as_bytes(),
    "\u{feff}!!!GADGET_START:Ünï:\u{4e2d}\r\n!!!ARG:\u{645}\r\n\u{1F468}\u{200D}\u{1F469}\r\n!!!GADGET_END\r\n".as_bytes(),
    b"\xF0\x9F\x9B!!!GADGET_START:A\n!!!ARG:x\n\xF0\x9F\xF0\x9F\x9B\xA0\xE2\x82\n!!!GADGET_END\xF0\x9F\x9B",
    b"\xC4\x9F\xC5\xB8\xE2\x80\xBA \xC3\xAF\xC2\xB8[a]\xFF\xC4\x9F\xC5\xB8\xE2\x80\xBA\xC2\xA0\xC3\xAF\xC2\xB8[/end]",
];

#[test]
fn cut_characters_make_no_difference() {
    for text in TEXTS {
        let whole = run(Path::new(HERE), &["parse"], text);
        assert_eq!(whole.status, Some(0));
        assert!(whole.stdout().contains(r#""termination":"explicit""#));
        for size in 1..text.len() {
            let size = size.to_string();
            let cut = run(Path::new(HERE), &["parse", "--chunk", &size], text);
            assert_eq!(cut.stdout(), whole.stdout(), "{size} bytes of {text:?}");
        }
    }
}

/// Every command accepts arbitrary bytes, and none panics.
#[test]
fn any_bytes_are_read() {
    let mut noise = Vec::new();
    let mut state = 1_u32;
    for _ in 0..50_000 {
        state = state.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        noise.push(state.to_be_bytes()[0]);
    }
    let zeros = vec![0; 10_000];
    let every: Vec<u8> = (0..=255).collect();
    for bytes in [&noise, &zeros, &every] {
        for arguments in [
            &["parse"][..],
            &["parse", "--events"],
            &["parse", "--jsonl"],
            &["parse", "--format", "text"],
            &["parse", "--format", "openai"],
            &["check"],
            &["check", "--format", "json", "--dialect", "escaped"],
            &["render"],
        ] {
            let ran = run(Path::new(HERE), arguments, bytes);
            assert!(matches!(ran.status, Some(0 | 1)), "{arguments:?}");
            assert!(!ran.stderr().contains("panicked"), "{}", ran.stderr());
        }
    }
}
