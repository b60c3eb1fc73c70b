//! Requests that the gateway has nothing to do with, and passes on as they are: clients have one address for all of them.

use std::sync::Arc;

use axum::Router;
use axum::extract::{Request, State};
use axum::http::Method;
use axum::http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use axum::http::request::Parts;
use axum::response::Response;
use axum::routing::{get, post};

use crate::refusal::Refusal;
use crate::server::Shared;
use crate::server::forward::{forward, forward_head};
use crate::server::incoming::{Entered, enter, refuse};

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
/// What is fetched, and what is reported of it.
const FETCHED: [(&str, &str); 2] = [
    ("/v1/models", "/v1/models"),
    ("/v1/models/{*model}", "/v1/models/NAME"),
];

/// Whether requests to this path are passed on.
pub(super) fn is_passed_on(path: &str) -> bool {
    POSTED.contains(&path) || path == "/v1/models" || path.starts_with("/v1/models/")
}

/// These paths, for people, each with its method.
pub(super) fn paths() -> String {
    let fetched = FETCHED.map(|(_, path)| path).join(", ");
    format!("GET {fetched} and POST {}", POSTED.join(", "))
}

/// The routes of these requests.
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
    match enter(&shared, path, request, leads_nowhere_else).await {
        Ok((entered, way_out)) => way_out.with(handle(&shared, entered).await).await,
        Err(response) => *response,
    }
}

fn leads_nowhere_else(head: &Parts) -> Result<(), Refusal> {
    match below_v1(head.uri.path()) {
        Some(_) => Ok(()),
        None => Err(Refusal::request(
            "the path of the request has a part that leads elsewhere",
            None,
        )),
    }
}

async fn handle(shared: &Shared, entered: Entered) -> Response {
    let Entered {
        head,
        body,
        mut asking,
        mut ticket,
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
    ticket.asked(&body);
    let is_head = head.method == Method::HEAD;
    // Servers of models know no `HEAD`.
    let method = if is_head { Method::GET } else { head.method };
    match shared.connection.pass(method, &path, asking, body).await {
        Ok(answer) if is_head => forward_head(answer, ticket),
        Ok(answer) => forward(answer, ticket),
        Err(refusal) => refuse(ticket, &refusal),
    }
}

/// How often an escape may be escaped once more.
const UNESCAPED: usize = 3;

/// The path behind `/v1`, unless it has parts that servers take for a way up: also behind escapes of escapes, before
/// parameters (`..;x`), and with what cannot be seen.
fn below_v1(path: &str) -> Option<&str> {
    let path = path.strip_prefix("/v1")?;
    let mut read = path.as_bytes().to_vec();
    for _ in 0..UNESCAPED {
        let before = read.len();
        read = unescaped(&read);
        if read.len() == before {
            let leads_up = read.split(|byte| b"/\\".contains(byte)).any(is_way_up);
            return (!leads_up).then_some(path);
        }
    }
    None
}

fn is_way_up(part: &[u8]) -> bool {
    let part = part.trim_ascii_start();
    let name = part.split(|byte| b";?#".contains(byte)).next();
    let name = name.unwrap_or_default();
    let is_seen = |byte: &&u8| byte.is_ascii_graphic() || !byte.is_ascii();
    let is_dots = name.iter().filter(is_seen).all(|byte| *byte == b'.');
    (name.contains(&b'.') && is_dots) || (name.len() < part.len() && part.starts_with(b"."))
}

/// A path with its escapes read once.
fn unescaped(path: &[u8]) -> Vec<u8> {
    let digit = |byte: Option<&u8>| char::from(*byte?).to_digit(16);
    let mut read = Vec::with_capacity(path.len());
    let mut rest = path;
    while let Some((first, behind)) = rest.split_first() {
        rest = behind;
        let digits = (digit(behind.first()), digit(behind.get(1)));
        let byte = match digits {
            (Some(high), Some(low)) if *first == b'%' => u8::try_from(16 * high + low).ok(),
            _ => None,
        };
        if byte.is_some() {
            rest = behind.get(2..).unwrap_or_default();
        }
        read.push(byte.unwrap_or(*first));
    }
    read
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
            ("/v1/models/a.b;c=d", Some("/models/a.b;c=d")),
            ("/v1/models/a%20b", Some("/models/a%20b")),
            ("/v1/models/100%25", Some("/models/100%25")),
            ("/v1/models/50%", Some("/models/50%")),
            ("/v1/models/..;/admin", None),
            ("/v1/models/..;a=b/admin", None),
            ("/v1/models/.;/admin", None),
            ("/v1/models/..%3b/admin", None),
            ("/v1/models/%252e%252e/admin", None),
            ("/v1/models/%25252e%25252e/admin", None),
            ("/v1/models/%2525252e%2525252e/admin", None),
            ("/v1/models/%25%32%65%25%32%65/admin", None),
            ("/v1/models/a%2f..%2f..%2fadmin", None),
            ("/v1/models/..%5cadmin", None),
            ("/v1/models/..%00/admin", None),
            ("/v1/models/..%20/admin", None),
            ("/v1/models/..%3f", None),
            ("/v2/models", None),
        ] {
            assert_eq!(below_v1(path), expected, "{path}");
        }
    }
}
