//! The formats in which calls are rescued, as data (`spec/gateway.md` 11.1).

/// A step of a format. Steps are matched one after another; the next character decides.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// This text.
    Text(&'static str),
    /// Any number of these characters.
    Skip(&'static [char]),
    /// The steps for the next character. `ANY` is any other; without it, the text is not a call.
    One(&'static [(char, &'static [Step])]),
    /// The name of a tool.
    Name,
    /// The name of a parameter.
    Key,
    /// The text of a parameter, and this text after it.
    Value(&'static str),
    /// A JSON object with the arguments of the tool named before.
    Arguments,
    /// A JSON object or list with calls.
    Calls,
    /// The rest of the line that opens a code block, after the first three characters.
    FenceInfo,
    /// The line that closes the code block, and empty lines before it. The call ends here.
    FenceClose,
    /// The end of the line. The call may end here.
    End,
}

use Step::{Arguments, Calls, End, FenceClose, FenceInfo, Key, Name, One, Skip, Text, Value};

impl Step {
    /// Returns whether this character is part of a name or key.
    pub(super) fn is_in_part(self, c: char) -> bool {
        match self {
            Name => !c.is_whitespace() && !c.is_control() && !"\"'`<>{}[](),".contains(c),
            _ => !"<>\n".contains(c),
        }
    }
}

/// Any character for which there are no steps.
pub(super) const ANY: char = '\0';

/// White space that does not end a line.
pub(super) const BLANKS: [char; 3] = [' ', '\t', '\r'];

const BLANK: Step = Skip(&[' ', '\t']);
const SPACE: Step = Skip(&[' ', '\t', '\n', '\r', '\u{C}']);

const TOOL_CALL: &str = "<tool_call>";
const END_TOOL_CALL: &str = "</tool_call>";
const FUNCTION: &str = "<function=";
const TOOL_CALLS: &str = "[TOOL_CALLS]";

/// The texts that begin a call, and the steps after each. None of these texts begins another one.
pub(super) const FORMATS: &[(&str, &[Step])] = &[
    // Hermes, Qwen and others. Qwen3-Coder writes a function in it.
    (TOOL_CALL, &IN_TOOL_CALL),
    (
        "<function_call>",
        &[SPACE, Calls, SPACE, Text("</function_call>"), End],
    ),
    // Qwen3-Coder, which often forgets the tag before it, and Llama 3.1.
    (FUNCTION, &AFTER_FUNCTION),
    // Mistral.
    (TOOL_CALLS, &IN_TOOL_CALLS),
    // Granite.
    ("<|tool_call|>", &[SPACE, Calls, End]),
    // Llama.
    ("<|python_tag|>", &[SPACE, Calls, End]),
    ("```", FENCE),
    ("~~~", FENCE),
];

/// JSON without a text that begins it.
pub(super) const BARE: &[Step] = &[BLANK, Calls, End];

const FENCE: &[Step] = &[
    FenceInfo,
    SPACE,
    Calls,
    Skip(&BLANKS),
    Text("\n"),
    FenceClose,
];

static IN_TOOL_CALL: [Step; 6] = [
    SPACE,
    One(&[
        ('{', &MORE_CALLS),
        ('[', &[Calls]),
        ('<', &[Text(FUNCTION), One(&[(ANY, &IN_FUNCTION)])]),
    ]),
    SPACE,
    Text(END_TOOL_CALL),
    BLANK,
    One(&[
        // Another call on the same line.
        ('<', &[Text(TOOL_CALL), One(&[(ANY, &IN_TOOL_CALL)])]),
        (ANY, &[End]),
    ]),
];

/// One call after another.
static MORE_CALLS: [Step; 3] = [Calls, SPACE, One(&[('{', &MORE_CALLS), (ANY, &[])])];

static AFTER_FUNCTION: [Step; 6] = [
    One(&[(ANY, &IN_FUNCTION)]),
    BLANK,
    One(&[('<', &[Text(END_TOOL_CALL)]), (ANY, &[])]),
    End,
    SPACE,
    One(&[('<', &[Text(END_TOOL_CALL), End]), (ANY, &[])]),
];

static IN_FUNCTION: [Step; 4] = [
    Name,
    Text(">"),
    SPACE,
    One(&[
        ('{', &[Arguments, SPACE, Text("</function>")]),
        ('<', &PARAMETERS),
    ]),
];

static PARAMETERS: [Step; 2] = [
    Text("<"),
    One(&[('/', &[Text("/function>")]), ('p', &PARAMETER)]),
];

static PARAMETER: [Step; 6] = [
    Text("parameter="),
    Key,
    Text(">"),
    Value("</parameter>"),
    SPACE,
    One(&[('<', &PARAMETERS)]),
];

/// A list of calls, or a name and its arguments.
static IN_TOOL_CALLS: [Step; 4] = [
    SPACE,
    One(&[
        ('[', &[Calls]),
        ('{', &[Calls]),
        (ANY, &[Name, One(&[('[', &TAGS), (ANY, &[])]), Arguments]),
    ]),
    BLANK,
    One(&[
        ('[', &[Text(TOOL_CALLS), One(&[(ANY, &IN_TOOL_CALLS)])]),
        (ANY, &[End]),
    ]),
];

/// Between the name and the arguments.
static TAGS: [Step; 2] = [
    Text("["),
    One(&[
        ('A', &[Text("ARGS]")]),
        ('C', &[Text("CALL_ID]"), Value("[ARGS]")]),
    ]),
];
