//! The endpoints of the gateway: their paths, their methods and the format of their errors.

use http::HeaderMap;
use plaincall_wire::paths::{self, COUNT_TOKENS, MODELS};

use crate::api::ClientApi;

/// The path of one model in reports.
const MODEL: &str = "/v1/models/NAME";
const MONITORING: [(&str, Endpoint); 3] = [
    ("/health", Endpoint::Health),
    ("/ready", Endpoint::Ready),
    ("/metrics", Endpoint::Metrics),
];
/// The reported name of unknown paths, which could be anything, even a secret.
pub(super) const UNKNOWN: &str = "other";
/// The header that only clients of Anthropic's API send.
const ANTHROPIC_VERSION: &str = "anthropic-version";

/// The beginning of the paths of Ollama's API.
pub(super) const OLLAMA: &str = "/api/";
pub(super) const TAGS: &str = "/api/tags";
pub(super) const SHOW: &str = "/api/show";
const VERSION: &str = "/api/version";

/// The purpose of a request.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Endpoint {
    /// A request of an API, whose reply may have calls.
    Ask(ClientApi),
    CountTokens,
    /// The list of models.
    Models,
    /// One model.
    Model,
    /// A request that is forwarded to the model server, and its path.
    Forwarded(&'static str),
    /// A request of Ollama's API about models or the version, and its path.
    Ollama(&'static str),
    Health,
    Ready,
    Metrics,
}

impl Endpoint {
    /// Returns the endpoint with this path.
    pub(super) fn of(path: &str) -> Option<Self> {
        let ask = ClientApi::of_path(path).map(Self::Ask);
        let mut others = paths::OTHERS.into_iter().chain(paths::OLLAMA_OTHERS);
        let mut forwarded = || others.find(|known| *known == path);
        let ollama = || {
            [TAGS, SHOW, VERSION]
                .into_iter()
                .find(|known| *known == path)
        };
        let monitoring = || MONITORING.into_iter().find(|(known, _)| *known == path);
        match path.strip_prefix(MODELS) {
            Some("") => Some(Self::Models),
            Some(name) if name.len() > 1 && name.starts_with('/') => Some(Self::Model),
            _ if path == COUNT_TOKENS => Some(Self::CountTokens),
            _ => ask
                .or_else(|| forwarded().map(Self::Forwarded))
                .or_else(|| ollama().map(Self::Ollama))
                .or_else(|| monitoring().map(|(_, endpoint)| endpoint)),
        }
    }

    /// Returns its methods, separated by commas.
    pub(super) fn methods(self) -> &'static str {
        match self {
            Self::Ask(_) | Self::CountTokens | Self::Forwarded(_) | Self::Ollama(SHOW) => "POST",
            _ => "GET,HEAD",
        }
    }

    /// Returns the path for reports, with `NAME` instead of a model's name.
    pub(super) fn path(self) -> &'static str {
        match self {
            Self::Ask(api) => api.path(),
            Self::CountTokens => COUNT_TOKENS,
            Self::Models => MODELS,
            Self::Model => MODEL,
            Self::Forwarded(path) | Self::Ollama(path) => path,
            Self::Health | Self::Ready | Self::Metrics => UNKNOWN,
        }
    }

    /// Returns the API in whose format errors are sent. Clients of both APIs use the same path for models.
    pub(super) fn api(self, headers: &HeaderMap) -> ClientApi {
        match self {
            Self::Ask(api) => api,
            Self::CountTokens => ClientApi::Messages,
            Self::Models | Self::Model if is_anthropic(headers) => ClientApi::Messages,
            Self::Ollama(_) => ClientApi::Ollama,
            Self::Forwarded(path) if path.starts_with(OLLAMA) => ClientApi::Ollama,
            _ => ClientApi::Chat,
        }
    }

    /// Returns a description of all endpoints for error messages.
    pub(super) fn list() -> String {
        let asked = ClientApi::ALL.map(ClientApi::path).join(", ");
        let forwarded = [&paths::OTHERS[..], &paths::OLLAMA_OTHERS]
            .concat()
            .join(", ");
        format!(
            "The gateway serves POST {asked}, {COUNT_TOKENS}, {SHOW}, GET {TAGS}, {VERSION}, GET /health, /ready and /metrics, and forwards GET {MODELS}, {MODEL} and POST {forwarded}"
        )
    }
}

/// Returns the API of an unknown path. The path decides, otherwise the header of Anthropic's clients.
pub(super) fn api_of_unknown(path: &str, headers: &HeaderMap) -> ClientApi {
    if path.starts_with(OLLAMA) {
        return ClientApi::Ollama;
    }
    let default = if is_anthropic(headers) {
        ClientApi::Messages
    } else {
        ClientApi::Chat
    };
    ClientApi::above(path).unwrap_or(default)
}

/// Returns whether a client uses Anthropic's API.
pub(super) fn is_anthropic(headers: &HeaderMap) -> bool {
    headers.contains_key(ANTHROPIC_VERSION)
}
