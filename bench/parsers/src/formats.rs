//! The payload in each format.
//!
//! This includes the text that a format's template puts around a call, such as the line ends between its tags. The
//! text between two calls is that of the payload, unchanged.

use serde_json::json;

use crate::logical::Logical;
use crate::payload::Part;

/// A format for texts and calls.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Block,
    Emoji,
    /// One JSON array of texts and objects.
    Json,
    /// `<tool_call>` around JSON, as used by Hermes, Qwen 2.5 and Qwen 3.
    ToolCallJson,
    /// `<tool_call>`, `<function=…>` and `<parameter=…>`, as used by Qwen 3 Coder.
    Qwen3Coder,
    KimiK2,
    Gemma4,
    DeepSeek31,
    /// The tags of DeepSeek V4.
    Dsml,
    Glm47,
    MinimaxM2,
    MinimaxM3,
    Hunyuan4,
    Cohere,
    Llama,
}

impl Format {
    /// Returns the whole text.
    pub fn write(self, logical: &Logical) -> String {
        if self == Self::Json {
            return json_array(&logical.parts);
        }
        let mut text = String::new();
        let mut count = 0;
        for part in &logical.parts {
            match part {
                Part::Text(words) => text.push_str(words),
                Part::Call(call) => {
                    let (pointer, value) = call.values.first().cloned().unwrap_or_default();
                    text.push_str(&self.call(&call.name, &pointer, &value, count));
                    count += 1;
                }
            }
        }
        text
    }

    fn call(self, name: &str, key: &str, value: &str, number: usize) -> String {
        let arguments = json!({ key: value });
        match self {
            Self::Block => format!("!!!GADGET_START:{name}\n!!!ARG:{key}\n{value}\n!!!GADGET_END"),
            Self::Emoji => format!("🛠️[{name}]\n{value}🛠️[/end]"),
            Self::Json => String::new(),
            Self::ToolCallJson => {
                let call = format!("{{\"name\": \"{name}\", \"arguments\": {arguments}}}");
                format!("<tool_call>\n{call}\n</tool_call>")
            }
            Self::Qwen3Coder => format!(
                "<tool_call>\n<function={name}>\n<parameter={key}>\n{value}\n</parameter>\n</function>\n</tool_call>"
            ),
            Self::KimiK2 => format!(
                "<|tool_calls_section_begin|><|tool_call_begin|>functions.{name}:{number}\
                 <|tool_call_argument_begin|>{arguments}<|tool_call_end|><|tool_calls_section_end|>"
            ),
            Self::Gemma4 => {
                format!("<|tool_call>call:{name}{{{key}:<|\"|>{value}<|\"|>}}<tool_call|>")
            }
            Self::DeepSeek31 => format!(
                "<｜tool▁calls▁begin｜><｜tool▁call▁begin｜>{name}<｜tool▁sep｜>{arguments}\
                 <｜tool▁call▁end｜><｜tool▁calls▁end｜>"
            ),
            Self::Dsml => format!(
                "<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"{name}\">\n\
                 <｜DSML｜parameter name=\"{key}\" string=\"true\">{value}</｜DSML｜parameter>\n\
                 </｜DSML｜invoke>\n</｜DSML｜tool_calls>"
            ),
            Self::Glm47 => format!(
                "<tool_call>{name}<arg_key>{key}</arg_key><arg_value>{value}</arg_value></tool_call>"
            ),
            Self::MinimaxM2 => format!(
                "<minimax:tool_call>\n<invoke name=\"{name}\">\n<parameter name=\"{key}\">{value}</parameter>\n\
                 </invoke>\n</minimax:tool_call>"
            ),
            Self::MinimaxM3 => format!(
                "]<]minimax[>[<tool_call>\n]<]minimax[>[<invoke name=\"{name}\">\
                 ]<]minimax[>[<{key}>{value}]<]minimax[>[</{key}>]<]minimax[>[</invoke>\n]<]minimax[>[</tool_call>"
            ),
            Self::Hunyuan4 => format!(
                "<tool_calls><tool_call>{name}<arg_key>{key}</arg_key><arg_value>{value}</arg_value></tool_call>\
                 </tool_calls>"
            ),
            Self::Cohere => format!(
                "<|START_ACTION|>\n{{\"tool_name\": \"{name}\", \"parameters\": {arguments}}}\n<|END_ACTION|>"
            ),
            Self::Llama => {
                format!("<|python_tag|>{{\"name\": \"{name}\", \"parameters\": {arguments}}}")
            }
        }
    }
}

fn json_array(parts: &[Part]) -> String {
    let parts = parts.iter().map(|part| match part {
        Part::Text(text) => json!(text),
        Part::Call(call) => {
            let (key, value) = call.values.first().cloned().unwrap_or_default();
            json!({"name": call.name, "arguments": {key: value}})
        }
    });
    serde_json::Value::Array(parts.collect()).to_string()
}
