//! The formats in which calls are rescued, as data (`spec/gateway.md` 11.1).

/// A step of a format. Steps are matched one after another; the next character decides.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// This text.
    Text(&'static str),
    /// White space, perhaps none.
    Space,
    /// Blanks, perhaps none.
    Blank,
    /// The name of a tool.
    Name,
    /// The name of a parameter, up to `>`.
    Key,
    /// The text of a parameter, up to this text.
    Value(&'static str),
    /// A JSON object or list with calls.
    Calls,
    /// A JSON object with the arguments of the tool named before.
    Arguments,
    /// The rest of the line of a code fence, after its first three characters.
    FenceInfo,
    /// The line end and the beginning of the line that closes a code fence.
    FenceClose,
    /// The steps for the next character. `ANY` is any other; without it, the text is not a call.
    One(&'static [(char, &'static [Step])]),
    /// The steps for the next character, if it is this one.
    If(char, &'static [Step]),
    /// The end of the line. The call may end here.
    End,
}

use Step::{
    Arguments, Blank, Calls, End, FenceClose, FenceInfo, If, Key, Name, One, Space, Text, Value,
};

/// Any character for which there are no steps.
pub(super) const ANY: char = '\0';

/// A text that begins a call, and the steps after it.
pub(super) struct Format {
    pub(super) open: &'static str,
    pub(super) steps: &'static [Step],
}

/// A constant of its own: the reference to a static in it would be temporary in Rust 1.85.
const AFTER_FUNCTION: &[(char, &[Step])] = &[(ANY, &IN_FUNCTION)];

/// The formats with a text of their own. None of these texts begins another one.
pub(super) const FORMATS: &[Format] = &[
    // Hermes, Qwen and others. Qwen3-Coder writes a function in it.
    Format {
        open: TOOL_CALL,
        steps: &IN_TOOL_CALL,
    },
    Format {
        open: "<function_call>",
        steps: &[Space, Calls, Space, Text("</function_call>"), End],
    },
    // Qwen3-Coder, which often forgets the tag before it, and Llama 3.1.
    Format {
        open: FUNCTION,
        steps: &[
            One(AFTER_FUNCTION),
            Blank,
            If('<', &[Text(END_TOOL_CALL)]),
            End,
            Space,
            If('<', &[Text(END_TOOL_CALL), End]),
        ],
    },
    Format {
        open: TOOL_CALLS,
        steps: &IN_TOOL_CALLS,
    },
    // Granite.
    Format {
        open: "<|tool_call|>",
        steps: BARE_IN_SPACE,
    },
    // Llama.
    Format {
        open: "<|python_tag|>",
        steps: BARE_IN_SPACE,
    },
    Format {
        open: "```",
        steps: FENCE,
    },
    Format {
        open: "~~~",
        steps: FENCE,
    },
];

/// JSON without a text of its own.
pub(super) const BARE: &[Step] = &[Calls, End];
/// The rest of the line after a call in one of our own syntaxes.
pub(super) const AFTER_OWN: &[Step] = &[End];

/// The info strings of code fences that may contain a call.
pub(super) const INFOS: &[&str] = &["", "json", "tool_call", "tool_use", "function_call"];

const TOOL_CALL: &str = "<tool_call>";
const END_TOOL_CALL: &str = "</tool_call>";
const FUNCTION: &str = "<function=";
const TOOL_CALLS: &str = "[TOOL_CALLS]";

const BARE_IN_SPACE: &[Step] = &[Space, Calls, End];
const FENCE: &[Step] = &[FenceInfo, Space, Calls, FenceClose, End];

static IN_TOOL_CALL: [Step; 6] = [
    Space,
    One(&[
        ('{', &[Calls]),
        ('[', &[Calls]),
        ('<', &[Text(FUNCTION), One(&[(ANY, &IN_FUNCTION)])]),
    ]),
    Space,
    Text(END_TOOL_CALL),
    Blank,
    One(&[
        // Another call on the same line.
        ('<', &[Text(TOOL_CALL), One(&[(ANY, &IN_TOOL_CALL)])]),
        (ANY, &[End]),
    ]),
];

static IN_FUNCTION: [Step; 4] = [
    Name,
    Text(">"),
    Space,
    One(&[
        ('{', &[Arguments, Space, Text("</function>")]),
        ('<', &PARAMETERS),
    ]),
];

static PARAMETERS: [Step; 2] = [
    Text("<"),
    One(&[
        ('/', &[Text("/function>")]),
        (
            'p',
            &[
                Text("parameter="),
                Key,
                Value("</parameter>"),
                Space,
                One(&[('<', &PARAMETERS)]),
            ],
        ),
    ]),
];

/// Mistral: a list of calls, or a name and its arguments.
static IN_TOOL_CALLS: [Step; 4] = [
    Space,
    One(&[
        ('[', &[Calls]),
        ('{', &[Calls]),
        (
            ANY,
            &[
                Name,
                If(
                    '[',
                    &[
                        Text("["),
                        One(&[
                            ('A', &[Text("ARGS]")]),
                            ('C', &[Text("CALL_ID]"), Value("[ARGS]")]),
                        ]),
                    ],
                ),
                Arguments,
            ],
        ),
    ]),
    Blank,
    One(&[
        ('[', &[Text(TOOL_CALLS), One(&[(ANY, &IN_TOOL_CALLS)])]),
        (ANY, &[End]),
    ]),
];
