//! Endpoints whose requests are forwarded unchanged, so that clients need only one address.

use std::sync::Arc;

use http::header::{ACCEPT, CONTENT_ENCODING, CONTENT_TYPE};
use http::request::Parts;
use http::{HeaderMap, Method, Request};
use percent_encoding::percent_decode_str;
use plaincall_wire::anthropic::{self, ModelPage};
use plaincall_wire::openai::{Model, ModelList};
use plaincall_wire::paths;

use crate::error::GatewayError;
use crate::server::Shared;
use crate::server::body::{Body, Response};
use crate::server::chat::check_encoding;
use crate::server::chat::prepare::without_blocking;
use crate::server::endpoint::{Endpoint, OLLAMA, is_anthropic};
use crate::server::forward::{forward, forward_head};
use crate::server::models;
use crate::server::report::RequestGuard;
use crate::server::request::{AcceptedRequest, reject, with_request};
use crate::server::response;
use crate::server::upstream::{Answer, Base, unknown_model};

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
    let path = head.uri.path();
    match below_v1(path) {
        Some(_) => Ok(()),
        // One of those that are known.
        None if path.starts_with(OLLAMA) => Ok(()),
        None => Err(GatewayError::invalid_request(
            "the request path contains a segment that is not allowed",
            None,
        )),
    }
}

async fn handle(shared: &Arc<Shared>, endpoint: Endpoint, accepted: AcceptedRequest) -> Response {
    let AcceptedRequest {
        head,
        mut body,
        mut upstream_headers,
        mut guard,
        ..
    } = accepted;
    let is_list = matches!(endpoint, Endpoint::Models | Endpoint::Model);
    if is_list && shared.has_own_list() {
        return listed(shared, endpoint, &head, &upstream_headers, guard).await;
    }
    let path = head.uri.path();
    let (base, path) = below_v1(path).map_or((Base::Server, path), |path| (Base::Api, path));
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
        // The model could not be found in an encoded body.
        if let Err(error) = check_encoding(&head) {
            return reject(guard, &error);
        }
        let length = body.len();
        let cloned = Arc::clone(shared);
        let work = move || {
            let model = models::rename(&mut body, &cloned.config);
            (body, model)
        };
        match without_blocking(shared, length, work).await {
            Ok(renamed) => (body, model) = renamed,
            Err(error) => return reject(guard, &error),
        }
    }
    let upstream = match shared.routes.for_model(&model) {
        Ok(upstream) => Arc::clone(upstream),
        Err(error) => return reject(guard, &error),
    };
    guard.upstream(&upstream);
    guard.model(model);
    guard.model_request(&body);
    let is_head = head.method == Method::HEAD;
    let is_converted = is_list && is_anthropic(&head.headers);
    // Model servers do not support `HEAD`.
    let method = if is_head { Method::GET } else { head.method };
    let answer = upstream
        .pass_to(base, method, &path, upstream_headers, body.into())
        .await;
    match answer {
        Ok(answer) if is_head => forward_head(answer, guard),
        Ok(answer) if is_converted => match converted(shared, endpoint, answer).await {
            Ok(json) => {
                guard.end(200, None);
                response::json(200, json)
            }
            Err(error) => reject(guard, &error),
        },
        Ok(answer) => forward(answer, guard),
        Err(error) if base == Base::Server => reject(guard, &without_ollama(error)),
        Err(error) => reject(guard, &error),
    }
}

/// Explains the error of a server that does not have Ollama's API.
fn without_ollama(mut error: GatewayError) -> GatewayError {
    if matches!(error.status, 404 | 405) {
        let message = format!(
            "the model server does not have Ollama's API, or not this model: {}",
            error.message()
        );
        error.body.message = Some(message.into());
    }
    error
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
    let is_converted = is_anthropic(&head.headers);
    let json = if endpoint == Endpoint::Model {
        let name = head.uri.path().strip_prefix(paths::MODELS);
        let name = name.and_then(|rest| rest.strip_prefix('/'));
        let name = percent_decode_str(name.unwrap_or_default()).decode_utf8_lossy();
        let mut models = list.data.unwrap_or_default().into_iter();
        match models.find(|model| model.id.as_deref() == Some(&*name)) {
            Some(model) if is_converted => anthropic_model(model),
            Some(model) => plaincall_wire::write(&model),
            None => return reject(guard, &unknown_model()),
        }
    } else if is_converted {
        anthropic_page(list)
    } else {
        plaincall_wire::write(&list)
    };
    guard.end(200, None);
    response::json(200, json)
}

/// Converts the list of models, or one model, to the format of Anthropic's API.
async fn converted(
    shared: &Shared,
    endpoint: Endpoint,
    answer: Answer,
) -> Result<String, GatewayError> {
    let bytes = answer
        .readable()?
        .whole(shared.config.limits.answer)
        .await?;
    let json = if endpoint == Endpoint::Model {
        plaincall_wire::read(&bytes).map(anthropic_model)
    } else {
        plaincall_wire::read(&bytes).map(anthropic_page)
    };
    json.map_err(|error| GatewayError::unreadable(&error))
}

fn anthropic_page(list: ModelList<'_>) -> String {
    let models = list.data.unwrap_or_default().into_iter();
    plaincall_wire::write(&ModelPage::new(models.filter_map(|model| model.id)))
}

fn anthropic_model(model: Model<'_>) -> String {
    let id = model.id.unwrap_or_default();
    plaincall_wire::write(&anthropic::Model::new(id))
}

/// Returns the path after `/v1`, unless a server could interpret it differently: dot segments, double escapes, backslashes,
/// `;`, `?`, `#`, a segment that begins with a space, and control characters.
fn below_v1(path: &str) -> Option<&str> {
    let path = path.strip_prefix(paths::VERSION)?;
    let decoded: Vec<u8> = percent_decode_str(path).collect();
    let is_unsafe = |byte: &u8| byte.is_ascii_control() || b"\\%;?#".contains(byte);
    let leads_up =
        |part: &[u8]| part.starts_with(b" ") || matches!(part.trim_ascii_end(), b"." | b"..");
    let is_plain =
        !decoded.iter().any(is_unsafe) && !decoded.split(|byte| *byte == b'/').any(leads_up);
    is_plain.then_some(path)
}
