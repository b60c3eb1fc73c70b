//! `POST /v1/chat/completions`.

mod run;

use std::sync::Arc;
use std::time::{SystemTime, UNIX_EPOCH};

use axum::extract::{Request, State};
use axum::http::header::{ACCEPT_ENCODING, CONTENT_ENCODING};
use axum::http::request::Parts;
use axum::response::Response;
use plaincall_wire::openai::{ChatCompletion, ChatCompletionRequest};

use crate::key::Secret;
use crate::outlet::whole::WholeAnswer;
use crate::refusal::Refusal;
use crate::reply::plan::ReplyPlan;
use crate::reply::{Next, Reply};
use crate::server::Shared;
use crate::server::answer;
use crate::server::chat::run::{Run, stream};
use crate::server::forward::forward;
use crate::server::incoming::{Entered, enter, refuse};
use crate::server::report::Ticket;
use crate::server::upstream::Asking;
use crate::settings::Mode;
use crate::translate::{Caller, Translation, translate};

/// The longest name of a model that is reported, in bytes.
const LONGEST_MODEL: usize = 128;

pub(super) async fn chat(State(shared): State<Arc<Shared>>, request: Request) -> Response {
    match enter(&shared, "/v1/chat/completions", request, can_be_read).await {
        Ok((entered, way_out)) => way_out.with(handle(&shared, entered).await),
        Err(response) => *response,
    }
}

/// The body must be there as it is.
fn can_be_read(head: &Parts) -> Result<(), Refusal> {
    let mut encodings = head.headers.get_all(CONTENT_ENCODING).iter();
    if encodings.all(|encoding| encoding.as_bytes().eq_ignore_ascii_case(b"identity")) {
        return Ok(());
    }
    let message = "the body of the request is encoded, and the gateway has to read it: send it without `Content-Encoding`";
    let mut refusal = Refusal::request(message, None);
    refusal.status = 415;
    let identity = (ACCEPT_ENCODING.to_string(), "identity".to_owned());
    refusal.headers.push(identity);
    Err(refusal)
}

async fn handle(shared: &Arc<Shared>, entered: Entered) -> Response {
    let Entered {
        head,
        body,
        caller,
        asking,
        mut ticket,
    } = entered;
    drop(head);
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
    ticket.report.model = short(model).to_owned();
    ticket.report.is_streamed = is_streamed;
    let caller = Caller {
        secret: &shared.config.secret,
        key: &caller,
    };
    let (upstream, plan) = match translate(request, settings, caller, &shared.offers) {
        Ok(Translation::Changed { upstream, plan }) => (upstream, plan),
        Ok(Translation::Unchanged(request)) => {
            drop(request);
            ticket.asked(&body);
            return match shared.connection.complete(body, &asking).await {
                Ok(answer) => forward(answer, ticket),
                Err(refusal) => refuse(ticket, &refusal),
            };
        }
        Err(refusal) => return refuse(ticket, &refusal),
    };
    ticket.report.is_translated = true;
    let seed = shared.fresh.seed();
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
        Ok(response) => {
            ticket.end(200, None);
            response
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
    ) -> Result<Response, Refusal> {
        let mut whole = WholeAnswer::new(answer_id(&seed), now());
        let mut reply = Reply::new(plan, seed);
        loop {
            let body = plaincall_wire::write(&upstream).into_bytes();
            self.ticket.asked(&body);
            let connection = &self.shared.connection;
            let mut answer = connection.complete(body, self.asking).await?.readable()?;
            let body = answer.whole(self.shared.config.limits.answer).await?;
            self.ticket.said(&body);
            self.ticket.first_piece();
            let completion: ChatCompletion<'_> =
                plaincall_wire::read(&body).map_err(|error| Refusal::unreadable(&error))?;
            let next = reply.whole(&completion, &mut whole);
            self.ticket.report.counts = reply.counts();
            match next {
                Next::Done => {
                    let json = plaincall_wire::write(&whole.into_completion(completion));
                    self.ticket.given(json.as_bytes());
                    let headers = std::mem::take(&mut answer.headers);
                    return Ok(answer::with_headers(answer::json(200, json), headers));
                }
                Next::Again(round) => round.add_to(&mut upstream),
                Next::Failed(refusal) => return Err(refusal),
            }
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

/// As much of the name of a model as stands in a report.
fn short(model: &str) -> &str {
    model
        .get(..model.floor_char_boundary(LONGEST_MODEL))
        .unwrap_or(model)
}
