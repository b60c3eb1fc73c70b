//! The formats in which models write calls, by name and by model (`spec/gateway.md` 11.1).

use serde::{Deserialize, Serialize};

/// A format in which models write calls (`spec/gateway.md` 11.1).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[cfg_attr(feature = "schemars", derive(schemars::JsonSchema))]
#[serde(rename_all = "snake_case")]
#[non_exhaustive]
pub enum Format {
    /// `<tool_call>` and JSON: Hermes, Qwen and others.
    Hermes,
    /// `[TOOL_CALLS]`: Mistral.
    Mistral,
    /// `<function=…>`: Qwen3-Coder, Llama 3.1 and others.
    Function,
    /// JSON in a code block.
    Fenced,
    /// JSON alone.
    Json,
    /// `<|tool_call|>`: Granite 3.
    Granite,
    /// `<|python_tag|>`: Llama 3.
    Llama,
    /// `<|tool_call_begin|>`: Kimi K2.
    Kimi,
    /// `<｜tool▁calls▁begin｜>`: `DeepSeek` V3, R1 and V3.1.
    Deepseek,
    /// `<｜DSML｜…>`: `DeepSeek` V3.2 and V4.
    Dsml,
    /// `<arg_key>`: GLM 4.5 and later.
    Glm,
    /// `<minimax:tool_call>`: `MiniMax`.
    Minimax,
    /// `<invoke name=…>`: Claude and others.
    Invoke,
    /// `to=functions.…`: gpt-oss.
    Harmony,
    /// A code block `tool_code`, and `call:…{…}`: Gemma.
    Gemma,
    /// `[name(key=value)]`: Llama 4, Olmo 3 and others.
    Pythonic,
    /// `<|tool_call_start|>`: LFM2.
    Lfm2,
    /// `<|START_ACTION|>`: Command R7B and Command A.
    Cohere,
    /// `functools[…]`, `<|tool_call|>`: Phi-4.
    Phi,
    /// `<TOOLCALL>`: Nemotron.
    Nemotron,
    /// `<steptml:invoke …>`: Step 3.
    Step,
    /// `<tool_calls>`: Hunyuan.
    Hunyuan,
    /// `<|action_start|><|plugin|>`: `InternLM`.
    Internlm,
    /// `[TOOL_REQUEST]`: LM Studio, for models without a format.
    ToolRequest,
    /// `{"tool_calls": […]}`.
    ToolCalls,
    /// `<seed:tool_call>`: Seed-OSS.
    Seed,
    /// `<tool_calls>`: Jamba.
    Jamba,
    /// `Action:` and a code block: Command R.
    CommandR,
}

crate::named!(Format {
    Hermes = "hermes",
    Mistral = "mistral",
    Function = "function",
    Fenced = "fenced",
    Json = "json",
    Granite = "granite",
    Llama = "llama",
    Kimi = "kimi",
    Deepseek = "deepseek",
    Dsml = "dsml",
    Glm = "glm",
    Minimax = "minimax",
    Invoke = "invoke",
    Harmony = "harmony",
    Gemma = "gemma",
    Pythonic = "pythonic",
    Lfm2 = "lfm2",
    Cohere = "cohere",
    Phi = "phi",
    Nemotron = "nemotron",
    Step = "step",
    Hunyuan = "hunyuan",
    Internlm = "internlm",
    ToolRequest = "tool_request",
    ToolCalls = "tool_calls",
    Seed = "seed",
    Jamba = "jamba",
    CommandR = "command_r",
});

use Format as F;

/// Parts of the names of models, in lower case, and the formats that these models were trained on.
const MODELS: &[(&str, &[Format])] = &[
    ("aya", &[F::Cohere, F::CommandR]),
    ("chatglm", &[F::Glm]),
    ("claude", &[F::Invoke]),
    ("cohere", &[F::Cohere, F::CommandR]),
    ("command", &[F::Cohere, F::CommandR]),
    ("deepseek", &[F::Deepseek, F::Dsml]),
    ("gemma", &[F::Gemma]),
    ("glm", &[F::Glm]),
    ("gpt-oss", &[F::Harmony]),
    ("granite", &[F::Granite, F::Hermes]),
    ("hermes", &[F::Hermes]),
    ("hunyuan", &[F::Hunyuan]),
    ("internlm", &[F::Internlm]),
    ("interns", &[F::Internlm]),
    ("intern-s", &[F::Internlm]),
    ("jamba", &[F::Jamba]),
    ("kimi", &[F::Kimi]),
    ("lfm", &[F::Lfm2]),
    ("llama", &[F::Llama, F::Pythonic, F::Function]),
    ("minimax", &[F::Minimax, F::Invoke]),
    ("stral", &[F::Mistral]),
    ("xtral", &[F::Mistral]),
    ("nemotron", &[F::Nemotron, F::Hermes, F::Function]),
    ("olmo", &[F::Pythonic]),
    ("phi", &[F::Phi]),
    ("qwen", &[F::Hermes, F::Function]),
    ("qwq", &[F::Hermes]),
    ("seed", &[F::Seed]),
    ("step", &[F::Step, F::Function]),
    ("toolace", &[F::Pythonic]),
];
/// The length of names that count only at the beginning of a word.
const SHORT: usize = 4;

impl Format {
    /// Returns the formats of a model with this name. Every model has JSON, alone and in a code block. A model with an unknown
    /// name has `hermes`, `mistral` and `function` too.
    pub fn of_model(name: &str) -> Vec<Self> {
        let name = name.to_lowercase();
        let is_in = |part: &str| {
            name.match_indices(part).any(|(at, _)| {
                let before = name.get(..at).unwrap_or_default();
                let is_begin = !before.ends_with(char::is_alphabetic);
                // `ollama` is the name of a server.
                let is_server = part == "llama" && before.ends_with('o');
                is_begin || (part.len() > SHORT && !is_server)
            })
        };
        let known = MODELS.iter().filter(|(part, _)| is_in(part));
        let mut formats: Vec<Self> = known.flat_map(|(_, formats)| *formats).copied().collect();
        if formats.is_empty() {
            formats.extend([Self::Hermes, Self::Mistral, Self::Function]);
        }
        formats.extend([Self::Fenced, Self::Json]);
        formats
    }
}
