//! The headers that the gateway forwards.

use http::header::{AUTHORIZATION, HeaderName, RETRY_AFTER};
use http::{HeaderMap, HeaderValue};

/// The header for the key in Anthropic's API.
pub(super) const API_KEY: HeaderName = HeaderName::from_static("x-api-key");

/// The key, and the accounts to charge.
static OF_KEY: [HeaderName; 3] = [
    AUTHORIZATION,
    HeaderName::from_static("openai-organization"),
    HeaderName::from_static("openai-project"),
];

/// Headers of the request for the model server.
static OF_REQUEST: [HeaderName; 3] = [
    HeaderName::from_static("openai-beta"),
    HeaderName::from_static("traceparent"),
    HeaderName::from_static("tracestate"),
];

/// Returns the client's headers for the model server, with the client's key only if `with_key` is set.
pub(super) fn for_upstream(of_client: &HeaderMap, with_key: bool) -> HeaderMap {
    let of_key = OF_KEY.iter().filter(|_| with_key);
    let mut headers = HeaderMap::new();
    for name in OF_REQUEST.iter().chain(of_key) {
        if let Some(value) = of_client.get(name) {
            headers.insert(name, value.clone());
        }
    }
    let key = of_client.get(API_KEY).and_then(|key| key.to_str().ok());
    if let Some(key) = key.filter(|_| with_key && !headers.contains_key(AUTHORIZATION))
        && let Ok(key) = HeaderValue::from_str(&format!("Bearer {key}"))
    {
        headers.insert(AUTHORIZATION, key);
    }
    headers
}

/// Removes the client's key and accounts.
pub(super) fn remove_keys(headers: &mut HeaderMap) {
    for name in &OF_KEY {
        headers.remove(name);
    }
}

/// Returns the model server's headers for the client: rate limits, retry delay and processing time.
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
