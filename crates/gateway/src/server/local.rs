//! A model in the same process.

use std::pin::Pin;

use bytes::Bytes;
use http::{Request, Response};

use crate::server::body::{Body, BoxError};

/// A model in this process, recorded replies, or another transport to a server. Closures with this signature implement it, as
/// the example of [`Gateway`](crate::Gateway) shows.
///
/// It receives `POST /v1/chat/completions` with a JSON body, and `GET /v1/models`. The response has a status, a content type
/// and a body: an event stream if requested; `application/json` is a complete answer. The body is polled only as fast as the
/// client reads. The future and the body are dropped when they are no longer needed or a timeout expires.
pub trait LocalModel: Send + Sync {
    /// Answers a request. The client receives an error as one of the model server, with status 502.
    fn answer(&self, request: Request<Bytes>) -> ResponseFuture;
}

/// The future of a [`LocalModel`]'s response.
pub type ResponseFuture = Pin<Box<dyn Future<Output = Result<Response<Body>, BoxError>> + Send>>;

impl<F, A> LocalModel for F
where
    F: Fn(Request<Bytes>) -> A + Send + Sync,
    A: Future<Output = Result<Response<Body>, BoxError>> + Send + 'static,
{
    fn answer(&self, request: Request<Bytes>) -> ResponseFuture {
        Box::pin(self(request))
    }
}
