//! For any text and any chunks, the reader of calls that arrive as text loses no byte and finds the same calls
//! (`spec/gateway.md` 11.1). Two bytes choose the chunks; control characters stand for texts of the formats.
#![no_main]

use std::sync::LazyLock;

use libfuzzer_sys::fuzz_target;
use plaincall_call::definitions::read_tool_definitions;
use plaincall_call::rescue::{RescueReader, Rescued};
use plaincall_call::{ToolSet, ToolSpec};
use plaincall_testkit::untrusted::chunks;

const TOOLS: &str = r#"[{"type": "function", "function": {"name": "add", "parameters": {"type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "string"}}, "required": ["a"]}}}]"#;

/// The texts that the control characters from 1 on represent.
const PIECES: [&str; 8] = [
    "<tool_call>",
    "</tool_call>",
    "<function=add>",
    "<parameter=a>",
    "</parameter>",
    "</function>",
    "{\"name\": \"add\", \"arguments\": {\"a\": ",
    "[TOOL_CALLS]add[ARGS]{\"a\": ",
];

/// Returns what is found (texts and calls, adjacent texts joined), and the text that was read.
fn read(pieces: &[&str]) -> (Vec<String>, String) {
    static TOOLS_READ: LazyLock<ToolSet> = LazyLock::new(|| {
        ToolSet::new(read_tool_definitions(TOOLS).expect("definitions")).expect("one tool")
    });
    static READER: LazyLock<RescueReader<&[&ToolSpec]>> = LazyLock::new(|| {
        RescueReader::new(Some(["<think>", "</think>"].map(str::to_owned))).expect("markers")
    });
    let mut reader = READER.with_tools(&*TOOLS_READ);
    let mut found: Vec<Rescued> = Vec::new();
    for piece in pieces {
        found.extend(reader.feed(piece));
    }
    found.extend(reader.flush(true));
    let (mut parts, mut source, mut is_text) = (Vec::<String>::new(), String::new(), false);
    for one in &found {
        match one {
            Rescued::Text(text) => {
                source.push_str(text);
                match parts.last_mut().filter(|_| is_text) {
                    Some(last) => last.push_str(text),
                    None => parts.push(text.clone()),
                }
                is_text = true;
            }
            Rescued::Calls { source: text, calls } => {
                source.push_str(text);
                let calls = calls.iter();
                parts.extend(calls.map(|call| format!("{} {}", call.name, call.arguments.to_value())));
                is_text = false;
            }
            _ => {}
        }
    }
    (parts, source)
}

fuzz_target!(|data: &[u8]| {
    let Some(([first, second], rest)) = data.split_first_chunk::<2>() else {
        return;
    };
    let mut text = String::new();
    for c in String::from_utf8_lossy(rest).chars() {
        match (c as usize).checked_sub(1).and_then(|at| PIECES.get(at)) {
            Some(piece) => text.push_str(piece),
            None => text.push(c),
        }
    }
    let sizes = [usize::from(*first % 61) + 1, usize::from(*second % 7) + 1];
    let whole = read(&[&text]);
    assert_eq!(whole.1, text, "bytes are lost");
    let pieces: Vec<&str> = chunks(&text, &sizes).into_iter().collect();
    assert_eq!(read(&pieces), whole, "the chunks matter");
});
