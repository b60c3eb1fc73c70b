//! Requests that the gateway has nothing to do with, and passes on as they are: clients have one address for all of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::{ACCEPT, CONTENT_TYPE};
use axum::response::Response;
use axum::routing::{get, post};

use crate::refusal::Refusal;
use crate::server::Shared;
use crate::server::forward::forward;
use crate::server::incoming::{admit, asking, discard, receive, refuse, request_id, within};
use crate::server::report::Ticket;

/// What is posted. Whatever manages files, jobs or accounts is not in it: the key of the model's server may allow more
/// than clients of the gateway should be able to do.
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
/// What is fetched.
const FETCHED: [&str; 2] = ["/v1/models", "/v1/models/{*model}"];

/// The routes of these requests.
pub(super) fn routes() -> Router<Arc<Shared>> {
    let mut routes = Router::new();
    for path in POSTED {
        routes = routes.route(path, post(move |state, request| pass(path, state, request)));
    }
    for path in FETCHED {
        routes = routes.route(path, get(move |state, request| pass(path, state, request)));
    }
    routes
}

/// Passes on a request to this path. What is reported is the path of the route, since that of the request may tell more.
async fn pass(path: &'static str, State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let id = request_id(request.headers());
    let response = match admit(&shared, path, &id) {
        Ok(ticket) => handle(&shared, request, &id, ticket).await,
        Err(response) => {
            let (head, body) = request.into_parts();
            discard(&shared, &head.headers, body).await;
            *response
        }
    };
    within(&shared, response, &id)
}

async fn handle(shared: &Shared, request: Request, id: &str, mut ticket: Ticket) -> Response {
    let (head, body) = request.into_parts();
    match shared.keys.caller(&head.headers) {
        Ok(caller) => ticket.caller(caller),
        Err(refusal) => {
            discard(shared, &head.headers, body).await;
            return refuse(ticket, &refusal);
        }
    }
    let Some(path) = below_v1(head.uri.path()) else {
        let refusal = Refusal::request(
            "the path of the request has a part that leads elsewhere",
            None,
        );
        return refuse(ticket, &refusal);
    };
    let path = match head.uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    let body = match receive(shared, &head.headers, body).await {
        Ok(body) => body,
        Err(refusal) => return refuse(ticket, &refusal),
    };
    let mut asking = asking(shared, &head.headers, id);
    for name in [ACCEPT, CONTENT_TYPE] {
        if let Some(value) = head.headers.get(&name) {
            asking.headers.insert(name, value.clone());
        }
    }
    ticket.asked(&body);
    // The body of a `HEAD` would not be read.
    let method = if head.method == Method::HEAD {
        Method::GET
    } else {
        head.method
    };
    match shared.connection.pass(method, &path, body, &asking).await {
        Ok(answer) => forward(answer, ticket),
        Err(refusal) => refuse(ticket, &refusal),
    }
}

/// The path behind `/v1`, unless it has parts that servers take for a way up.
fn below_v1(path: &str) -> Option<&str> {
    let path = path.strip_prefix("/v1")?;
    let is_way_up = |part: &str| {
        let part = part.replace("%2e", ".").replace("%2E", ".");
        part == "." || part == ".."
    };
    let has_slash = path.to_ascii_lowercase().contains("%2f") || path.contains('\\');
    let leads_elsewhere = path.split('/').any(is_way_up) || (has_slash && path.contains(".."));
    (!leads_elsewhere).then_some(path)
}

#[cfg(test)]
mod tests {
    use super::below_v1;

    #[test]
    fn paths() {
        for (path, expected) in [
            ("/v1/models", Some("/models")),
            ("/v1/models/qwen3:8b", Some("/models/qwen3:8b")),
            ("/v1/models/meta/llama-3.1", Some("/models/meta/llama-3.1")),
            (
                "/v1/models/meta%2Fllama-3.1",
                Some("/models/meta%2Fllama-3.1"),
            ),
            ("/v1/models/a..b", Some("/models/a..b")),
            ("/v1/models/../files", None),
            ("/v1/models/a/../../files", None),
            ("/v1/models/%2e%2E/files", None),
            ("/v1/models/.%2e", None),
            ("/v1/models/./a", None),
            ("/v1/models/..%2ffiles", None),
            ("/v1/models/..\\files", None),
            ("/v2/models", None),
        ] {
            assert_eq!(below_v1(path), expected, "{path}");
        }
    }
}
