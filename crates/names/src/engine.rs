//! The inference engines that accept a grammar.

/// An inference engine that accepts a grammar.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
