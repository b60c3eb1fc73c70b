//! `POST /v1/chat/completions`.

mod run;

use std::future::poll_fn;
use std::pin::Pin;
use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::body::{Body, HttpBody as _};
use axum::extract::{Request, State};
use axum::http::header::{AUTHORIZATION, CONNECTION};
use axum::http::{HeaderMap, HeaderValue};
use axum::response::Response;
use plaincall_wire::openai::{ChatCompletion, ChatCompletionRequest, ErrorObject};

use crate::key::{Secret, random_word};
use crate::outlet::whole::WholeAnswer;
use crate::refusal::Refusal;
use crate::reply::plan::ReplyPlan;
use crate::reply::{Next, Reply};
use crate::server::Shared;
use crate::server::answer::{self, REQUEST_ID};
use crate::server::chat::run::{Run, stream};
use crate::server::forward::forward;
use crate::server::report::Ticket;
use crate::server::upstream::Asking;
use crate::settings::Mode;
use crate::translate::{Caller, Translation, translate};

/// The longest id of a request that is taken over from a client.
const LONGEST_ID: usize = 128;

pub(super) async fn chat(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let id = request_id(request.headers());
    let place = Arc::clone(&shared.places).try_acquire_owned();
    let is_full = place.is_err();
    let path = "/v1/chat/completions";
    let ticket = Ticket::new(Arc::clone(&shared), path, id.clone(), place.ok());
    let response = if is_full {
        let error = ErrorObject::new(
            "overloaded_error",
            "the gateway has as many requests as it takes: try again soon",
        );
        let mut refusal = Refusal::new(503, error);
        refusal.retry_after = Some("1".to_owned());
        refuse(ticket, &refusal)
    } else {
        handle(&shared, request, &id, ticket).await
    };
    within(&shared, response, &id)
}

/// Ends a request with an error.
fn refuse(mut ticket: Ticket, refusal: &Refusal) -> Response {
    ticket.end(refusal.status, Some(refusal));
    answer::refused(refusal)
}

async fn handle(shared: &Arc<Shared>, request: Request, id: &str, mut ticket: Ticket) -> Response {
    let (head, body) = request.into_parts();
    let caller = match shared.keys.caller(&head.headers) {
        Ok(caller) => caller,
        Err(refusal) => return refuse(ticket, &refusal),
    };
    let asking = asking(shared, &head.headers, id);
    let limit = shared.config.limits.body;
    let body = match tokio::time::timeout(shared.config.timeouts.body, read_body(body, limit)).await
    {
        Ok(Ok(body)) => body,
        Ok(Err(refusal)) => return refuse(ticket, &refusal),
        Err(_) => {
            let mut refusal =
                Refusal::request("the body of the request has not come in time", None);
            refusal.status = 408;
            return refuse(ticket, &refusal);
        }
    };
    let request: ChatCompletionRequest<'_> = match plaincall_wire::read(&body) {
        Ok(request) => request,
        Err(error) => {
            let message = format!("the body of the request cannot be read: {error}");
            let param = Some(&*error.path).filter(|path| !path.is_empty());
            return refuse(ticket, &Refusal::request(message, param));
        }
    };
    let model = request.model.as_deref().unwrap_or_default();
    let settings = shared.config.settings(model);
    let is_streamed = request.is_streamed();
    ticket.report.model = model.to_owned();
    ticket.report.is_streamed = is_streamed;
    let caller = Caller {
        secret: &shared.config.secret,
        key: caller,
    };
    let (upstream, plan) = match translate(request, settings, caller, &shared.offers) {
        Ok(Translation::Changed { upstream, plan }) => (upstream, plan),
        Ok(Translation::Unchanged(request)) => {
            drop(request);
            return match shared.connection.complete(body, &asking).await {
                Ok(answer) => forward(answer, ticket),
                Err(refusal) => refuse(ticket, &refusal),
            };
        }
        Err(refusal) => return refuse(ticket, &refusal),
    };
    ticket.report.is_translated = true;
    let seed = match Secret::random() {
        Ok(seed) => seed,
        Err(error) => {
            let message = format!("the system gives no random numbers: {error}");
            let error = ErrorObject::new("gateway_error", message);
            return refuse(ticket, &Refusal::new(500, error));
        }
    };
    if is_streamed {
        // Only a reply that is checked may need its request again.
        let body = plaincall_wire::write(&upstream).into_bytes();
        let kept = if plan.mode() == Mode::Checked {
            upstream.into_owned()
        } else {
            ChatCompletionRequest::default()
        };
        let run = Run::new(Arc::clone(shared), kept, body, *plan, seed, asking, ticket);
        return stream(run).await;
    }
    let asked = Asked {
        shared,
        asking: &asking,
        ticket: &mut ticket,
    };
    match asked.whole(upstream, *plan, seed).await {
        Ok(json) => {
            ticket.end(200, None);
            answer::json(200, json)
        }
        Err(refusal) => refuse(ticket, &refusal),
    }
}

/// A request whose answer is not streamed.
struct Asked<'s> {
    shared: &'s Shared,
    asking: &'s Asking,
    ticket: &'s mut Ticket,
}

impl Asked<'_> {
    /// Asks until there is an answer, and gives it as JSON.
    async fn whole(
        self,
        mut upstream: ChatCompletionRequest<'_>,
        plan: ReplyPlan,
        seed: Secret,
    ) -> Result<String, Refusal> {
        let mut reply = Reply::new(plan, seed);
        let mut whole = WholeAnswer::new();
        loop {
            let body = plaincall_wire::write(&upstream).into_bytes();
            let connection = &self.shared.connection;
            let mut answer = connection.complete(body, self.asking).await?;
            let body = answer.whole(self.shared.config.limits.answer).await?;
            self.ticket.first_piece();
            let completion: ChatCompletion<'_> = plaincall_wire::read(&body).map_err(|error| {
                Refusal::upstream(format!(
                    "the model's server has sent what cannot be read: {error}"
                ))
            })?;
            let next = reply.whole(&completion, &mut whole);
            self.ticket.report.counts = reply.counts();
            match next {
                Next::Done => return Ok(plaincall_wire::write(&whole.into_completion(completion))),
                Next::Again(round) => round.add_to(&mut upstream),
                Next::Failed(refusal) => return Err(refusal),
            }
        }
    }
}

/// The id of a request: the client's, if it can stand in a header and a log, else a new one.
pub(super) fn request_id(headers: &HeaderMap) -> String {
    let given = headers
        .get(REQUEST_ID)
        .and_then(|value| value.to_str().ok());
    let is_plain = |id: &&str| {
        !id.is_empty() && id.len() <= LONGEST_ID && id.bytes().all(|byte| byte.is_ascii_graphic())
    };
    if let Some(id) = given.filter(is_plain) {
        return id.to_owned();
    }
    // A system without random numbers gives no request a name of its own.
    format!("req_{}", random_word().unwrap_or_default())
}

/// What goes to the model's server beside the body.
pub(super) fn asking(shared: &Shared, headers: &HeaderMap, id: &str) -> Asking {
    let authorization = headers.get(AUTHORIZATION).cloned();
    Asking {
        request_id: header(id),
        authorization: authorization.filter(|_| shared.keys.is_open()),
    }
}

/// An answer with the id of its request.
pub(super) fn within(shared: &Shared, mut response: Response, id: &str) -> Response {
    response.headers_mut().insert(REQUEST_ID, header(id));
    if shared.is_draining() {
        // Whoever keeps the connection would send the next request when nobody listens any more.
        let close = HeaderValue::from_static("close");
        response.headers_mut().insert(CONNECTION, close);
    }
    response
}

fn header(id: &str) -> HeaderValue {
    HeaderValue::from_str(id).unwrap_or(HeaderValue::from_static(""))
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}

/// The body of a request, if it is not too long.
async fn read_body(mut body: Body, limit: usize) -> Result<Vec<u8>, Refusal> {
    let too_long = || {
        let message = format!("the body of the request has more than {limit} bytes");
        let mut refusal = Refusal::request(message, None);
        refusal.status = 413;
        refusal
    };
    let least = usize::try_from(body.size_hint().lower()).unwrap_or(usize::MAX);
    if least > limit {
        return Err(too_long());
    }
    let mut read = Vec::with_capacity(least);
    while let Some(frame) = poll_fn(|context| Pin::new(&mut body).poll_frame(context)).await {
        let frame =
            frame.map_err(|_| Refusal::request("the body of the request broke off", None))?;
        if let Ok(piece) = frame.into_data() {
            if read.len() + piece.len() > limit {
                return Err(too_long());
            }
            read.extend_from_slice(&piece);
        }
    }
    Ok(read)
}
