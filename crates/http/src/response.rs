//! Responses.

use std::error::Error;
use std::future::Future;
use std::time::Duration;

use http::response::Parts;
use http::{HeaderMap, Response, header};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Bytes, Frame};
use tokio::time::Instant;

use crate::error::HttpError;

type BoxError = Box<dyn Error + Send + Sync>;

/// The timeout of the body of an error.
const ERROR_TIME: Duration = Duration::from_secs(2);
/// The largest body of an error, in bytes.
const ERROR_BYTES: usize = 64 << 10;
/// The largest body, in bytes, including empty events. An event stream takes at least a hundred bytes per word, so replies
/// of a million words fit.
const LONGEST: usize = 512 << 20;

/// The timeouts of a response.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// For its headers. Default: 1 minute.
    pub first: Duration,
    /// For each chunk of its body. Default: 1 minute.
    pub idle: Duration,
    /// In total, from the request on. Default: 5 minutes.
    pub whole: Duration,
}

impl Default for Waits {
    fn default() -> Self {
        Self::new(
            Duration::from_mins(1),
            Duration::from_mins(1),
            Duration::from_mins(5),
        )
    }
}

impl Waits {
    /// Creates timeouts.
    pub const fn new(first: Duration, idle: Duration, whole: Duration) -> Self {
        Self { first, idle, whole }
    }

    /// Creates the same timeout for all.
    pub const fn all(time: Duration) -> Self {
        Self::new(time, time, time)
    }
}

/// A response with its headers. Dropping it closes the connection.
pub struct HttpResponse {
    head: Parts,
    body: UnsyncBoxBody<Bytes, BoxError>,
    waits: Waits,
    deadline: Option<Instant>,
    /// How much of the body may follow, in bytes.
    left: usize,
}

impl HttpResponse {
    /// Creates a response from another source, such as a model in this process.
    pub fn new<B>(response: Response<B>, waits: Waits) -> Self
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        Self::begun(response, waits, Instant::now())
    }

    pub(crate) fn begun<B>(response: Response<B>, waits: Waits, asked: Instant) -> Self
    where
        B: Body<Data = Bytes, Error: Into<BoxError>> + Send + 'static,
    {
        let (head, body) = response.into_parts();
        Self {
            head,
            body: body.map_err(Into::into).boxed_unsync(),
            waits,
            // A time that no clock shows has no end.
            deadline: asked.checked_add(waits.whole),
            left: LONGEST,
        }
    }

    /// Returns the status.
    pub fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    /// Returns whether the status is from 200 to 299.
    pub fn is_success(&self) -> bool {
        self.head.status.is_success()
    }

    /// Returns the headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// Returns a header; empty if it is missing or not text.
    pub fn header(&self, name: &header::HeaderName) -> &str {
        let value = self.headers().get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// Returns the content type in lower case; empty if there is none.
    pub fn content_type(&self) -> String {
        let value = self.header(&header::CONTENT_TYPE);
        value.trim().to_ascii_lowercase()
    }

    /// Returns the next chunk of the body. Cancel safe.
    ///
    /// # Errors
    /// Returns an error on a timeout, if the connection fails, or if the body is too large.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let frame = within(
                self.waits.idle,
                "stopped sending data",
                self.deadline,
                self.waits.whole,
                self.body.frame(),
            );
            let Some(frame) = frame.await? else {
                return Ok(None);
            };
            let frame = frame.map_err(|error| HttpError::reading(&*error))?;
            // Trailers are not part of the body.
            let Ok(piece) = Frame::into_data(frame) else {
                continue;
            };
            let left = self.left.checked_sub(piece.len());
            self.left = left.ok_or_else(|| HttpError::too_long(LONGEST))?;
            return Ok(Some(piece));
        }
    }

    /// Reads the rest of the body and appends it to `begun`.
    ///
    /// # Errors
    /// Returns an error if the body has more than `most` bytes, on a timeout, or if the connection fails.
    pub async fn body(&mut self, mut begun: Vec<u8>, most: usize) -> Result<Vec<u8>, HttpError> {
        while let Some(piece) = self.piece().await? {
            if begun.len() + piece.len() > most {
                return Err(HttpError::too_long(most));
            }
            begun.extend_from_slice(&piece);
        }
        Ok(begun)
    }

    /// Reads the beginning of the body of an error, within a short time, and appends it to `begun`.
    pub async fn error_body(&mut self, mut begun: Vec<u8>) -> Vec<u8> {
        let gathered = async {
            while begun.len() < ERROR_BYTES
                && let Ok(Some(piece)) = self.piece().await
            {
                begun.extend_from_slice(&piece);
            }
        };
        // What has come is enough.
        let _ = tokio::time::timeout(ERROR_TIME, gathered).await;
        begun.truncate(ERROR_BYTES);
        begun
    }
}

/// Waits at most this long, and not beyond the total deadline.
pub(crate) async fn within<F: Future>(
    wait: Duration,
    what: &str,
    deadline: Option<Instant>,
    whole: Duration,
    future: F,
) -> Result<F::Output, HttpError> {
    let latest = Instant::now().checked_add(wait);
    let (at, is_whole) = match (latest, deadline) {
        (Some(latest), Some(deadline)) if deadline < latest => (deadline, true),
        (None, Some(deadline)) => (deadline, true),
        (Some(latest), _) => (latest, false),
        (None, None) => return Ok(future.await),
    };
    tokio::time::timeout_at(at, future).await.map_err(|_| {
        if is_whole {
            HttpError::late("has not finished its response", whole)
        } else {
            HttpError::late(what, wait)
        }
    })
}
