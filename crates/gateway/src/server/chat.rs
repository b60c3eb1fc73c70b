//! `POST /v1/chat/completions`.

mod prepared;
mod run;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::http::HeaderMap;
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use axum::http::request::Parts;
use axum::response::Response;
use plaincall_wire::openai::ChatCompletion;

use crate::counts::Counts;
use crate::key::Secret;
use crate::outlet::whole::WholeAnswer;
use crate::refusal::Refusal;
use crate::reply::{Next, Reply};
use crate::server::chat::prepared::{Ask, Task, prepared};
use crate::server::chat::run::{Run, stream};
use crate::server::forward::forward;
use crate::server::incoming::{Entered, answered, refuse};
use crate::server::report::Ticket;
use crate::server::{CHAT, Shared, answer};

pub(super) async fn chat(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    let handle = |entered| handle(&shared, entered);
    answered(&shared, CHAT, request, can_be_read, handle).await
}

/// The body must be there as it is.
fn can_be_read(head: &Parts) -> Result<(), Refusal> {
    let mut encodings = head.headers.get_all(CONTENT_ENCODING).iter();
    if encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let message = "the body of the request is encoded, and the gateway has to read it: send it without `Content-Encoding`";
    let mut refusal = Refusal::request(message, None).status(415);
    let identity = (ACCEPT_ENCODING.to_string(), "identity".to_owned());
    refusal.headers.push(identity);
    Err(refusal)
}

async fn handle(shared: &Arc<Shared>, entered: Entered) -> Response {
    let Entered {
        body,
        asking,
        mut ticket,
        ..
    } = entered;
    let prepared = prepared(shared, body, &ticket.caller).await;
    ticket.report.model = prepared.model;
    ticket.report.is_streamed = prepared.is_streamed;
    let ask = match prepared.task {
        Task::Ask(ask) => ask,
        Task::Pass(body) => {
            ticket.asked(&body);
            return match shared.connection.complete(body, &asking).await {
                Ok(answer) => forward(answer, ticket),
                Err(refusal) => refuse(ticket, &refusal),
            };
        }
        Task::Refuse(refusal) => return refuse(ticket, &refusal),
    };
    ticket.report.is_translated = true;
    let offer = Arc::clone(&ask.plan.offer);
    ticket.report.counts = Counts::of_changed(offer.changed());
    let response = if prepared.is_streamed {
        stream(Run::new(Arc::clone(shared), ask, asking, ticket)).await
    } else {
        match whole(shared, ask, &asking, &mut ticket).await {
            Ok(response) => {
                ticket.end(200, None);
                response
            }
            Err(refusal) => refuse(ticket, &refusal),
        }
    };
    answer::with_changed_tools(response, offer.changed())
}

/// Asks until there is an answer, and gives it as JSON.
async fn whole(
    shared: &Shared,
    mut ask: Ask,
    asking: &HeaderMap,
    ticket: &mut Ticket,
) -> Result<Response, Refusal> {
    let seed = shared.fresh.seed();
    let answer = WholeAnswer::new(answer_id(&seed), now());
    let mut reply = Reply::new(*ask.plan, seed, answer);
    loop {
        ticket.asked(&ask.body);
        let answer = shared.connection.complete(ask.body, asking).await?;
        let mut answer = answer.readable()?;
        let said = answer.whole(shared.config.limits.answer).await?;
        ticket.said(&said);
        ticket.first_piece();
        let completion: ChatCompletion<'_> =
            plaincall_wire::read(&said).map_err(|error| Refusal::unreadable(&error))?;
        let next = reply.whole(&completion);
        ticket.report.counts = reply.counts();
        match next {
            Next::Done => {
                let json = plaincall_wire::write(&reply.into_outlet().into_completion(completion));
                ticket.given(json.as_bytes());
                return Ok(answer::with_headers(
                    answer::json(200, json),
                    answer.headers,
                ));
            }
            Next::Again(round) => {
                round.add_to(&mut ask.kept);
                ask.body = plaincall_wire::write_bytes(&ask.kept);
            }
            Next::Failed(refusal) => return Err(refusal),
        }
    }
}

/// The id of an answer for which the model's server has none.
fn answer_id(seed: &Secret) -> String {
    format!("chatcmpl-{}", seed.word(&[b"answer"]))
}

/// Seconds since 1970.
fn now() -> u64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH);
    since.map_or(0, |time| time.as_secs())
}
