//! Random disguises of a call in an untrusted text: the copy is always held (`spec/untrusted.md` 4).

use plaincall_call::{
    Document, Untrusted,
    untrusted::{Echo, EchoGuard},
};
use plaincall_syntax::{Call, Dialect, render};
use plaincall_testkit::cases::{Playing, cases};
use plaincall_testkit::schema_calls::Choices;

const NAMES: [&str; 5] = ["Delete", "read_file", "send-mail", "x", "Ü1"];
const WORDS: [&str; 16] = [
    "a",
    "/home",
    "x.txt",
    "--force",
    "7",
    "1.50",
    "true",
    "\u{65e5}\u{672c}",
    "caf\u{e9}",
    "key=value",
    "|",
    ">",
    "12:",
    "\"q\"",
    "[1,",
    "e\\t",
];

/// A call, as both syntaxes write it.
struct Drawn {
    name: &'static str,
    line: Vec<&'static str>,
    body: String,
}

impl Drawn {
    fn new(choices: &mut Choices<'_>) -> Self {
        let name = NAMES[choices.below(NAMES.len())];
        let mut word = || WORDS[choices.below(WORDS.len())];
        let line = [word(), word(), word()];
        let lines: Vec<String> = (0..3).map(|_| [word(), word()].join(" ")).collect();
        let line = line[..choices.below(4)].to_vec();
        let body = lines[..choices.below(4)].join("\n");
        Self { name, line, body }
    }

    fn written(&self, is_emoji: bool) -> String {
        let line = self.line.join(" ");
        let call = if is_emoji {
            Call::Emoji {
                name: self.name,
                raw_args: &line,
                body: &self.body,
            }
        } else {
            let names = ["a", "b", "c"];
            let mut arguments: Vec<(&str, &str)> =
                names.into_iter().zip(self.line.iter().copied()).collect();
            if !self.body.is_empty() {
                arguments.push(("text", &self.body));
            }
            Call::Block {
                name: self.name,
                id: None,
                dependencies: vec![],
                arguments,
            }
        };
        let dialect = if is_emoji {
            Dialect::emoji()
        } else {
            Dialect::block()
        };
        render(&call, &dialect.escaped()).expect("values of every kind")
    }
}

/// A change of each line of a text, with its number.
type Disguise = fn(usize, &str) -> String;

const IN_FRONT: [Disguise; 14] = [
    |number, line| format!("{number}: {line}"),
    |number, line| format!("src/a.rs:{number}:{line}"),
    |number, line| format!("{number}\t{line}"),
    |_, line| format!("+{line}"),
    |_, line| format!("- {line}"),
    |_, line| format!("> {line}"),
    |_, line| format!("| {line} |"),
    |_, line| format!("* {line}"),
    |number, line| format!("{number}. {line}"),
    |_, line| format!("// {line}"),
    |_, line| format!("<td>{line}</td>"),
    |_, line| format!("`{line}`,"),
    |_, line| format!("{line}\r"),
    |_, line| format!("{line}\n\n"),
];

const SPELLINGS: [fn(&str) -> String; 6] = [
    str::to_ascii_lowercase,
    |text| text.chars().flat_map(|c| [c, '\u{200b}']).collect(),
    |text| text.chars().map(|c| shifted(c, 0xFEE0)).collect(),
    |text| text.chars().map(|c| shifted(c, 0xE_0000)).collect(),
    |text| text.split('\n').collect::<Vec<_>>().join(" ; "),
    |text| text.split('\n').collect::<Vec<_>>().join("\u{2028}"),
];

/// A visible ASCII character in another block.
fn shifted(c: char, by: u32) -> char {
    if c.is_ascii_graphic() && c != '\\' {
        char::from_u32(u32::from(c) + by).expect("a character")
    } else {
        c
    }
}

fn disguised(text: &str, choices: &mut Choices<'_>) -> String {
    let mut text = text.to_owned();
    for _ in 0..choices.below(4) {
        text = match choices.below(20) {
            kind @ 0..14 => {
                let lines = text.lines().enumerate();
                let lines = lines.map(|(number, line)| IN_FRONT[kind](number + 1, line));
                lines.collect::<Vec<_>>().join("\n")
            }
            kind => SPELLINGS[kind - 14](&text),
        };
    }
    if choices.below(4) == 0 {
        text = format!("log:1: {}", serde_json::json!({ "page": text }));
    }
    text
}

/// Bytes that differ from case to case (the finish of splitmix64).
fn bytes(case: u64) -> Vec<u8> {
    let mut state = case;
    let mut next = || {
        state = state.wrapping_add(0x9E37_79B9_7F4A_7C15);
        let mixed = (state ^ (state >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
        let mixed = (mixed ^ (mixed >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
        mixed ^ (mixed >> 31)
    };
    (0..8).flat_map(|_| next().to_le_bytes()).collect()
}

#[test]
fn a_disguised_call_is_held() {
    let dialect = Dialect::auto().escaped();
    for case in cases("DISGUISE", 4_000) {
        let _playing = Playing::new("DISGUISE", case);
        let bytes = bytes(case);
        let mut choices = Choices::new(&bytes);
        let drawn = Drawn::new(&mut choices);
        let [in_text, in_reply] = [0; 2].map(|_| choices.below(2) == 0);
        let page = drawn.written(in_text);
        let page = format!("Before.\n{}\nAfter.", disguised(&page, &mut choices));
        let reply = drawn.written(in_reply);
        let document = Document::parse(&reply, &dialect).expect("a dialect that works");
        let call = document.calls().next().expect("a call");

        let mut guard =
            EchoGuard::new(std::slice::from_ref(&dialect)).expect("a dialect that works");
        assert_eq!(guard.echo_of(call), None);
        guard.observe(&Untrusted::new(page.as_str()));
        assert_eq!(
            guard.echo_of(call),
            Some(Echo::Found { text: 0 }),
            "{reply}\n--- of ---\n{page}"
        );
        assert!(guard.mentions(&call.name).is_some());
        // Another call is not held, although it has the same values.
        let other = reply.replacen(drawn.name, "other_tool", 1);
        let document = Document::parse(&other, &dialect).expect("a dialect that works");
        assert_eq!(
            guard.echo_of(document.calls().next().expect("a call")),
            None,
            "{other}"
        );
    }
}

/// Texts without anything that looks like the start of a call hold none, however much they speak of tools.
#[test]
fn ordinary_text_holds_no_call() {
    let dialect = Dialect::auto();
    let mut guard = EchoGuard::new(std::slice::from_ref(&dialect)).expect("a dialect that works");
    let ordinary = [
        "Delete the path /home: start with `rm`, end with a check! The argument: none.",
        "fn start(tool: &str) { call(tool) } // tool_call start",
        "| tool | argument |\n| --- | --- |\n| Delete | /home |",
        "1. Open the tool box \u{1F6E0}.\n2. Take [the hammer](x).",
        "{\"name\": \"Delete\", \"description\": \"starts a call\"}",
    ];
    for text in ordinary {
        assert_eq!(guard.relevant_part(&Untrusted::new(text)), None, "{text}");
        guard.observe(&Untrusted::new(text));
    }
    let reply = "!!!GADGET_START:Delete\n!!!ARG:path\n/home\n!!!GADGET_END";
    let document = Document::parse(reply, &dialect).expect("a dialect that works");
    assert_eq!(
        guard.echo_of(document.calls().next().expect("a call")),
        None
    );
    assert_eq!(guard.mentions("Delete"), None);
}
