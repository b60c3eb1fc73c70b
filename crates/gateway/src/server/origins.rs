//! Cross-origin requests from browsers (CORS).

use http::header::{
    ACCESS_CONTROL_ALLOW_HEADERS, ACCESS_CONTROL_ALLOW_METHODS, ACCESS_CONTROL_ALLOW_ORIGIN,
    ACCESS_CONTROL_EXPOSE_HEADERS, ACCESS_CONTROL_MAX_AGE, ACCESS_CONTROL_REQUEST_HEADERS, VARY,
};
use http::{HeaderMap, HeaderValue, Uri};

use crate::server::body::{Body, Response};

const ANY: &str = "*";
/// How long a browser may cache the response to a preflight request, in seconds.
const MAX_AGE: HeaderValue = HeaderValue::from_static("600");
const METHODS: HeaderValue = HeaderValue::from_static("GET,POST");
const DEPENDS_ON: HeaderValue = HeaderValue::from_static(
    "origin, access-control-request-method, access-control-request-headers",
);
/// The response headers that pages may read.
const EXPOSED: HeaderValue = HeaderValue::from_static(
    "x-ratelimit-limit-requests,x-ratelimit-limit-tokens,x-ratelimit-remaining-requests,\
     x-ratelimit-remaining-tokens,x-ratelimit-reset-requests,x-ratelimit-reset-tokens,\
     x-request-id,request-id,retry-after,x-should-retry,x-plaincall-tools,\
     x-plaincall-token-count,x-plaincall-rescued",
);

/// Checks an origin of [`GatewayConfig::origins`](crate::GatewayConfig::origins).
///
/// # Errors
/// Returns a message with the fix if it is neither a scheme and a host nor `*`.
pub fn check(origin: &str) -> Result<(), String> {
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

/// Returns whether pages of this origin may use the gateway.
pub(super) fn is_allowed(origin: &HeaderValue, allowed: &[String]) -> bool {
    allowed
        .iter()
        .any(|known| known == ANY || known.as_bytes() == origin.as_bytes())
}

/// Responds to a preflight request of a browser.
pub(super) fn preflight(request: &HeaderMap) -> Response {
    let mut response = Response::new(Body::default());
    let headers = response.headers_mut();
    headers.insert(ACCESS_CONTROL_ALLOW_METHODS, METHODS);
    headers.insert(ACCESS_CONTROL_MAX_AGE, MAX_AGE);
    if let Some(names) = request.get(ACCESS_CONTROL_REQUEST_HEADERS) {
        headers.insert(ACCESS_CONTROL_ALLOW_HEADERS, names.clone());
    }
    response
}

/// Lets pages of the allowed origins read a response, including errors.
pub(super) fn expose(response: &mut Response, origin: Option<&HeaderValue>, allowed: &[String]) {
    let origin = if allowed.iter().any(|known| known == ANY) {
        Some(HeaderValue::from_static(ANY))
    } else {
        origin.filter(|origin| is_allowed(origin, allowed)).cloned()
    };
    let headers = response.headers_mut();
    if let Some(origin) = origin {
        headers.insert(ACCESS_CONTROL_ALLOW_ORIGIN, origin);
    }
    headers.insert(ACCESS_CONTROL_EXPOSE_HEADERS, EXPOSED);
    headers.append(VARY, DEPENDS_ON);
}
