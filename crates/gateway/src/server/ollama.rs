//! The models in the format of Ollama's API (`spec/gateway.md` 13).

use std::borrow::Cow;
use std::sync::Arc;

use http::{HeaderMap, Request};
use plaincall_wire::openai::Model;
use serde::Deserialize;
use serde_json::{Value, json};

use crate::error::GatewayError;
use crate::server::Shared;
use crate::server::body::{Body, Response};
use crate::server::chat::check_encoding;
use crate::server::endpoint::{Endpoint, SHOW, TAGS};
use crate::server::models;
use crate::server::request::{AcceptedRequest, reject, with_request};
use crate::server::response;

/// The version of Ollama whose API this is. Some clients require a minimum.
const VERSION: &str = "0.33.0";
/// The time of models, which is unknown.
const UNKNOWN_TIME: &str = "1970-01-01T00:00:00Z";

/// Responds to a request about models or the version.
pub(super) async fn answer(
    shared: &Arc<Shared>,
    path: &'static str,
    request: Request<Body>,
) -> Response {
    let handle = |accepted: AcceptedRequest| async move {
        let (body, headers, mut guard) = (accepted.body, accepted.upstream_headers, accepted.guard);
        let json = match path {
            SHOW => shown(shared, &body, &headers).await,
            TAGS => listed(shared, &headers).await,
            _ => Ok(json!({"version": VERSION})),
        };
        match json {
            Ok(json) => {
                guard.end(200, None);
                response::json(200, json.to_string())
            }
            Err(error) => reject(guard, &error),
        }
    };
    let endpoint = Endpoint::Ollama(path);
    with_request(shared, endpoint, request, check_encoding, handle).await
}

async fn listed(shared: &Shared, headers: &HeaderMap) -> Result<Value, GatewayError> {
    let list = models::list(shared, headers).await?;
    let models = list.data.unwrap_or_default();
    let models: Vec<Value> = models.iter().map(entry).collect();
    Ok(json!({"models": models}))
}

fn entry(model: &Model<'_>) -> Value {
    let (name, owner) = model.id_and_owner();
    json!({"name": name, "model": name, "modified_at": UNKNOWN_TIME, "size": 0, "digest": "",
        "details": details(owner), "capabilities": CAPABILITIES})
}

/// The abilities of every model: the gateway adds calls to models without them.
const CAPABILITIES: [&str; 2] = ["completion", "tools"];

fn details(owner: &str) -> Value {
    json!({"parent_model": "", "format": "", "family": owner, "families": [owner],
        "parameter_size": "", "quantization_level": ""})
}

/// The longest body that names a model, in bytes.
const LONGEST_SHOW: usize = 64 * 1024;

#[derive(Deserialize)]
struct ShowRequest<'r> {
    #[serde(borrow)]
    model: Option<Cow<'r, str>>,
    /// The name of the model, from older clients.
    #[serde(borrow)]
    name: Option<Cow<'r, str>>,
}

async fn shown(shared: &Shared, body: &[u8], headers: &HeaderMap) -> Result<Value, GatewayError> {
    if body.len() > LONGEST_SHOW {
        let message = format!("the request body is longer than {LONGEST_SHOW} bytes");
        return Err(GatewayError::invalid_request(message, None).status(413));
    }
    let request: ShowRequest<'_> = serde_json::from_slice(body).map_err(|error| {
        let message = format!("the request body cannot be parsed: {error}");
        GatewayError::invalid_request(message, None)
    })?;
    let model = request.model.or(request.name);
    let model = model.as_deref().unwrap_or_default();
    let list = models::list(shared, headers).await?;
    let mut models = list.data.iter().flatten();
    let found = models.find(|known| known.id.as_deref() == Some(model));
    let Some((_, owner)) = found.map(Model::id_and_owner) else {
        let message = format!("model `{model}` not found; GET /api/tags lists the models");
        let error = GatewayError::invalid_request(message, Some("model"));
        return Err(error.status(404));
    };
    Ok(
        json!({"modelfile": "", "parameters": "", "template": "", "license": "",
        "modified_at": UNKNOWN_TIME, "details": details(owner), "model_info": {}, "capabilities": CAPABILITIES}),
    )
}
