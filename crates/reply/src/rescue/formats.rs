//! The formats in which calls are rescued, as data (`spec/gateway.md` 11.1).

use plaincall_names::Format as F;

/// A step of a format. Steps are read one after another, with white space between.
#[derive(Clone, Copy, Debug)]
pub(super) enum Step {
    /// This text.
    Text(&'static str),
    /// This text, or nothing.
    Maybe(&'static str),
    /// These steps, once or more.
    Many(&'static [Step]),
    /// The name of a tool, perhaps with the number of the call.
    Name,
    /// The id of a call, or nothing.
    Id,
    /// A JSON object with the arguments of the tool named before.
    Arguments,
    /// An object with the arguments of the tool named before, whose keys have no quotes.
    Loose,
    /// A JSON object or list with calls.
    Calls,
    /// A JSON object with a list of calls, `tool_calls`.
    CallList,
    /// A call with its parameters between tags.
    Tagged(&'static Tagged),
    /// A call in Python, or a list of them.
    Python,
    /// A code block with these steps, and the line that closes it.
    Block(&'static [Step]),
}

/// The texts of a call with its parameters between tags.
#[derive(Debug)]
pub(super) struct Tagged {
    /// The texts around the name of the tool. It ends with white space if the second one is empty.
    pub(super) name: [&'static str; 2],
    /// The texts around the name of a parameter.
    pub(super) key: [&'static str; 2],
    /// The texts that may precede a value.
    pub(super) begins: &'static [&'static str],
    /// The text after a value.
    pub(super) value_end: &'static str,
    pub(super) end: &'static str,
}

const FUNCTION: &Tagged = &Tagged {
    name: ["<function=", ">"],
    key: ["<parameter=", ">"],
    begins: &[""],
    value_end: "</parameter>",
    end: "</function>",
};
const INVOKE: &Tagged = &Tagged {
    name: ["<invoke name=", ">"],
    key: ["<parameter name=", ">"],
    begins: &[""],
    value_end: "</parameter>",
    end: "</invoke>",
};
const STEPTML: &Tagged = &Tagged {
    name: ["<steptml:invoke name=", ">"],
    key: ["<steptml:parameter name=", ">"],
    begins: &[""],
    value_end: "</steptml:parameter>",
    end: "</steptml:invoke>",
};
/// The texts that precede a value that is a string, and one that is JSON.
pub(super) const STRING: &str = "string=\"true\">";
pub(super) const NOT_STRING: &str = "string=\"false\">";
const DSML: &Tagged = &Tagged {
    name: ["<\u{FF5C}DSML\u{FF5C}invoke name=", ">"],
    key: ["<\u{FF5C}DSML\u{FF5C}parameter name=\"", "\""],
    begins: &[STRING, NOT_STRING, ">"],
    value_end: "</\u{FF5C}DSML\u{FF5C}parameter>",
    end: "</\u{FF5C}DSML\u{FF5C}invoke>",
};
const GLM: &Tagged = &Tagged {
    name: ["", ""],
    key: ["<arg_key>", "</arg_key>"],
    begins: &["<arg_value>"],
    value_end: "</arg_value>",
    end: "</tool_call>",
};
const HUNYUAN: &Tagged = &Tagged {
    name: ["<tool_call>", "<tool_sep>"],
    ..*GLM
};

use Step::{
    Arguments, Block, CallList, Calls, Id, Loose, Many, Maybe, Name, Python, Tagged as Tags, Text,
};

const KIMI: &[Step] = &[
    Text("<|tool_call_begin|>"),
    Name,
    Text("<|tool_call_argument_begin|>"),
    Arguments,
    Text("<|tool_call_end|>"),
];
const DEEPSEEK_BEGIN: Step = Text("<\u{FF5C}tool\u{2581}calls\u{2581}begin\u{FF5C}>");
const DEEPSEEK_END: Step = Text("<\u{FF5C}tool\u{2581}calls\u{2581}end\u{FF5C}>");
const DEEPSEEK_V3: &[Step] = &[
    Text("<\u{FF5C}tool\u{2581}call\u{2581}begin\u{FF5C}>"),
    Text("function<\u{FF5C}tool\u{2581}sep\u{FF5C}>"),
    Name,
    Text("```json"),
    Arguments,
    Text("```"),
    Text("<\u{FF5C}tool\u{2581}call\u{2581}end\u{FF5C}>"),
];
const DEEPSEEK_V31: &[Step] = &[
    Text("<\u{FF5C}tool\u{2581}call\u{2581}begin\u{FF5C}>"),
    Name,
    Text("<\u{FF5C}tool\u{2581}sep\u{FF5C}>"),
    Arguments,
    Text("<\u{FF5C}tool\u{2581}call\u{2581}end\u{FF5C}>"),
];
const STEP: &[Step] = &[
    Text("<\u{FF5C}tool_call_begin\u{FF5C}>"),
    Maybe("function"),
    Maybe("<\u{FF5C}tool_sep\u{FF5C}>"),
    Tags(STEPTML),
    Text("<\u{FF5C}tool_call_end\u{FF5C}>"),
    Maybe("<\u{FF5C}tool_sep\u{FF5C}>"),
];
const TOOL_CALLS: &[Step] = &[Text("<tool_calls>"), Many(&[Calls]), Text("</tool_calls>")];

/// The formats. A format may have several rows.
#[rustfmt::skip]
pub(super) const FORMATS: &[(F, &[Step])] = &[
    (F::Hermes, &[Text("<tool_call>"), Many(&[Calls]), Text("</tool_call>")]),
    (F::Hermes, &[Text("<function_call>"), Calls, Text("</function_call>")]),
    (F::Mistral, &[Text("[TOOL_CALLS]"), Calls]),
    (F::Mistral, &[Text("[TOOL_CALLS]"), Name, Maybe("[ARGS]"), Arguments]),
    (F::Mistral, &[Text("[TOOL_CALLS]"), Name, Text("[CALL_ID]"), Id, Text("[ARGS]"), Arguments]),
    (F::Function, &[Text("<tool_call>"), Tags(FUNCTION), Text("</tool_call>")]),
    (F::Function, &[Tags(FUNCTION)]),
    (F::Fenced, &[Block(&[Calls])]),
    (F::Json, &[Calls]),
    (F::Granite, &[Text("<|tool_call|>"), Calls]),
    (F::Llama, &[Text("<|python_tag|>"), Calls]),
    (F::Kimi, &[Text("<|tool_calls_section_begin|>"), Many(KIMI), Text("<|tool_calls_section_end|>")]),
    (F::Kimi, KIMI),
    (F::Deepseek, &[DEEPSEEK_BEGIN, Many(DEEPSEEK_V3), DEEPSEEK_END]),
    (F::Deepseek, &[DEEPSEEK_BEGIN, Many(DEEPSEEK_V31), DEEPSEEK_END]),
    (F::Deepseek, DEEPSEEK_V3),
    (F::Deepseek, DEEPSEEK_V31),
    (F::Dsml, &[Text("<\u{FF5C}DSML\u{FF5C}function_calls>"), Many(&[Tags(DSML)]), Text("</\u{FF5C}DSML\u{FF5C}function_calls>")]),
    (F::Dsml, &[Text("<\u{FF5C}DSML\u{FF5C}tool_calls>"), Many(&[Tags(DSML)]), Text("</\u{FF5C}DSML\u{FF5C}tool_calls>")]),
    (F::Dsml, &[Tags(DSML)]),
    (F::Glm, &[Text("<tool_call>"), Tags(GLM)]),
    (F::Minimax, &[Text("<minimax:tool_call>"), Many(&[Tags(INVOKE)]), Text("</minimax:tool_call>")]),
    (F::Minimax, TOOL_CALLS),
    (F::Invoke, &[Text("<function_calls>"), Many(&[Tags(INVOKE)]), Text("</function_calls>")]),
    (F::Invoke, &[Tags(INVOKE)]),
    (F::Harmony, &[
        Maybe("<|start|>"), Maybe("assistant"), Maybe("<|channel|>"), Maybe("commentary"), Maybe("analysis"), Text("to="), Name,
        Maybe("<|channel|>"), Maybe("commentary"), Maybe("<|constrain|>"), Maybe("json"), Maybe("<|message|>"), Arguments,
    ]),
    (F::Gemma, &[Block(&[Many(&[Python])])]),
    (F::Gemma, &[Text("<|tool_call>call:"), Name, Loose, Text("<tool_call|>")]),
    (F::Gemma, &[Text("<start_function_call>call:"), Name, Loose, Text("<end_function_call>")]),
    (F::Pythonic, &[Python]),
    (F::Pythonic, &[Text("<|python_start|>"), Python, Text("<|python_end|>")]),
    (F::Pythonic, &[Text("<function_calls>"), Many(&[Python]), Text("</function_calls>")]),
    (F::Lfm2, &[Text("<|tool_call_start|>"), Python, Text("<|tool_call_end|>")]),
    (F::Lfm2, &[Text("<|tool_call_start|>"), Calls, Text("<|tool_call_end|>")]),
    (F::Cohere, &[Text("<|START_ACTION|>"), Calls, Text("<|END_ACTION|>")]),
    (F::Phi, &[Text("functools"), Calls]),
    (F::Phi, &[Text("<|tool_call|>"), Calls]),
    (F::Nemotron, &[Text("<TOOLCALL>"), Calls, Text("</TOOLCALL>")]),
    (F::Step, &[Text("<\u{FF5C}tool_calls_begin\u{FF5C}>"), Many(STEP), Text("<\u{FF5C}tool_calls_end\u{FF5C}>")]),
    (F::Hunyuan, TOOL_CALLS),
    (F::Hunyuan, &[Text("<tool_calls>"), Many(&[Tags(HUNYUAN)]), Text("</tool_calls>")]),
    (F::Internlm, &[Text("<|action_start|>"), Text("<|plugin|>"), Calls, Text("<|action_end|>")]),
    (F::ToolRequest, &[Text("[TOOL_REQUEST]"), Calls, Text("[END_TOOL_REQUEST]")]),
    (F::ToolCalls, &[CallList]),
    (F::ToolCalls, &[Block(&[CallList])]),
    (F::Seed, &[Text("<seed:tool_call>"), Many(&[Tags(FUNCTION)]), Text("</seed:tool_call>")]),
    (F::Jamba, TOOL_CALLS),
    (F::CommandR, &[Text("Action:"), Text("```json"), Calls, Text("```")]),
];
