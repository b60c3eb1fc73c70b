//! What is to be done for a request: all that is thought about it before anybody is asked.

use std::sync::Arc;

use plaincall_wire::openai::{ChatCompletionRequest, ErrorObject};

use crate::error::GatewayError;
use crate::reply::plan::ReplyPlan;
use crate::server::Shared;
use crate::server::request::overloaded;
use crate::translate::{Caller, Translation, translate};

/// The longest name of a model that is reported, in bytes.
const MAX_MODEL: usize = 128;
/// The longest body that is dealt with between other requests, in bytes; a longer one gets a thread of its own.
const SHORT: usize = 256 << 10;

/// How many values and fields the body of a request may have together. What is made of a small value takes a hundred
/// times its length. A thousand tools with a hundred fields each are far below that.
const MAX_VALUES: usize = 250_000;

pub(super) struct PreparedRequest {
    pub(super) model: String,
    pub(super) is_streamed: bool,
    pub(super) task: Task,
}

pub(super) enum Task {
    /// Forwards the body unchanged.
    Forward(Vec<u8>),
    Translate(Ask),
    Reject(GatewayError),
}

/// A request in words.
pub(super) struct Ask {
    pub(super) body: Vec<u8>,
    /// The request, if it may be needed again.
    pub(super) kept: Box<ChatCompletionRequest<'static>>,
    pub(super) plan: Box<ReplyPlan>,
}

/// What is to be done for the request with this body, of the caller with this key. Others are answered meanwhile.
pub(super) async fn prepared(shared: &Arc<Shared>, body: Vec<u8>, caller: &str) -> PreparedRequest {
    if body.len() <= SHORT {
        return prepare(shared, body, caller);
    }
    let wait = shared.config.timeouts.body;
    let turn = Arc::clone(&shared.long_bodies).acquire_owned();
    let Ok(Ok(turn)) = tokio::time::timeout(wait, turn).await else {
        let words = "too many large requests: try again soon";
        return refused(overloaded(words));
    };
    let shared = Arc::clone(shared);
    let caller = caller.to_owned();
    let preparing = tokio::task::spawn_blocking(move || {
        let prepared = prepare(&shared, body, &caller);
        // Also when the client has gone meanwhile, nobody else has had this turn.
        drop(turn);
        prepared
    });
    preparing.await.unwrap_or_else(|_| {
        let words = "internal error while processing the request";
        refused(GatewayError::new(
            500,
            ErrorObject::new("gateway_error", words),
        ))
    })
}

fn refused(error: GatewayError) -> PreparedRequest {
    PreparedRequest {
        model: String::new(),
        is_streamed: false,
        task: Task::Reject(error),
    }
}

fn prepare(shared: &Shared, body: Vec<u8>, caller: &str) -> PreparedRequest {
    if let Err(error) = check_values(&body) {
        return refused(error);
    }
    let request: ChatCompletionRequest<'_> = match plaincall_wire::read(&body) {
        Ok(request) => request,
        Err(error) => {
            let message = format!("the request body cannot be parsed: {error}");
            let param = Some(&*error.path).filter(|path| !path.is_empty());
            return refused(GatewayError::invalid_request(message, param));
        }
    };
    let model = request.model.as_deref().unwrap_or_default();
    let settings = shared.config.settings_for(model);
    let is_streamed = request.is_streamed();
    let longest = model.floor_char_boundary(MAX_MODEL);
    let model = model.get(..longest).unwrap_or_default().to_owned();
    let caller = Caller {
        secret: &shared.config.secret,
        key: caller,
    };
    let task = match translate(request, settings, caller, &shared.offers) {
        Ok(Translation::Changed { upstream, plan }) => {
            let asked = plaincall_wire::write_bytes(&upstream);
            let kept = if plan.may_repair() {
                upstream.into_owned()
            } else {
                ChatCompletionRequest::default()
            };
            Task::Translate(Ask {
                body: asked,
                kept: Box::new(kept),
                plan,
            })
        }
        Ok(Translation::Unchanged(_)) => Task::Forward(body),
        Err(error) => Task::Reject(error),
    };
    PreparedRequest {
        model,
        is_streamed,
        task,
    }
}

/// Looks whether the body of a request has few enough values. What is no JSON is found out later.
fn check_values(body: &[u8]) -> Result<(), GatewayError> {
    if values(body, MAX_VALUES) <= MAX_VALUES {
        return Ok(());
    }
    let message = format!("the request body has more than {MAX_VALUES} JSON values");
    Err(GatewayError::invalid_request(message, None))
}

/// How many objects, lists and commas stand in a text, but not in its strings; it counts no further than behind the most.
fn values(body: &[u8], most: usize) -> usize {
    // Each has at least one byte.
    if body.len() <= most {
        return 0;
    }
    let (mut values, mut is_in_string, mut is_escaped) = (0, false, false);
    for byte in body {
        match byte {
            _ if is_escaped => is_escaped = false,
            b'\\' => is_escaped = is_in_string,
            b'"' => is_in_string = !is_in_string,
            b'{' | b'[' | b',' if !is_in_string => {
                values += 1;
                if values > most {
                    break;
                }
            }
            _ => {}
        }
    }
    values
}
