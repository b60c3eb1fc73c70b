//! Counts the tokens of a request to Messages (`spec/gateway.md` 10).

use std::sync::Arc;
use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue, Request};

use crate::api::ClientApi;
use crate::server::body::{Body, Response};
use crate::server::chat::check_encoding;
use crate::server::chat::prepare::{Task, prepared, without_blocking};
use crate::server::endpoint::Endpoint;
use crate::server::request::{AcceptedRequest, reject, with_request};
use crate::server::upstream::Connection;
use crate::server::{Shared, response};
use crate::token_count::TokenCount;

/// The time limit for the model server.
const TIMEOUT: Duration = Duration::from_secs(10);

pub(super) async fn count_tokens(shared: &Arc<Shared>, request: Request<Body>) -> Response {
    let handle = |accepted| handle(shared, accepted);
    with_request(
        shared,
        Endpoint::CountTokens,
        request,
        check_encoding,
        handle,
    )
    .await
}

async fn handle(shared: &Arc<Shared>, accepted: AcceptedRequest) -> Response {
    let AcceptedRequest {
        body,
        upstream_headers,
        mut guard,
        ..
    } = accepted;
    let prepared = prepared(shared, ClientApi::Messages, body).await;
    guard.model(prepared.model);
    let (body, changed, upstream) = match prepared.task {
        Task::Translate(mut asked, upstream) => {
            let changed = response::changed_tools(asked.changed_tools());
            guard.report.is_translated = asked.is_translated();
            (asked.take_body(), changed, upstream)
        }
        Task::Forward(body, upstream) => (body.into(), HeaderMap::new(), upstream),
        Task::Reject(error) => return reject(guard, &error),
    };
    guard.upstream(&upstream);
    guard.model_request(&body);
    let length = body.len();
    let estimated = match without_blocking(shared, length, move || TokenCount::new(&body)).await {
        Ok(estimated) => estimated,
        Err(error) => return reject(guard, &error),
    };
    let counted = counted(shared, &upstream, estimated.clone(), &upstream_headers);
    let counted = tokio::time::timeout(TIMEOUT, counted).await.ok().flatten();
    let count = counted.unwrap_or(estimated);
    let mut response = response::json(200, count.response_body());
    if count.is_estimate() {
        let (name, value) = TokenCount::ESTIMATE;
        let name = HeaderName::from_static(name);
        let value = HeaderValue::from_static(value);
        response.headers_mut().insert(name, value);
    }
    guard.end(200, None);
    response::with_headers(response, changed)
}

/// Asks the model server. Returns `None` if a request fails.
async fn counted(
    shared: &Shared,
    upstream: &Connection,
    mut count: TokenCount,
    headers: &HeaderMap,
) -> Option<TokenCount> {
    while let Some((path, body)) = count.request() {
        let answer = upstream.ask_server(path, headers, body).await;
        let bytes = answer.ok()?.whole(shared.config.limits.answer).await.ok()?;
        let length = bytes.len();
        let work = move || {
            count.answer(&bytes);
            count
        };
        count = without_blocking(shared, length, work).await.ok()?;
    }
    Some(count)
}
