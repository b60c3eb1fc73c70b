//! A grammar for each engine.

use indexmap::IndexSet;
use plaincall_names::Engine;
use serde_json::{Map, Value, json};

use crate::grammar::Grammar;
use crate::unheld::Unheld;
use crate::{gbnf, lark, structural_tag};

impl Grammar {
    /// Returns the grammar as GBNF, for llama.cpp. `XGrammar` reads it too, as EBNF.
    pub fn gbnf(&self) -> String {
        gbnf::print(self)
    }

    /// Returns the grammar in the Lark notation of llguidance.
    pub fn lark(&self) -> String {
        lark::print(self)
    }

    /// Returns the grammar as a structural tag of `XGrammar`, for vLLM and `SGLang`. It does not exclude near misses at the
    /// beginning of a line, and has no reasoning: these servers apply a grammar after the reasoning.
    pub fn structural_tag(&self) -> Value {
        structural_tag::print(self)
    }

    /// Returns the keywords of the schemas that the grammar does not enforce in this engine. Lark and a structural tag enforce
    /// fewer lengths and patterns of strings than GBNF (`spec/grammar.md` 6).
    pub fn unheld_by(&self, engine: Engine) -> Vec<Unheld> {
        let mut all: IndexSet<Unheld> = self.unheld().iter().cloned().collect();
        let in_tag = self.limited_in_tag();
        let others = self.limits_without(|text| match engine {
            Engine::LlamaCpp => true,
            Engine::LlGuidance => self.texts.is_in_lark(text),
            Engine::Vllm | Engine::Sglang | Engine::XGrammar => in_tag.contains(&text),
        });
        all.extend(others.cloned());
        all.into_iter().collect()
    }

    /// Returns the fields of a chat request that constrain the reply. For `XGrammar` it is the structural tag itself.
    pub fn request_fields(&self, engine: Engine) -> Map<String, Value> {
        let fields = match engine {
            Engine::LlamaCpp => json!({"grammar": self.gbnf()}),
            Engine::Vllm | Engine::Sglang => json!({"response_format": self.structural_tag()}),
            Engine::XGrammar => self.structural_tag(),
            Engine::LlGuidance => json!({"structured_outputs": {"grammar": self.lark()}}),
        };
        match fields {
            Value::Object(fields) => fields,
            _ => Map::new(),
        }
    }

    /// Returns the grammar alone, in the engine's notation: GBNF, EBNF, Lark, or a structural tag as JSON.
    pub fn text(&self, engine: Engine) -> String {
        match engine {
            Engine::LlamaCpp | Engine::XGrammar => self.gbnf(),
            Engine::LlGuidance => self.lark(),
            Engine::Vllm | Engine::Sglang => self.structural_tag().to_string(),
        }
    }
}
