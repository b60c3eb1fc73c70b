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
use crate::server::endpoint::{Endpoint, is_anthropic};
use crate::server::forward::{forward, forward_head};
use crate::server::models;
use crate::server::report::RequestGuard;
use crate::server::request::{AcceptedRequest, Handled, reject, with_request};
use crate::server::response;
use crate::server::upstream::{Answer, unknown_model};

/// Forwards a request.
pub(super) async fn pass(
    shared: &Arc<Shared>,
    endpoint: Endpoint,
    request: Request<Body>,
) -> Response {
    let handle = |accepted| handle(shared, endpoint, accepted);
    with_request(shared, endpoint, request, check_path, handle).await
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

async fn handle(shared: &Arc<Shared>, endpoint: Endpoint, accepted: AcceptedRequest) -> Handled {
    let AcceptedRequest {
        head,
        mut body,
        mut upstream_headers,
        mut guard,
        ..
    } = accepted;
    let is_list = matches!(endpoint, Endpoint::Models | Endpoint::Model);
    if is_list && shared.has_own_list() {
        let response = listed(shared, endpoint, &head, &upstream_headers, guard).await;
        return (response, None);
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
    let mut model = String::new();
    if !is_list && shared.has_own_list() {
        let length = body.len();
        let cloned = Arc::clone(shared);
        let work = move || {
            let model = models::rename(&mut body, &cloned.config);
            (body, model)
        };
        match without_blocking(shared, length, work).await {
            Ok(renamed) => (body, model) = renamed,
            Err(error) => return (reject(guard, &error), None),
        }
    }
    let upstream = match shared.routes.for_model(&model) {
        Ok(upstream) => Arc::clone(upstream),
        Err(error) => return (reject(guard, &error), None),
    };
    guard.upstream(&upstream);
    guard.model(model);
    guard.model_request(&body);
    let is_head = head.method == Method::HEAD;
    let is_page = endpoint == Endpoint::Models && is_anthropic(&head.headers);
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
    endpoint: Endpoint,
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
    let json = if endpoint == Endpoint::Model {
        let name = head.uri.path().strip_prefix("/v1/models/");
        let name = percent_decode_str(name.unwrap_or_default()).decode_utf8_lossy();
        let mut models = list.data.unwrap_or_default().into_iter();
        match models.find(|model| model.id.as_deref() == Some(&*name)) {
            Some(model) => plaincall_wire::write(&model),
            None => return reject(guard, &unknown_model()),
        }
    } else if is_anthropic(&head.headers) {
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
