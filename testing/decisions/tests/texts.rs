//! Replies from a seed: good calls, and what models write in their place.

use plaincall_reply::Stop;
use plaincall_syntax::{Dialect, Syntax};
use plaincall_testkit::arbitrary_texts::Random;

/// A reply with the finish reason of its model server, or a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Reply {
    pub(crate) syntax: Syntax,
    pub(crate) text: String,
    /// The finish reason: `stop`, `length` or none.
    pub(crate) finish: Option<&'static str>,
    /// Whether the text is a file, read to its end, in place of a reply with a finish reason.
    pub(crate) is_file: bool,
    /// Whether the text contains a call in a format of another kind.
    pub(crate) has_other_format: bool,
    /// The name of the reply, and the tools of the calls that native mode accepts by the rules, if they are known.
    pub(crate) native: Option<(&'static str, &'static [&'static str])>,
    /// Whether the text consists of calls with their own end markers, and blank lines.
    pub(crate) is_only_calls: bool,
}

impl Reply {
    /// Returns how the text ended.
    pub(crate) fn stop(&self) -> Stop {
        match self.finish {
            Some("stop") => Stop::Natural,
            Some(_) => Stop::Length,
            None if self.is_file => Stop::EndOfFile,
            None => Stop::Broken,
        }
    }

    /// Returns whether the text contains an escaped marker.
    pub(crate) fn has_escape(&self) -> bool {
        [
            "!!!GADGET_EN\\D",
            "\u{1F6E0}\u{FE0F}\\[",
            "\u{1F6E0}\u{FE0F}\\\\[",
        ]
        .iter()
        .any(|escaped| self.text.contains(escaped))
    }

    /// Returns the dialect, in which a program reads the text. Programs that read replies add reasoning by default.
    pub(crate) fn dialect(&self) -> Dialect {
        match self.syntax {
            Syntax::Block => Dialect::block().escaped(),
            Syntax::Emoji => Dialect::emoji().escaped(),
        }
    }
}

const CALL: &str = "!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!ARG:text\nx\n!!!GADGET_END\n";
/// The first replies: attempts that once ran a call that the model did not mean, and good calls beside them.
const FIXED: &[(Syntax, &str, Option<&str>)] = &[
    (Syntax::Block, CALL, Some("stop")),
    (
        Syntax::Block,
        "I write it.\n!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!ARG:text\nx",
        Some("stop"),
    ),
    (
        Syntax::Block,
        "!!!GADGET_START:search\n!!!ARG:query\nx\n!!!GADGET_START:search\n!!!ARG:query\ny\n",
        Some("stop"),
    ),
    (
        Syntax::Block,
        "<think>\n!!!GADGET_START:now\n!!!GADGET_END\n</think>\n!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END",
        None,
    ),
    (
        Syntax::Emoji,
        "\u{1F6E0}\u{FE0F}[add 5 7]\u{1F6E0}\u{FE0F}[/end]\n\u{1F6E0}\u{FE0F}[now]\u{1F6E0}\u{FE0F}[/end]",
        Some("stop"),
    ),
    // A value that quotes a call, whose end marker in mid-line ends the call, so it is rejected.
    (
        Syntax::Block,
        "!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!ARG:text\nSo:\n    !!!GADGET_START:now\n    !!!GADGET_END\nThe end.\n!!!GADGET_END\n",
        Some("stop"),
    ),
    // Calls that are held: a value has the start of a call, or a near miss of the end marker.
    (
        Syntax::Block,
        "!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!ARG:text\nWrite !!!GADGET_START:now\nand more.\n!!!GADGET_END\n",
        Some("stop"),
    ),
    (
        Syntax::Block,
        "!!!GADGET_START:search\n!!!ARG:query\nx\n!!!GADGT_END\nDone.\n!!!GADGET_END\n",
        Some("stop"),
    ),
    (
        Syntax::Emoji,
        "\u{1F6E0}\u{FE0F}[write]\n{\"path\": \"a.txt\", \"text\": \"\u{1F6E0}\u{FE0F}[now]\"}\u{1F6E0}\u{FE0F}[/end]\n",
        Some("stop"),
    ),
    // A broken beginning, and a call that may be part of its value.
    (
        Syntax::Block,
        "!!!GADGT_START:write\n!!!ARG:path\na.txt\n!!!ARG:text\n!!!GADGET_START:write\n!!!ARG:path\nb.txt\n!!!GADGET_END\n",
        Some("stop"),
    ),
    (
        Syntax::Emoji,
        "- \u{1F6E0}\u{FE0F}[now]So:\n\u{1F6E0}\u{FE0F}[write]\n{\"path\": \"a.txt\"}\u{1F6E0}\u{FE0F}[/end]\n",
        Some("stop"),
    ),
    // No end marker, and a last value of several lines, or one that ends with text of another format.
    (
        Syntax::Block,
        "!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!ARG:text\nx\n\nDone, I wrote the file.\n",
        Some("stop"),
    ),
    (
        Syntax::Block,
        "!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!ARG:text\nx\n<|im_end|>",
        Some("stop"),
    ),
    (
        Syntax::Block,
        "!!!GADGET_START:search\n!!!ARG:query\nx\n</tool_call>",
        Some("stop"),
    ),
    // Reasoning after a call, and null for an optional parameter that is a number.
    (
        Syntax::Block,
        "\u{FEFF}<think>Hm.</think>\n!!!GADGET_START:add\n!!!ARG:a\n5\n!!!ARG:b\nnull\n!!!GADGET_END\n<think>\n!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!GADGET_END\n</think>\n",
        Some("stop"),
    ),
    // A call that ends with the next one, after a reasoning end marker in mid-line.
    (
        Syntax::Block,
        "Plan.</think> is text.\n!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!GADGET_START:now\n!!!GADGET_END",
        Some("stop"),
    ),
    // Nothing follows a reasoning end marker in mid-line.
    (
        Syntax::Block,
        "!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!GADGET_END\nWrong.</think>",
        Some("stop"),
    ),
    // A call before a lone reasoning end marker.
    (
        Syntax::Block,
        "!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!GADGET_END\nOr not.\n</think>\nNo.",
        Some("stop"),
    ),
    // A call without its own end marker before another one.
    (
        Syntax::Block,
        "!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!ARG:text\nx\n!!!GADGET_START:write\n!!!ARG:path\na.txt\n!!!ARG:text\nx\n!!!GADGET_END\n",
        Some("stop"),
    ),
    // A fence around the arguments.
    (
        Syntax::Block,
        "!!!GADGET_START:write\n```\n!!!ARG:path\na.txt\n!!!ARG:text\nx\n```\n!!!GADGET_END\n",
        Some("stop"),
    ),
    // How some models end an emoji call. With a body, it is rejected also if it has its own end marker.
    (Syntax::Emoji, "\u{1F6E0}\u{FE0F}[add 5 /]\n", Some("stop")),
    (
        Syntax::Emoji,
        "\u{1F6E0}\u{FE0F}[add 5 /]\nDone.\n\u{1F6E0}\u{FE0F}[now]\u{1F6E0}\u{FE0F}[/end]",
        Some("stop"),
    ),
    // Escapes.
    (
        Syntax::Block,
        "!!!GADGET_START:search\n!!!ARG:query\n!!!GADGET_EN\\D\n!!!GADGET_END\n",
        Some("stop"),
    ),
];

/// Replies with calls in other formats, and the tools of the calls that native mode accepts by the rules.
const NATIVE: &[(&str, &str, &[&str])] = &[
    (
        "a call in tags",
        "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 5}}\n</tool_call>",
        &["add"],
    ),
    (
        "a call after prose",
        "I add.\n<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 5}}</tool_call>\n",
        &["add"],
    ),
    (
        "two calls",
        "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>",
        &["now", "now"],
    ),
    (
        "a fenced call",
        "```json\n{\"name\": \"now\", \"arguments\": {}}\n```\n",
        &["now"],
    ),
    (
        "a call with a special token",
        "<function=add>\n<parameter=a>\n5\n</parameter>\n</function><|im_end|>",
        &["add"],
    ),
    (
        "a value that quotes a call",
        "{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"text\": \"<tool_call>{}</tool_call>\"}}",
        &["write"],
    ),
    (
        "two calls in one envelope",
        "<tool_call>\n{\"name\": \"now\", \"arguments\": {}}\n{\"name\": \"add\", \"arguments\": {\"a\": 5}}\n</tool_call>",
        &["now", "add"],
    ),
    (
        "a call after a sentence",
        "I add.[TOOL_CALLS]add[ARGS]{\"a\": 5}</s>",
        &["add"],
    ),
    (
        "a call in the format of another model, in Python",
        "[add(a=5)]\n",
        &[],
    ),
    (
        "a call in the format of another model, without its tokens",
        "commentary to=functions.add json{\"a\": 5}",
        &[],
    ),
    (
        "a call in the format of another model, and one of the model",
        "<|tool_call>call:add{a:5}<tool_call|>\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>",
        &[],
    ),
    (
        "a call that prose follows",
        "I will not run this:\n{\"name\": \"write\", \"arguments\": {\"path\": \"a\"}}\nIt would overwrite it.",
        &[],
    ),
    (
        "a call in a list",
        "- <tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>",
        &[],
    ),
    (
        "a call in a quotation",
        "> <tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>",
        &[],
    ),
    (
        "a call in a table",
        "| now | <tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call> |",
        &[],
    ),
    (
        "a call in an object",
        "{\"example\": {\"name\": \"now\", \"arguments\": {}}}",
        &[],
    ),
    (
        "a call in reasoning",
        "<think>\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\n</think>\n",
        &[],
    ),
    (
        "calls with prose between",
        "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\nAnd:\n<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 5}}</tool_call>",
        &[],
    ),
    (
        "a call without an end",
        "<tool_call>{\"name\": \"now\", \"arguments\": {}}\n",
        &[],
    ),
    (
        "a call without a required argument",
        "<tool_call>{\"name\": \"add\", \"arguments\": {}}</tool_call>",
        &[],
    ),
    (
        "a call of an unknown tool",
        "<tool_call>{\"name\": \"other\", \"arguments\": {}}</tool_call>",
        &[],
    ),
    (
        "a call before one in another format",
        "!!!GADGET_START:now\n!!!GADGET_END\n<tool_call>{\"name\": \"add\", \"arguments\": {\"a\": 5}}</tool_call>",
        &["now", "add"],
    ),
    (
        "a call in code",
        "Write `<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>`",
        &[],
    ),
    (
        "a call in another tag",
        "<example>\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\n</example>",
        &[],
    ),
    (
        "a call in a comment",
        "<!--\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\n-->",
        &[],
    ),
    (
        "a call in a broken call",
        "<tool_call>{\"name\": \"write\", \"arguments\": {\"path\": \"a\", \"text\": \"\n<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>\n",
        &[],
    ),
    (
        "a call with two names",
        "{\"name\": \"now\", \"function\": {\"name\": \"add\", \"arguments\": {\"a\": 5}}}",
        &[],
    ),
    (
        "a call beside an invalid one",
        "<tool_call>\n[{\"name\": \"now\", \"arguments\": {}}, {\"name\": \"add\", \"arguments\": {}}]\n</tool_call>",
        &[],
    ),
];

/// Text before a call. The first ones are the usual ones.
const PROSE: &[&str] = &[
    "",
    "",
    "",
    "",
    "I look at it first.\n",
    "\n\n",
    "```\n",
    "</think>\n",
    "So it ends:</think>\n",
    "`</think>` is a tag.\n",
    "<think>\nHm.\n</think>\n",
    "<think>\n",
    "> ",
    "  ",
    "- ",
    "See ",
    "1: ",
    "Done, I wrote the file.\n",
    "<|im_end|>\n",
];
/// Beginnings of calls that are broken, and calls in other formats, with other values than all others and with the word `other`.
const BROKEN: &[(&str, &str)] = &[
    ("", "!!!GADGT_START:write\n!!!ARG:path\na.txt\n"),
    ("", "!!!gadget_start:write\n!!!ARG:path\na.txt\n"),
    ("", "!!!GADGET_START:\n"),
    ("", "!!!GADGET_START: is a marker.\n"),
    ("", "\u{1F6E0}\u{FE0F} [write]\n"),
    ("", "\u{1F527}[write]\nx\n"),
    ("", "[/end]\n!!!GADGET_END\n"),
    (
        "other",
        "<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 8}}\n</tool_call>\n",
    ),
    (
        "other",
        "<tool_call>\n{\"name\": \"write\", \"arguments\": {\"path\": \"other.txt\", \"text\": \"x\n",
    ),
    (
        "other",
        "<function=add>\n<parameter=a>\n8\n</parameter>\n</function>\n",
    ),
    ("other", "[TOOL_CALLS]add[ARGS]{\"a\": 8}\n"),
    (
        "other",
        "```json\n{\"name\": \"search\", \"arguments\": {\"query\": \"other\"}}\n```\n",
    ),
    (
        "other",
        "{\"name\": \"write\", \"arguments\": {\"path\": \"other.txt\", \"text\": \"x\"}}\n",
    ),
];
/// Text before a whole reply.
const BEGINNINGS: &[&str] = &[
    "",
    "",
    "",
    "",
    "",
    "<think>\nI plan.\n</think>\n",
    "\n <think>\n",
    "<thinking>\nI plan.\n</thinking>\n",
    "[THINK]",
    "Plan.\n</think>\n",
];
/// Values. `CALL` is a call, and each of its lines begins like the line that contains it.
const VALUES: &[&str] = &[
    "x",
    "x",
    "five words in one line",
    "first\nsecond",
    "first\n\n    indented\n",
    "",
    " a ",
    "    CALL\nafter",
    "> CALL\nafter",
    "- CALL\nafter",
    "# CALL",
    "1: CALL\nafter",
    "see CALL",
    "CALL",
    "```\ncode\n```",
    "```\ncode\n",
    "code\n```",
    "text<|im_end|>",
    "text\n<|im_end|>",
    "text\n</tool_call>",
    "text</s>",
    "text\n\nDone, I wrote the file.",
    "END-NEAR\nafter",
    "END-NEAR\nafter",
    "  END-NEAR\nafter",
    "START-NEAR\nafter",
    "<tool_call>{\"name\": \"now\", \"arguments\": {}}</tool_call>",
    "</think>",
    "<think>",
    "007",
];
const CALLS: &[&str] = &[
    "write", "write", "write", "search", "search", "add", "now", "other",
];

/// Returns the value for this syntax, with what its capital words stand for.
fn value(random: &mut Random, syntax: Syntax) -> String {
    let (call, end, start) = match syntax {
        Syntax::Block => (
            "!!!GADGET_START:write\n!!!ARG:path\nquoted.txt\n!!!GADGET_END",
            random.pick(&["!!!GADGT_END", "!!!gadget_end", "!!!GADGET_EN\\D"]),
            random.pick(&["!!!gadget_start:write", "!!! GADGET_START:write"]),
        ),
        Syntax::Emoji => (
            "\u{1F6E0}\u{FE0F}[now]\u{1F6E0}\u{FE0F}[/end]",
            random.pick(&[
                "\u{1F6E0}\u{FE0F} [/end]",
                "[/end]",
                "\u{1F6E0}\u{FE0F}\\[/end]",
            ]),
            random.pick(&["\u{1F6E0}\u{FE0F} [write]", "\u{1F527}[write]"]),
        ),
    };
    let mut text = String::new();
    for line in random.pick(VALUES).split_inclusive('\n') {
        match line.split_once("CALL") {
            None => text += line,
            Some((prefix, rest)) => {
                text += prefix;
                // In mid-line, only the first line is.
                let next = if prefix == "see " { "" } else { prefix };
                text += &call.replace('\n', &format!("\n{next}"));
                text += rest;
            }
        }
    }
    text.replace("END-NEAR", end).replace("START-NEAR", start)
}

/// Appends a call. Returns whether it has its own end marker.
fn call(random: &mut Random, syntax: Syntax, text: &mut String) -> bool {
    let name = random.pick(CALLS);
    let value = value(random, syntax);
    let is_wrong = random.one_in(12);
    match syntax {
        Syntax::Block => {
            let id = random.pick(&["", "", "", "", ":a", ":b"]);
            *text += "!!!GADGET_START:";
            *text += name;
            *text += id;
            *text += "\n";
            let arguments = match name {
                _ if is_wrong => format!("!!!ARG:pth\n{value}\n"),
                "write" => format!("!!!ARG:path\na.txt\n!!!ARG:text\n{value}\n"),
                "search" => format!("!!!ARG:query\n{value}\n"),
                "add" => "!!!ARG:a\n5\n".to_owned(),
                _ => String::new(),
            };
            *text += &arguments;
        }
        Syntax::Emoji => {
            let value = serde_json::Value::from(value);
            let arguments = match name {
                _ if is_wrong => format!("[{name} many words]\n{{\"pth\": {value}}}"),
                "write" => format!("[write]\n{{\"path\": \"a.txt\", \"text\": {value}}}"),
                "search" => format!("[search]\n{{\"query\": {value}}}"),
                "add" => random
                    .pick(&["[add 5 7]", "[add 5 /]", "[add 5]\n"])
                    .to_owned(),
                _ => format!("[{name}]"),
            };
            *text += "\u{1F6E0}\u{FE0F}";
            *text += &arguments;
        }
    }
    let ends: &[&str] = match syntax {
        Syntax::Block => &[
            "!!!GADGET_END\n",
            "!!!GADGET_END\n",
            "!!!GADGET_END\n",
            "!!!GADGET_END\n",
            "!!!GADGET_END\n",
            "!!!GADGET_END\n",
            "!!!GADGET_END",
            "  !!!GADGET_END\n",
            "!!!GADGET_ENDED\n",
            "",
            "",
            "!!!gadget_end\n",
        ],
        Syntax::Emoji => &[
            "\u{1F6E0}\u{FE0F}[/end]\n",
            "\u{1F6E0}\u{FE0F}[/end]\n",
            "\u{1F6E0}\u{FE0F}[/end]\n",
            "\u{1F6E0}\u{FE0F}[/end]\n",
            "\u{1F6E0}\u{FE0F}[/end]\n",
            "\u{1F6E0}[/end]\n",
            "",
            "\u{1F6E0}\u{FE0F} [/end]\n",
        ],
    };
    let end = random.pick(ends);
    *text += end;
    end == ends[0]
}

/// Returns the reply with this number.
pub(crate) fn reply(number: u64) -> Reply {
    let fixed = FIXED.iter().copied().map(|one| (one, None));
    let native = NATIVE
        .iter()
        .map(|&(name, text, tools)| ((Syntax::Block, text, Some("stop")), Some((name, tools))));
    let place = usize::try_from(number).unwrap();
    if let Some(((syntax, text, finish), native)) = fixed.chain(native).nth(place) {
        return Reply {
            syntax,
            text: text.to_owned(),
            finish,
            is_file: false,
            has_other_format: native.is_some() || text.contains("{\"name\""),
            native,
            is_only_calls: false,
        };
    }
    let mut random = Random::new(number + 1);
    let random = &mut random;
    let syntax = if random.one_in(4) {
        Syntax::Emoji
    } else {
        Syntax::Block
    };
    let is_plain = random.one_in(3);
    let mut text = String::new();
    let mut has_other_format = false;
    let mut is_only_calls = true;
    if !is_plain {
        text += random.pick(BEGINNINGS);
    }
    for _ in 0..=random.below(3) {
        if !is_plain {
            text += random.pick(PROSE);
            if random.one_in(6) {
                let (kind, broken) = random.pick(BROKEN);
                has_other_format |= kind == "other";
                text += broken;
            }
        }
        is_only_calls &= call(random, syntax, &mut text);
    }
    if !is_plain {
        text += random.pick(PROSE);
        is_only_calls = false;
    }
    if random.one_in(8) {
        let ends: Vec<usize> = text.char_indices().map(|(at, _)| at).collect();
        text.truncate(random.pick(&ends));
        is_only_calls = false;
    }
    let finish = random.pick(&[Some("stop"), Some("stop"), Some("length"), None, None]);
    Reply {
        syntax,
        has_other_format: has_other_format || text.contains("tool_call"),
        native: None,
        is_only_calls,
        finish,
        is_file: finish.is_none() && random.one_in(2),
        text,
    }
}
