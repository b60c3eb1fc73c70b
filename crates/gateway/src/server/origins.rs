//! Pages in browsers that ask from elsewhere (CORS).

use std::time::Duration;

use axum::http::header::{HeaderName, RETRY_AFTER};
use axum::http::{HeaderValue, Method, Uri};
use tower_http::cors::{AllowHeaders, AllowOrigin, CorsLayer};

use crate::server::response::{REQUEST_ID, SHOULD_RETRY, TOOLS};

const ANY: &str = "*";
/// How long a browser need not ask again whether it may.
const KNOWN_FOR: Duration = Duration::from_mins(10);

pub(super) fn check(origin: &str) -> Result<(), String> {
    let uri = origin.parse::<Uri>().ok().filter(|uri| {
        uri.scheme().is_some()
            && uri
                .authority()
                .is_some_and(|authority| !authority.as_str().contains('@'))
    });
    let bare = uri.map(|uri| {
        let scheme = uri.scheme_str().unwrap_or_default().to_ascii_lowercase();
        let host = uri
            .authority()
            .map(|authority| authority.as_str().to_ascii_lowercase());
        format!("{scheme}://{}", host.unwrap_or_default())
    });
    match bare {
        _ if origin == ANY => Ok(()),
        Some(bare) if bare == origin => Ok(()),
        Some(bare) => Err(format!("invalid origin {origin}; did you mean {bare}?")),
        None => Err(format!(
            "invalid origin {origin}; use the scheme and host of the page, such as https://chat.example"
        )),
    }
}

/// Whether a page of this origin may ask.
pub(super) fn is_allowed(origin: &HeaderValue, allowed: &[String]) -> bool {
    allowed
        .iter()
        .any(|known| known == ANY || known.as_bytes() == origin.as_bytes())
}

/// Answers the questions of browsers, and says on answers that a page may read them.
pub(super) fn layer(allowed: &[String]) -> Option<CorsLayer> {
    if allowed.is_empty() {
        return None;
    }
    let origins = allowed
        .iter()
        .filter_map(|origin| HeaderValue::from_str(origin).ok());
    let origins = if allowed.iter().any(|origin| origin == ANY) {
        AllowOrigin::any()
    } else {
        AllowOrigin::list(origins)
    };
    let limits = ["limit", "remaining", "reset"]
        .into_iter()
        .flat_map(|what| {
            ["requests", "tokens"]
                .map(|of| HeaderName::try_from(format!("x-ratelimit-{what}-{of}")))
        });
    let exposed = limits
        .flatten()
        .chain([REQUEST_ID, RETRY_AFTER, SHOULD_RETRY, TOOLS]);
    let layer = CorsLayer::new()
        .allow_origin(origins)
        .allow_methods([Method::GET, Method::POST])
        .allow_headers(AllowHeaders::mirror_request())
        .expose_headers(exposed.collect::<Vec<_>>())
        .max_age(KNOWN_FOR);
    Some(layer)
}
