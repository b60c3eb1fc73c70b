use std::sync::LazyLock;

use plaincall_reply::rescue::{Format, RescueReader, Rescued};
use plaincall_testkit::untrusted::chunks;
use plaincall_tool::{ToolSet, ToolSpec, definitions::read_tool_definitions};

/// The tools of the vectors in `crates/reply/tests/rescue`, which are seeds.
const TOOLS: &str = r#"[
    {"type": "function", "function": {"name": "add", "parameters": {"type": "object",
        "properties": {"a": {"type": "integer"}, "b": {"type": "integer"}}, "required": ["a"]}}},
    {"type": "function", "function": {"name": "write", "parameters": {"type": "object",
        "properties": {"path": {"type": "string"}, "text": {"type": "string"}}, "required": ["path"]}}},
    {"type": "function", "function": {"name": "now", "parameters": {"type": "object", "properties": {}}}}
]"#;

/// The texts that these control characters represent.
const PIECES: [(char, &str); 27] = [
    ('\u{1}', "<tool_call>"),
    ('\u{2}', "</tool_call>"),
    ('\u{3}', "<function=add>"),
    ('\u{4}', "<parameter=a>"),
    ('\u{5}', "</parameter>"),
    ('\u{6}', "</function>"),
    ('\u{7}', "{\"name\": \"add\", \"arguments\": {\"a\": "),
    ('\u{8}', "[TOOL_CALLS]add[ARGS]{\"a\": "),
    ('\u{E}', "{\"name\": \"now\", \"arguments\": {}}"),
    ('\u{F}', "{\"name\": \"sub\", \"arguments\": {}}"),
    ('\u{10}', "<function=sub>"),
    ('\u{11}', "[TOOL_CALLS]now[CALL_ID]"),
    ('\u{12}', "\n```json\n"),
    ('\u{13}', "\n```\n"),
    ('\u{14}', "!!!GADGET_START:add\n!!!ARG:a\n"),
    ('\u{15}', "\n!!!GADGET_END"),
    ('\u{16}', "!!!GADGET_START:sub\n"),
    ('\u{17}', "\u{1F6E0}\u{FE0F}[add "),
    ('\u{18}', "\u{1F6E0}\u{FE0F}[/end]"),
    ('\u{19}', "<think>"),
    ('\u{1A}', "</think>"),
    ('\u{1B}', "<|tool_call|>"),
    ('\u{1C}', "commentary to=functions.add json"),
    ('\u{1D}', "[add(a="),
    ('\u{1E}', "<|tool_call>call:add{a:"),
    ('\u{1F}', "<tool_call|>"),
    ('\u{7F}', "analysisI"),
];

/// Returns what is found (texts and calls, adjacent texts joined), and the text that was read.
fn read(pieces: &[&str]) -> (Vec<String>, String) {
    static TOOLS_READ: LazyLock<ToolSet> = LazyLock::new(|| {
        ToolSet::new(read_tool_definitions(TOOLS).expect("definitions")).expect("one tool")
    });
    static READER: LazyLock<RescueReader<&[&ToolSpec]>> = LazyLock::new(|| {
        let markers = ["<think>", "</think>"].map(str::to_owned);
        let reader = RescueReader::new(Some(markers)).expect("markers");
        reader.with_formats(&Format::ALL)
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
            Rescued::Text(text) | Rescued::Reasoning(text) => {
                source.push_str(text);
                match parts.last_mut().filter(|_| is_text) {
                    Some(last) => last.push_str(text),
                    None => parts.push(text.clone()),
                }
                is_text = true;
            }
            Rescued::Calls {
                source: text,
                calls,
            } => {
                source.push_str(text);
                let calls = calls.iter();
                parts.extend(
                    calls.map(|call| format!("{} {}", call.name, call.arguments.to_value())),
                );
                is_text = false;
            }
            _ => {}
        }
    }
    (parts, source)
}

/// For any text and any chunks, the reader of calls that arrive as text loses no byte and finds the same calls
/// (`spec/gateway.md` 11.1). Two bytes select the chunk sizes; control characters represent texts of the formats.
pub fn rescue_loses_no_byte(data: &[u8]) {
    let Some(([first, second], rest)) = data.split_first_chunk::<2>() else {
        return;
    };
    let mut text = String::new();
    for c in String::from_utf8_lossy(rest).chars() {
        match PIECES.iter().find(|(control, _)| *control == c) {
            Some((_, piece)) => text.push_str(piece),
            None => text.push(c),
        }
    }
    let sizes = [usize::from(*first % 61) + 1, usize::from(*second % 7) + 1];
    let whole = read(&[&text]);
    assert_eq!(whole.1, text, "bytes are lost");
    let pieces: Vec<&str> = chunks(&text, &sizes).into_iter().collect();
    assert_eq!(read(&pieces), whole, "the chunks matter");
}
