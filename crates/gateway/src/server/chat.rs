//! `POST /v1/chat/completions`.

mod prepare;
mod streamed;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use http::HeaderMap;
use http::Request;
use http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use http::request::Parts;
use plaincall_wire::openai::ChatCompletion;

use crate::counts::Counts;
use crate::error::GatewayError;
use crate::key::Secret;
use crate::reply::{Next, Reply};
use crate::server::body::{Body, Response};
use crate::server::chat::prepare::{Ask, Task, prepared};
use crate::server::chat::streamed::{Run, stream};
use crate::server::forward::forward;
use crate::server::report::RequestGuard;
use crate::server::request::{AcceptedRequest, reject, with_request};
use crate::server::{CHAT, Shared, response};
use crate::sink::complete::CompleteResponse;

pub(super) async fn chat(shared: &Arc<Shared>, request: Request<Body>) -> Response {
    let handle = |accepted| handle(shared, accepted);
    with_request(shared, CHAT, request, check_encoding, handle).await
}

/// Rejects encoded bodies.
fn check_encoding(head: &Parts) -> Result<(), GatewayError> {
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

async fn handle(shared: &Arc<Shared>, accepted: AcceptedRequest) -> Response {
    let AcceptedRequest {
        body,
        upstream_headers,
        mut guard,
        ..
    } = accepted;
    let prepared = prepared(shared, body, &guard.caller).await;
    guard.report.model = prepared.model;
    guard.report.is_streamed = prepared.is_streamed;
    let ask = match prepared.task {
        Task::Translate(ask) => ask,
        Task::Forward(body) => {
            guard.model_request(&body);
            return match shared.connection.complete(body, &upstream_headers).await {
                Ok(answer) => forward(answer, guard),
                Err(error) => reject(guard, &error),
            };
        }
        Task::Reject(error) => return reject(guard, &error),
    };
    guard.report.is_translated = true;
    let offer = Arc::clone(&ask.plan.offer);
    guard.report.counts = Counts::of_changed(offer.changed());
    let response = if prepared.is_streamed {
        stream(Run::new(Arc::clone(shared), ask, upstream_headers, guard)).await
    } else {
        match complete(shared, ask, &upstream_headers, &mut guard).await {
            Ok(response) => {
                guard.end(200, None);
                response
            }
            Err(error) => reject(guard, &error),
        }
    };
    response::with_changed_tools(response, offer.changed())
}

/// Requests replies until one is complete, and returns it as JSON.
async fn complete(
    shared: &Shared,
    mut ask: Ask,
    upstream_headers: &HeaderMap,
    guard: &mut RequestGuard,
) -> Result<Response, GatewayError> {
    let seed = shared.fresh.seed();
    let answer = CompleteResponse::new(answer_id(&seed), now());
    let mut reply = Reply::new(*ask.plan, seed, answer);
    loop {
        guard.model_request(&ask.body);
        let answer = shared
            .connection
            .complete(ask.body, upstream_headers)
            .await?;
        let mut answer = answer.readable()?;
        let bytes = answer.whole(shared.config.limits.answer).await?;
        guard.model_reply(&bytes);
        guard.first_piece();
        let completion: ChatCompletion<'_> =
            plaincall_wire::read(&bytes).map_err(|error| GatewayError::unreadable(&error))?;
        let next = reply.whole(&completion);
        guard.report.counts = reply.counts();
        match next {
            Next::Done => {
                let json = plaincall_wire::write(&reply.into_sink().into_completion(completion));
                guard.client_reply(json.as_bytes());
                return Ok(response::with_headers(
                    response::json(200, json),
                    answer.headers,
                ));
            }
            Next::Repair(round) => {
                round.add_to(&mut ask.request);
                ask.body = plaincall_wire::write_bytes(&ask.request);
            }
            Next::Failed(error) => return Err(error),
        }
    }
}

/// Returns an id for a response, in case the model server sends none.
fn answer_id(seed: &Secret) -> String {
    format!("chatcmpl-{}", seed.word(&[b"answer"]))
}

/// Returns the seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}
