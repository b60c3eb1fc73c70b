//! The inference engines that accept a grammar.

use indexmap::IndexSet;
use serde_json::{Map, Value, json};

use super::{Grammar, Unheld};

/// An inference engine that accepts a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Engine {
    /// llama.cpp's server.
    LlamaCpp,
    /// vLLM with its default backend.
    Vllm,
    /// `SGLang`.
    Sglang,
    /// `XGrammar` as a library.
    XGrammar,
    /// llguidance, as a backend of vLLM or as a library.
    LlGuidance,
}

crate::named!(Engine {
    LlamaCpp = "llama.cpp",
    Vllm = "vllm",
    Sglang = "sglang",
    XGrammar = "xgrammar",
    LlGuidance = "llguidance",
});

impl Engine {
    /// Returns the engine of a model by its server's list of models: the `id` and `owned_by` of each. If the list does not have
    /// the model, the first known engine counts.
    ///
    /// ```
    /// use plaincall_call::grammar::Engine;
    ///
    /// let list = [("small", "me"), ("large", "vllm")];
    /// assert_eq!(Engine::from_list(list, "small"), None);
    /// assert_eq!(Engine::from_list(list, "other"), Some(Engine::Vllm));
    /// ```
    pub fn from_list<'l>(
        list: impl IntoIterator<Item = (&'l str, &'l str)>,
        model: &str,
    ) -> Option<Self> {
        let mut first = None;
        for (id, owner) in list {
            let engine = match owner {
                "llamacpp" => Some(Self::LlamaCpp),
                "vllm" => Some(Self::Vllm),
                "sglang" => Some(Self::Sglang),
                _ => None,
            };
            if id == model {
                return engine;
            }
            first = first.or(engine);
        }
        first
    }

    /// Returns the keywords of the schemas that the grammar does not enforce in this engine. Lark and a structural tag enforce
    /// fewer lengths and patterns of strings than GBNF (`spec/grammar.md` 6).
    pub fn unheld(self, grammar: &Grammar) -> Vec<Unheld> {
        let mut all: IndexSet<Unheld> = grammar.unheld().iter().cloned().collect();
        let in_tag = grammar.limited_in_tag();
        let others = grammar.limits_without(|text| match self {
            Self::LlamaCpp => true,
            Self::LlGuidance => grammar.texts.is_in_lark(text),
            Self::Vllm | Self::Sglang | Self::XGrammar => in_tag.contains(&text),
        });
        all.extend(others.cloned());
        all.into_iter().collect()
    }

    /// Returns the fields of a chat request that constrain the reply. For `XGrammar` it is the structural tag itself.
    pub fn request_fields(self, grammar: &Grammar) -> Map<String, Value> {
        let fields = match self {
            Self::LlamaCpp => json!({"grammar": grammar.gbnf()}),
            Self::Vllm | Self::Sglang => json!({"response_format": grammar.structural_tag()}),
            Self::XGrammar => grammar.structural_tag(),
            Self::LlGuidance => json!({"structured_outputs": {"grammar": grammar.lark()}}),
        };
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// Returns the grammar alone, in the engine's notation: GBNF, EBNF, Lark, or a structural tag as JSON.
    pub fn text(self, grammar: &Grammar) -> String {
        match self {
            Self::LlamaCpp | Self::XGrammar => grammar.gbnf(),
            Self::LlGuidance => grammar.lark(),
            Self::Vllm | Self::Sglang => grammar.structural_tag().to_string(),
        }
    }
}
