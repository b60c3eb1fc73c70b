//! Requests that the gateway has nothing to do with, and passes on as they are: clients have one address for all of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::{get, post};
use percent_encoding::percent_decode_str;

use crate::error::GatewayError;
use crate::server::Shared;
use crate::server::forward::{forward, forward_head};
use crate::server::request::{AcceptedRequest, reject, with_request};

/// What is posted; nothing that manages files, jobs or accounts, which the key of the model server may allow.
const POSTED: [&str; 11] = [
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
const FETCHED: [(&str, &str); 2] = [
    ("/v1/models", "/v1/models"),
    ("/v1/models/{*model}", "/v1/models/NAME"),
];

pub(super) fn is_forwarded(path: &str) -> bool {
    POSTED.contains(&path) || path == "/v1/models" || path.starts_with("/v1/models/")
}

/// These paths, for people, each with its method.
pub(super) fn paths() -> String {
    let fetched = FETCHED.map(|(_, path)| path).join(", ");
    format!("GET {fetched} and POST {}", POSTED.join(", "))
}

pub(super) fn routes() -> Router<Arc<Shared>> {
    let mut routes = Router::new();
    for path in POSTED {
        routes = routes.route(path, post(move |state, request| pass(path, state, request)));
    }
    for (route, path) in FETCHED {
        routes = routes.route(route, get(move |state, request| pass(path, state, request)));
    }
    routes
}

/// Passes on a request to this path. What is reported is the path of the route, since that of the request may tell more.
async fn pass(path: &'static str, State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let handle = |entered| handle(&shared, entered);
    with_request(&shared, path, request, leads_nowhere_else, handle).await
}

fn leads_nowhere_else(head: &Parts) -> Result<(), GatewayError> {
    match below_v1(head.uri.path()) {
        Some(_) => Ok(()),
        None => Err(GatewayError::invalid_request(
            "the request path contains a segment that is not allowed",
            None,
        )),
    }
}

async fn handle(shared: &Shared, entered: AcceptedRequest) -> Response {
    let AcceptedRequest {
        head,
        body,
        mut asking,
        mut guard,
        ..
    } = entered;
    let path = below_v1(head.uri.path()).unwrap_or_default();
    let path = match head.uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    for name in [ACCEPT, CONTENT_ENCODING, CONTENT_TYPE] {
        if let Some(value) = head.headers.get(&name) {
            asking.insert(name, value.clone());
        }
    }
    guard.model_request(&body);
    let is_head = head.method == Method::HEAD;
    // Servers of models know no `HEAD`.
    let method = if is_head { Method::GET } else { head.method };
    match shared.connection.pass(method, &path, asking, body).await {
        Ok(answer) if is_head => forward_head(answer, guard),
        Ok(answer) => forward(answer, guard),
        Err(error) => reject(guard, &error),
    }
}

/// Returns the path after `/v1`, unless a server could interpret it differently: dot segments, double escapes, backslashes,
/// `;`, `?`, `#`, a segment that begins with a space, and control characters.
fn below_v1(path: &str) -> Option<&str> {
    let path = path.strip_prefix("/v1")?;
    let read: Vec<u8> = percent_decode_str(path).collect();
    let is_odd = |byte: &u8| byte.is_ascii_control() || b"\\%;?#".contains(byte);
    let leads_up =
        |part: &[u8]| part.starts_with(b" ") || matches!(part.trim_ascii_end(), b"." | b"..");
    let is_plain = !read.iter().any(is_odd) && !read.split(|byte| *byte == b'/').any(leads_up);
    is_plain.then_some(path)
}
