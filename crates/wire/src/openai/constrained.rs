//! Requests whose replies a grammar constrains.

use plaincall_names::Engine;

/// Fields of a chat request with which it constrains its reply itself. Such a request gets no grammar.
pub const REQUEST_FIELDS: [&str; 11] = [
    "ebnf",
    "grammar",
    "guided_choice",
    "guided_grammar",
    "guided_json",
    "guided_regex",
    "json_schema",
    "regex",
    "response_format",
    "structural_tag",
    "structured_outputs",
];

/// The statuses with which servers reject a grammar.
pub const REJECTIONS: [u16; 4] = [400, 422, 500, 501];

/// Returns the engine of a model by its server's list of models: the `id` and `owned_by` of each. If the list does not have
/// the model, the first known engine counts.
///
/// ```
/// use plaincall_names::Engine;
/// use plaincall_wire::openai::constrained::engine_of;
///
/// let list = [("small", "me"), ("large", "vllm")];
/// assert_eq!(engine_of(list, "small"), None);
/// assert_eq!(engine_of(list, "other"), Some(Engine::Vllm));
/// ```
pub fn engine_of<'l>(
    list: impl IntoIterator<Item = (&'l str, &'l str)>,
    model: &str,
) -> Option<Engine> {
    let mut first = None;
    for (id, owner) in list {
        let engine = match owner {
            "llamacpp" => Some(Engine::LlamaCpp),
            "vllm" => Some(Engine::Vllm),
            "sglang" => Some(Engine::Sglang),
            _ => None,
        };
        if id == model {
            return engine;
        }
        first = first.or(engine);
    }
    first
}
