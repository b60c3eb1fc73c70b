//! Which headers pass the gateway.

use axum::http::HeaderMap;
use axum::http::header::{AUTHORIZATION, HeaderName, RETRY_AFTER};

/// For whom an account is charged: they belong to a key.
static OF_THE_KEY: [HeaderName; 3] = [
    AUTHORIZATION,
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
];

/// What the model server may want to know of a request.
static OF_THE_REQUEST: [HeaderName; 3] = [
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

/// What of the client's headers goes to the model server; what belongs to a key only if the key is meant for it.
pub(super) fn for_upstream(of_client: &HeaderMap, with_key: bool) -> HeaderMap {
    let of_key = OF_THE_KEY.iter().filter(|_| with_key);
    let mut headers = HeaderMap::new();
    for name in OF_THE_REQUEST.iter().chain(of_key) {
        if let Some(value) = of_client.get(name) {
            headers.insert(name, value.clone());
        }
    }
    headers
}

/// The headers of the model server for the client: how much it may still ask, when to come again, how long it took.
pub(super) fn for_client(of_upstream: &HeaderMap) -> HeaderMap {
    let mut headers = HeaderMap::new();
    for (name, value) in of_upstream {
        let is_limit = name.as_str().starts_with("x-ratelimit-");
        if is_limit || *name == RETRY_AFTER || *name == "openai-processing-ms" {
            headers.append(name, value.clone());
        }
    }
    headers
}
