//! Requests whose replies may have calls: the `POST` endpoints of each API.

pub(super) mod prepare;
mod streamed;

use std::sync::Arc;

use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, Request};

use crate::adapter::AskEnd;
use crate::api::ClientApi;
use crate::counts::Counts;
use crate::error::GatewayError;
use crate::server::body::{Body, Response};
use crate::server::chat::prepare::{Task, prepared, read_reply};
use crate::server::chat::streamed::{Run, stream};
use crate::server::constrained::ConstrainedRequest;
use crate::server::endpoint::Endpoint;
use crate::server::forward::forward;
use crate::server::report::RequestGuard;
use crate::server::request::{AcceptedRequest, reject, with_request};
use crate::server::{Shared, response};

pub(super) async fn chat(shared: &Arc<Shared>, api: ClientApi, request: Request<Body>) -> Response {
    let handle = |accepted| handle(shared, api, accepted);
    with_request(shared, Endpoint::Ask(api), request, check_encoding, handle).await
}

/// Rejects encoded bodies.
pub(super) fn check_encoding(head: &Parts) -> Result<(), GatewayError> {
    let mut encodings = head.headers.get_all(CONTENT_ENCODING).iter();
    if encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let message =
        "the request body has a `Content-Encoding`, which is not supported here: send it unencoded";
    let mut error = GatewayError::invalid_request(message, None).status(415);
    let identity = (ACCEPT_ENCODING.to_string(), "identity".to_owned());
    error.headers.push(identity);
    Err(error)
}

async fn handle(shared: &Arc<Shared>, api: ClientApi, accepted: AcceptedRequest) -> Response {
    let AcceptedRequest {
        body,
        upstream_headers,
        mut guard,
        ..
    } = accepted;
    let prepared = prepared(shared, api, body).await;
    guard.model(prepared.model);
    guard.report.is_streamed = prepared.is_streamed;
    let (mut asked, upstream) = match prepared.task {
        Task::Translate(asked, upstream) => (asked, upstream),
        Task::Forward(body, upstream) => {
            guard.upstream(&upstream);
            guard.model_request(&body);
            return match upstream.complete(body.into(), &upstream_headers).await {
                Ok(answer) => forward(answer, guard),
                Err(error) => reject(guard, &error),
            };
        }
        Task::Reject(error) => return reject(guard, &error),
    };
    guard.upstream(&upstream);
    guard.report.is_translated = asked.is_translated();
    asked.add_counts(Counts {
        prompt_bytes: asked.prompt_bytes as u64,
        ..Counts::default()
    });
    guard.report.counts = asked.counts();
    let changed = response::changed_tools(asked.changed_tools());
    let model = guard.report.model.clone();
    let request = ConstrainedRequest::new(shared, asked, upstream, &model, &upstream_headers);
    let mut request = match request.await {
        Ok(request) => request,
        Err(error) => return reject(guard, &error),
    };
    let response = if prepared.is_streamed {
        let run = Run::new(Arc::clone(shared), request, upstream_headers, guard);
        stream(run).await
    } else {
        match complete(shared, &mut request, &upstream_headers, &mut guard).await {
            Ok(response) => {
                guard.end(200, None);
                response
            }
            Err(error) => reject(guard, &error),
        }
    };
    response::with_headers(response, changed)
}

/// Requests replies until one is complete, and returns it.
async fn complete(
    shared: &Shared,
    request: &mut ConstrainedRequest,
    upstream_headers: &HeaderMap,
    guard: &mut RequestGuard,
) -> Result<Response, GatewayError> {
    let mut headers = HeaderMap::new();
    loop {
        let end = round(shared, request, upstream_headers, guard, &mut headers).await;
        let mut asked = request.asked.lock().await;
        // The first reply is the answer if a repair round fails.
        let end = end.unwrap_or_else(|error| asked.end(Some(error)));
        guard.report.counts = asked.counts();
        match end {
            AskEnd::Done => {
                let body = asked.take();
                guard.client_reply(&body);
                let mut response = response::with(200, response::JSON, Body::from(body));
                let rescued = guard.report.counts.rescued_calls;
                if rescued > 0 {
                    let rescued = HeaderValue::from(rescued);
                    response.headers_mut().insert(response::RESCUED, rescued);
                }
                return Ok(response::with_headers(response, headers));
            }
            AskEnd::Again => {}
            AskEnd::Refused(error) => return Err(error),
        }
    }
}

/// Requests one reply, and reads it. Sets the model server's headers for the client.
async fn round(
    shared: &Shared,
    request: &mut ConstrainedRequest,
    upstream_headers: &HeaderMap,
    guard: &mut RequestGuard,
    headers: &mut HeaderMap,
) -> Result<AskEnd, GatewayError> {
    let answer = request.send(upstream_headers, guard).await?;
    let mut answer = answer.readable()?;
    *headers = std::mem::take(&mut answer.headers);
    let bytes = answer.whole(shared.config.limits.answer).await?;
    guard.model_reply(&bytes);
    guard.first_piece();
    let (length, elapsed) = (bytes.len(), guard.elapsed());
    read_reply(shared, &request.asked, length, move |asked| {
        asked.elapsed(elapsed);
        asked.whole(&bytes)
    })
    .await
}
