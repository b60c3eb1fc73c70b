//! A response, piece by piece.

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

/// How long the body of an error may take: the status is known already.
const ERROR_TIME: Duration = Duration::from_secs(2);
/// How much of such a body is read, in bytes.
const ERROR_BYTES: usize = 64 << 10;
/// The longest body, in bytes, also of a stream of events that say nothing. A stream takes a hundred bytes and more for each
/// word, so that replies of a million words fit.
const LONGEST: usize = 512 << 20;

/// How long a response may take.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// For its head. Default: 1 minute.
    pub first: Duration,
    /// For each piece of its body. Default: 1 minute.
    pub idle: Duration,
    /// For all of it, from the request on. Default: 5 minutes.
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
    /// For the head, for each piece, and for all.
    pub const fn new(first: Duration, idle: Duration, whole: Duration) -> Self {
        Self { first, idle, whole }
    }

    /// The same time for all.
    pub const fn all(time: Duration) -> Self {
        Self::new(time, time, time)
    }
}

/// A response whose head has come. Dropping it closes the connection.
pub struct HttpResponse {
    head: Parts,
    body: UnsyncBoxBody<Bytes, BoxError>,
    waits: Waits,
    deadline: Option<Instant>,
    /// How much of the body may still come, in bytes.
    left: usize,
}

impl HttpResponse {
    /// A response from elsewhere, such as a model in this process.
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

    /// The status.
    pub fn status(&self) -> u16 {
        self.head.status.as_u16()
    }

    /// The headers.
    pub fn headers(&self) -> &HeaderMap {
        &self.head.headers
    }

    /// The value of a header, if it is text; empty if there is none.
    pub fn header(&self, name: &header::HeaderName) -> &str {
        let value = self.headers().get(name);
        value.and_then(|value| value.to_str().ok()).unwrap_or("")
    }

    /// The content type in small letters; empty if there is none.
    pub fn content_type(&self) -> String {
        let value = self.header(&header::CONTENT_TYPE);
        value.trim().to_ascii_lowercase()
    }

    /// The next piece of the body. Dropping the future loses nothing.
    ///
    /// # Errors
    /// Nothing came in time, the connection broke, or the body is far too long.
    pub async fn piece(&mut self) -> Result<Option<Bytes>, HttpError> {
        loop {
            let frame = within(
                self.waits.idle,
                "has fallen silent",
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

    /// The whole body, after what has been read of it.
    ///
    /// # Errors
    /// It has more than this many bytes, did not come in time, or the connection broke.
    pub async fn body(&mut self, mut begun: Vec<u8>, most: usize) -> Result<Vec<u8>, HttpError> {
        while let Some(piece) = self.piece().await? {
            if begun.len() + piece.len() > most {
                return Err(HttpError::too_long(most));
            }
            begun.extend_from_slice(&piece);
        }
        Ok(begun)
    }

    /// The beginning of the body of an error, as far as it comes soon, after what has been read of it.
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

/// Waits this long at most, and not beyond the deadline of the whole.
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
            HttpError::late("has not finished its answer", whole)
        } else {
            HttpError::late(what, wait)
        }
    })
}
