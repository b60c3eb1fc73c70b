//! Response bodies with the gateway's keys removed.

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};

use bytes::Bytes;
use http::HeaderValue;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use hyper::body::{Body as HttpBody, Frame, SizeHint};
use memchr::memmem;

use crate::api::ClientApi;
use crate::error::GatewayError;
use crate::server::body::{Body, BoxError, Response};
use crate::server::body_filter::{BodyFilter, BodyKind, RedactedKeys};
use crate::server::key_limits::RequestPermit;
use crate::server::produced_body::PIECE;
use crate::server::response;

/// Removes the gateway's keys from a response to a request of this API and filters its body ([`BodyFilter`]). The body holds the
/// request's permit until it has been read or dropped.
pub(super) async fn filtered(
    api: ClientApi,
    mut response: Response,
    keys: &RedactedKeys,
    permit: Arc<RequestPermit>,
    request_id: &str,
) -> Response {
    let headers = response.headers_mut();
    let holds_key = |value: &HeaderValue| {
        let mut keys = keys.iter();
        keys.any(|key| memmem::find(value.as_bytes(), key.as_bytes()).is_some())
    };
    let with_key = headers.iter().filter(|(_, value)| holds_key(value));
    let with_key: Vec<_> = with_key.map(|(name, _)| name.clone()).collect();
    for name in with_key {
        headers.remove(name);
    }
    let text = |name| headers.get(name).and_then(|value| value.to_str().ok());
    let content_type = text(CONTENT_TYPE).unwrap_or_default().trim();
    let content_type = content_type.to_ascii_lowercase();
    let kind = match text(CONTENT_ENCODING) {
        // An encoded body cannot be searched.
        Some(encoding) if encoding != "identity" => BodyKind::Other,
        _ if content_type.starts_with("text/event-stream") => BodyKind::Events,
        // The arguments of a call are JSON in these APIs, and may have any field.
        _ if matches!(api, ClientApi::Messages | ClientApi::Ollama) => BodyKind::Other,
        _ if content_type.starts_with("application/json") => BodyKind::Json,
        _ => BodyKind::Other,
    };
    let (head, mut body) = response.into_parts();
    let mut filter = BodyFilter::new(keys, kind);
    // A body of known length is complete already. Its new length must be known too.
    if body.size_hint().exact().is_some()
        && let Some(mut filter) = filter.take()
    {
        let Ok(whole) = body.collect().await else {
            return response::error(
                api,
                &GatewayError::upstream("the response could not be created"),
                request_id,
            );
        };
        let begin = filter.feed(whole.to_bytes());
        let end = filter.finish();
        let is_all = end.is_empty();
        body = Body::from(if is_all {
            begin
        } else {
            [begin, end].concat().into()
        });
    }
    let body = FilteredBody {
        body,
        filter,
        is_finished: false,
        rest: Bytes::new(),
        _permit: permit,
    };
    Response::from_parts(head, Body::new(body))
}

/// A body in pieces of at most [`PIECE`] bytes, which `hyper` polls only as fast as the client reads.
struct FilteredBody {
    body: Body,
    filter: Option<BodyFilter>,
    is_finished: bool,
    /// The rest of the current piece.
    rest: Bytes,
    _permit: Arc<RequestPermit>,
}

impl HttpBody for FilteredBody {
    type Data = Bytes;
    type Error = BoxError;

    fn poll_frame(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<Bytes>, BoxError>>> {
        let this = &mut *self;
        while this.rest.is_empty() {
            if this.is_finished {
                return Poll::Ready(None);
            }
            let next = ready!(Pin::new(&mut this.body).poll_frame(context));
            this.rest = match (
                next.map(|next| next.map(Frame::into_data)),
                &mut this.filter,
            ) {
                (Some(Ok(Ok(piece))), Some(filter)) => filter.feed(piece),
                (Some(Ok(Ok(piece))), None) => piece,
                (Some(Ok(Err(frame))), _) => return Poll::Ready(Some(Ok(frame))),
                // The held bytes are dropped, so that no client mistakes the part for the whole.
                (Some(Err(error)), _) => return Poll::Ready(Some(Err(error))),
                (None, filter) => {
                    this.is_finished = true;
                    let finished = filter.as_mut().map(BodyFilter::finish);
                    finished.unwrap_or_default()
                }
            };
        }
        let piece = this.rest.split_to(this.rest.len().min(PIECE));
        Poll::Ready(Some(Ok(Frame::data(piece))))
    }

    fn is_end_stream(&self) -> bool {
        let is_finished = self.is_finished || (self.filter.is_none() && self.body.is_end_stream());
        self.rest.is_empty() && is_finished
    }

    fn size_hint(&self) -> SizeHint {
        if self.filter.is_some() {
            return SizeHint::default();
        }
        let rest = self.rest.len() as u64;
        let hint = self.body.size_hint();
        let mut all = SizeHint::new();
        all.set_lower(hint.lower().saturating_add(rest));
        if let Some(upper) = hint.upper() {
            all.set_upper(upper.saturating_add(rest));
        }
        all
    }
}
