//! A model in the same process.

use std::error::Error;
use std::pin::Pin;

use axum::body::{Body, Bytes};
use axum::http::{Request, Response};

/// What answers in the place of a model server: a model in this process, recorded replies, or another way to a server.
///
/// It is asked as a server would be: `POST /v1/chat/completions` with a body of JSON, and `GET /v1/models`. The answer
/// has a status, a content type and a body, which is an event stream if the request wants one; a body that is `application/json`
/// is taken for a whole answer. The pieces of the body are asked for one by one, so nothing is gathered for a client
/// that reads slowly, and what waits for longer than the timeouts is given up. What is not wanted any more is dropped: the
/// future as well as the body.
///
/// Every function that answers so is one, as the example of [`Gateway`](crate::Gateway) shows.
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
