//! The paths of the APIs. All but those of Ollama begin with the version with which base URLs end.

/// The version of each API except Ollama's, and the beginning of its paths.
pub const VERSION: &str = "/v1";
/// `OpenAI`'s chat completions.
pub const CHAT: &str = "/v1/chat/completions";
/// `OpenAI`'s Responses API.
pub const RESPONSES: &str = "/v1/responses";
/// Anthropic's Messages.
pub const MESSAGES: &str = "/v1/messages";
/// The number of tokens of a request to Messages.
pub const COUNT_TOKENS: &str = "/v1/messages/count_tokens";
/// Ollama's chats.
pub const OLLAMA_CHAT: &str = "/api/chat";
/// The list of models, and above each model.
pub const MODELS: &str = "/v1/models";

/// The paths of requests for replies, below `/v1`.
pub const REPLIES: [&str; 3] = [CHAT, RESPONSES, MESSAGES];

/// The paths below them whose requests may have tools.
pub const BELOW_REPLIES: [&str; 4] = [
    "/v1/responses/compact",
    "/v1/responses/input_tokens",
    "/v1/messages/batches",
    COUNT_TOKENS,
];

/// The paths of other `POST` requests to models. None manages files, jobs or accounts, which a key may allow.
pub const OTHERS: [&str; 11] = [
    "/v1/audio/speech",
    "/v1/audio/transcriptions",
    "/v1/audio/translations",
    "/v1/completions",
    "/v1/embeddings",
    "/v1/images/edits",
    "/v1/images/generations",
    "/v1/images/variations",
    "/v1/moderations",
    "/v1/rerank",
    "/v1/score",
];

/// The paths of requests of Ollama's API that are forwarded to servers that have it.
pub const OLLAMA_OTHERS: [&str; 3] = ["/api/embed", "/api/embeddings", "/api/generate"];

/// Returns a path without the version: what follows the base URL of a server.
///
/// ```
/// use plaincall_wire::paths;
///
/// assert_eq!(paths::after_base(paths::CHAT), "/chat/completions");
/// ```
pub fn after_base(path: &str) -> &str {
    path.strip_prefix(VERSION).unwrap_or(path)
}
