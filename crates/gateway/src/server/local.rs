//! A model in the same process.

use std::error::Error;
use std::pin::Pin;

use axum::body::{Body, Bytes};
use axum::http::{Request, Response};

/// A model in this process, recorded replies, or another transport to a server. Functions with this signature implement it, as
/// the example of [`Gateway`](crate::Gateway) shows.
///
/// It receives `POST /v1/chat/completions` with a JSON body, and `GET /v1/models`. The response has a status, a content type
/// and a body: an event stream if requested; `application/json` is a complete answer. The body is polled only as fast as the
/// client reads. The future and the body are dropped when they are no longer needed or a timeout expires.
pub trait LocalModel: Send + Sync {
    /// Answers a request. An error is told to the client as one of the model server, with status 502.
    fn answer(&self, request: Request<Bytes>) -> Answered;
}

/// What will have answered.
pub type Answered =
    Pin<Box<dyn Future<Output = Result<Response<Body>, Box<dyn Error + Send + Sync>>> + Send>>;

impl<F, A> LocalModel for F
where
    F: Fn(Request<Bytes>) -> A + Send + Sync,
    A: Future<Output = Result<Response<Body>, Box<dyn Error + Send + Sync>>> + Send + 'static,
{
    fn answer(&self, request: Request<Bytes>) -> Answered {
        Box::pin(self(request))
    }
}
