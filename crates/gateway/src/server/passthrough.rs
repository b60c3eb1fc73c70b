//! Endpoints whose requests are forwarded unchanged, so that clients need only one address.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method, Request};
use percent_encoding::percent_decode_str;
use plaincall_wire::anthropic::ModelPage;
use plaincall_wire::openai::ModelList;

use crate::error::GatewayError;
use crate::server::Shared;
use crate::server::body::{Body, Response};
use crate::server::chat::prepare::without_blocking;
use crate::server::forward::{forward, forward_head};
use crate::server::models;
use crate::server::report::RequestGuard;
use crate::server::request::{AcceptedRequest, Handled, reject, with_request};
use crate::server::response;
use crate::server::upstream::{Answer, unknown_model};

/// The forwarded `POST` endpoints. None manages files, jobs or accounts, which the model server's key may allow.
const POST: [&str; 11] = [
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
const MODELS: &str = "/v1/models";
const MODEL: &str = "/v1/models/NAME";

/// Returns the methods and the reported path of a forwarded endpoint.
pub(super) fn route(path: &str) -> Option<(&'static str, &'static str)> {
    match path.strip_prefix(MODELS) {
        Some("") => return Some(("GET,HEAD", MODELS)),
        Some(name) if name.len() > 1 && name.starts_with('/') => return Some(("GET,HEAD", MODEL)),
        _ => {}
    }
    let known = POST.into_iter().find(|known| *known == path);
    known.map(|path| ("POST", path))
}

/// Returns the list of the forwarded endpoints for error messages.
pub(super) fn paths() -> String {
    format!("GET {MODELS}, {MODEL} and POST {}", POST.join(", "))
}

/// Forwards a request. `path` is the reported path, since the requested one may contain secrets.
pub(super) async fn pass(
    shared: &Arc<Shared>,
    path: &'static str,
    request: Request<Body>,
) -> Response {
    let handle = |accepted| handle(shared, accepted);
    with_request(shared, path, request, check_path, handle).await
}

fn check_path(head: &Parts) -> Result<(), GatewayError> {
    match below_v1(head.uri.path()) {
        Some(_) => Ok(()),
        None => Err(GatewayError::invalid_request(
            "the request path contains a segment that is not allowed",
            None,
        )),
    }
}

async fn handle(shared: &Arc<Shared>, accepted: AcceptedRequest) -> Handled {
    let AcceptedRequest {
        head,
        mut body,
        mut upstream_headers,
        mut guard,
        ..
    } = accepted;
    let is_list = [MODELS, MODEL].contains(&guard.report.path);
    if is_list && shared.has_own_list() {
        return (listed(shared, &head, &upstream_headers, guard).await, None);
    }
    let path = below_v1(head.uri.path()).unwrap_or_default();
    let path = match head.uri.query() {
        Some(query) => format!("{path}?{query}"),
        None => path.to_owned(),
    };
    for name in [ACCEPT, CONTENT_ENCODING, CONTENT_TYPE] {
        if let Some(value) = head.headers.get(&name) {
            upstream_headers.insert(name, value.clone());
        }
    }
    if !is_list && shared.has_own_list() {
        let length = body.len();
        let cloned = Arc::clone(shared);
        let work = move || {
            let model = models::rename(&mut body, &cloned.config);
            (body, model)
        };
        match without_blocking(shared, length, work).await {
            Ok((renamed, model)) => (body, guard.report.model) = (renamed, model),
            Err(error) => return (reject(guard, &error), None),
        }
    }
    let upstream = match shared.routes.for_model(&guard.report.model) {
        Ok(upstream) => Arc::clone(upstream),
        Err(error) => return (reject(guard, &error), None),
    };
    guard.upstream(&upstream);
    guard.report.model = models::reported(&guard.report.model);
    guard.model_request(&body);
    let is_head = head.method == Method::HEAD;
    let is_page = guard.report.path == MODELS && head.headers.contains_key("anthropic-version");
    // Model servers do not support `HEAD`.
    let method = if is_head { Method::GET } else { head.method };
    let answer = upstream
        .pass(method, &path, upstream_headers, body.into())
        .await;
    let response = match answer {
        Ok(answer) if is_head => forward_head(answer, guard),
        Ok(answer) if is_page => match model_page(shared, answer).await {
            Ok(page) => {
                guard.end(200, None);
                response::json(200, plaincall_wire::write(&page))
            }
            Err(error) => reject(guard, &error),
        },
        Ok(answer) => forward(answer, guard),
        Err(error) => reject(guard, &error),
    };
    (response, Some(upstream))
}

/// Responds with the models of all model servers, or with one of them.
async fn listed(
    shared: &Shared,
    head: &Parts,
    upstream_headers: &HeaderMap,
    mut guard: RequestGuard,
) -> Response {
    let list = match models::list(shared, upstream_headers).await {
        Ok(list) => list,
        Err(error) => return reject(guard, &error),
    };
    let ids = |list: ModelList<'static>| {
        let models = list.data.unwrap_or_default();
        models.into_iter().filter_map(|model| model.id)
    };
    let json = if guard.report.path == MODEL {
        let name = head.uri.path().strip_prefix("/v1/models/");
        let name = percent_decode_str(name.unwrap_or_default()).decode_utf8_lossy();
        let mut models = list.data.unwrap_or_default().into_iter();
        match models.find(|model| model.id.as_deref() == Some(&*name)) {
            Some(model) => plaincall_wire::write(&model),
            None => return reject(guard, &unknown_model()),
        }
    } else if head.headers.contains_key("anthropic-version") {
        plaincall_wire::write(&ModelPage::new(ids(list)))
    } else {
        plaincall_wire::write(&list)
    };
    guard.end(200, None);
    response::json(200, json)
}

/// Converts the list of models to the format of Anthropic's API.
async fn model_page(shared: &Shared, answer: Answer) -> Result<ModelPage<'static>, GatewayError> {
    let bytes = answer
        .readable()?
        .whole(shared.config.limits.answer)
        .await?;
    let list: ModelList<'_> =
        plaincall_wire::read(&bytes).map_err(|error| GatewayError::unreadable(&error))?;
    let models = list.data.unwrap_or_default();
    Ok(ModelPage::new(models.into_iter().filter_map(|model| model.id)).into_owned())
}

/// Returns the path after `/v1`, unless a server could interpret it differently: dot segments, double escapes, backslashes,
/// `;`, `?`, `#`, a segment that begins with a space, and control characters.
fn below_v1(path: &str) -> Option<&str> {
    let path = path.strip_prefix("/v1")?;
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    let is_unsafe = |byte: &u8| byte.is_ascii_control() || b"\\%;?#".contains(byte);
    let leads_up =
        |part: &[u8]| part.starts_with(b" ") || matches!(part.trim_ascii_end(), b"." | b"..");
    let is_plain =
        !decoded.iter().any(is_unsafe) && !decoded.split(|byte| *byte == b'/').any(leads_up);
    is_plain.then_some(path)
}
