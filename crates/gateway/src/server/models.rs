//! The models of several model servers, and requests that name one.

use std::ops::Range;
use std::sync::Arc;
use std::time::Duration;

use futures_util::future::join_all;
use http::HeaderMap;
use memchr::memmem;
use plaincall_wire::openai::{Model, ModelList, ModelRequest};

use crate::error::GatewayError;
use crate::server::Shared;
use crate::server::config::GatewayConfig;
use crate::server::upstream::Connection;

/// The time limit for the list of one model server.
const TIMEOUT: Duration = Duration::from_secs(5);
/// The longest list of one model server, in bytes.
const MAX_LIST: usize = 4 << 20;

impl Shared {
    /// Returns whether the models are not exactly those of one model server.
    pub(super) fn has_own_list(&self) -> bool {
        let mut models = self.config.models.iter();
        self.routes.only().is_none()
            || models.any(|(_, settings)| settings.upstream_model.is_some())
            || self.config.other_models.upstream_model.is_some()
    }
}

/// Returns the models that clients can request: those of each server whose requests it gets, and the names without `*` that
/// stand for another model. Servers that do not answer are skipped, unless none answers.
pub(super) async fn list(
    shared: &Shared,
    headers: &HeaderMap,
) -> Result<ModelList<'static>, GatewayError> {
    let servers = shared.routes.all();
    let lists = join_all(servers.iter().map(|server| fetch(server, headers))).await;
    if let (Some(Err(error)), true) = (lists.first(), lists.iter().all(Result::is_err)) {
        return Err(error.clone());
    }
    let lists: Vec<Vec<Model<'static>>> =
        lists.into_iter().map(Result::unwrap_or_default).collect();
    let mut all: Vec<Model<'static>> = Vec::new();
    for (name, settings) in &shared.config.models {
        let Some(other) = settings.upstream_model.as_deref() else {
            continue;
        };
        let (false, Ok(server)) = (name.contains('*'), shared.routes.for_model(name)) else {
            continue;
        };
        let position = servers.iter().position(|known| Arc::ptr_eq(known, server));
        let mut models = position
            .and_then(|index| lists.get(index))
            .into_iter()
            .flatten();
        let model = models.find(|model| model.id.as_deref() == Some(other));
        let mut model = model.cloned().unwrap_or_else(|| Model {
            object: Some("model".into()),
            ..Model::default()
        });
        model.id = Some(name.clone().into());
        all.push(model);
    }
    for (server, models) in servers.iter().zip(lists) {
        for model in models {
            let id = model.id.as_deref().unwrap_or_default();
            let route = shared.routes.for_model(id);
            let is_of_server = route.is_ok_and(|route| Arc::ptr_eq(route, server));
            if is_of_server && !all.iter().any(|known| known.id.as_deref() == Some(id)) {
                all.push(model);
            }
        }
    }
    Ok(ModelList {
        object: Some("list".into()),
        data: Some(all),
        ..ModelList::default()
    })
}

/// Requests the models of one server.
pub(super) async fn fetch(
    server: &Connection,
    headers: &HeaderMap,
) -> Result<Vec<Model<'static>>, GatewayError> {
    let answer = async {
        let answer = server.list(headers.clone()).await?;
        answer.readable()?.whole(MAX_LIST).await
    };
    let late = |_| {
        Err(GatewayError::upstream(
            "the model server did not list its models in time",
        ))
    };
    let answer = tokio::time::timeout(TIMEOUT, answer).await;
    let bytes = answer.unwrap_or_else(late)?;
    let list: ModelList<'_> =
        plaincall_wire::read(&bytes).map_err(|error| GatewayError::unreadable(&error))?;
    let models = list.into_owned().data.unwrap_or_default();
    Ok(models)
}

/// Returns the requested model of a JSON body or a form, and replaces it with its name on the model server. Empty if the body
/// names none.
pub(super) fn rename(body: &mut Vec<u8>, config: &GatewayConfig) -> String {
    let settings = |model: &str| config.settings_for(model).upstream_model.clone();
    if body.trim_ascii_start().starts_with(b"{") {
        let Ok(mut request) = plaincall_wire::read::<ModelRequest<'_>>(body) else {
            return String::new();
        };
        let model = request.model.clone().unwrap_or_default().into_owned();
        if let Some(name) = settings(&model) {
            request.model = Some(name.into());
            *body = plaincall_wire::write_bytes(&request);
        }
        return model;
    }
    let Some(range) = model_in_form(body) else {
        return String::new();
    };
    let model = body.get(range.clone()).unwrap_or_default();
    let model = String::from_utf8_lossy(model).into_owned();
    if let Some(name) = settings(&model) {
        body.splice(range, name.into_bytes());
    }
    model
}

/// Finds the value of the field `model` in a body of type `multipart/form-data`.
fn model_in_form(body: &[u8]) -> Option<Range<usize>> {
    const NAME: &[u8] = b"name=\"model\"";
    const EMPTY_LINE: &[u8] = b"\r\n\r\n";
    if !body.starts_with(b"--") {
        return None;
    }
    let name = memmem::find(body, NAME)? + NAME.len();
    let start = name + memmem::find(body.get(name..)?, EMPTY_LINE)? + EMPTY_LINE.len();
    let end = start + memmem::find(body.get(start..)?, b"\r\n")?;
    Some(start..end)
}
