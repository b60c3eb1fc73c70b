//! Prepares a request before it is sent to the model server.

use std::sync::Arc;

use plaincall_wire::openai::{ChatCompletionRequest, ErrorObject};

use crate::error::GatewayError;
use crate::reply::plan::ReplyPlan;
use crate::server::Shared;
use crate::server::request::overloaded;
use crate::translate::{Caller, Translation, translate};

/// The longest name of a model that is reported, in bytes.
const MAX_MODEL: usize = 128;
/// The longest body that is processed on the async threads, in bytes. Longer ones get a blocking thread.
const MAX_INLINE: usize = 256 << 10;

/// The maximum number of JSON values in a request body. A parsed value can take a hundred times its length. A thousand tools
/// with a hundred fields each stay far below this limit.
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

/// A request translated to plain text.
pub(super) struct Ask {
    pub(super) body: Vec<u8>,
    /// The request, if a repair round may need it.
    pub(super) request: Box<ChatCompletionRequest<'static>>,
    pub(super) plan: Box<ReplyPlan>,
}

/// Prepares the request with this body, from the caller with this key, without blocking other requests.
pub(super) async fn prepared(shared: &Arc<Shared>, body: Vec<u8>, caller: &str) -> PreparedRequest {
    if body.len() <= MAX_INLINE {
        return prepare(shared, body, caller);
    }
    let wait = shared.config.timeouts.body;
    let permit = Arc::clone(&shared.long_bodies).acquire_owned();
    let Ok(Ok(permit)) = tokio::time::timeout(wait, permit).await else {
        let words = "too many large requests: try again soon";
        return rejected(overloaded(words));
    };
    let shared = Arc::clone(shared);
    let caller = caller.to_owned();
    let preparing = tokio::task::spawn_blocking(move || {
        let prepared = prepare(&shared, body, &caller);
        // Holds the permit to the end, even if the client disconnects.
        drop(permit);
        prepared
    });
    preparing.await.unwrap_or_else(|_| {
        let words = "internal error while processing the request";
        rejected(GatewayError::new(
            500,
            ErrorObject::new("gateway_error", words),
        ))
    })
}

fn rejected(error: GatewayError) -> PreparedRequest {
    PreparedRequest {
        model: String::new(),
        is_streamed: false,
        task: Task::Reject(error),
    }
}

fn prepare(shared: &Shared, body: Vec<u8>, caller: &str) -> PreparedRequest {
    if let Err(error) = check_values(&body) {
        return rejected(error);
    }
    let request: ChatCompletionRequest<'_> = match plaincall_wire::read(&body) {
        Ok(request) => request,
        Err(error) => {
            let message = format!("the request body cannot be parsed: {error}");
            let param = Some(&*error.path).filter(|path| !path.is_empty());
            return rejected(GatewayError::invalid_request(message, param));
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
            let body = plaincall_wire::write_bytes(&upstream);
            let request = if plan.may_repair() {
                upstream.into_owned()
            } else {
                ChatCompletionRequest::default()
            };
            Task::Translate(Ask {
                body,
                request: Box::new(request),
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

/// Checks the number of JSON values in a request body. Invalid JSON is detected later.
fn check_values(body: &[u8]) -> Result<(), GatewayError> {
    if values(body, MAX_VALUES) <= MAX_VALUES {
        return Ok(());
    }
    let message = format!("the request body has more than {MAX_VALUES} JSON values");
    Err(GatewayError::invalid_request(message, None))
}

/// Counts objects, lists and commas outside strings, up to one more than `most`.
fn values(body: &[u8], most: usize) -> usize {
    // Each value has at least one byte.
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
