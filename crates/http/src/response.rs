//! Responses.

use std::error::Error;
use std::future::{Future as _, poll_fn};
use std::pin::Pin;
use std::task::{Context, Poll};
use std::time::Duration;

use http::response::Parts;
use http::{HeaderMap, Response, header};
use http_body_util::BodyExt as _;
use http_body_util::combinators::UnsyncBoxBody;
use hyper::body::{Body, Bytes, Frame};
use tokio::time::{Instant, Sleep, sleep_until};

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
    /// Elapses no later than the timeout of the current chunk. It is moved only then: a timer for each chunk of a stream takes as
    /// long as reading it.
    timer: Option<Pin<Box<Sleep>>>,
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
            timer: None,
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

    /// Returns the content encoding of the body, such as `gzip`, unless it has none.
    pub fn encoding(&self) -> Option<String> {
        let mut named = self.headers().get_all(header::CONTENT_ENCODING).iter();
        let is_plain = |value: &[u8]| value.trim_ascii().eq_ignore_ascii_case(b"identity");
        let encoded = named.find(|value| !is_plain(value.as_bytes()))?;
        Some(String::from_utf8_lossy(encoded.as_bytes()).into_owned())
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
            let latest = self.latest();
            let frame = poll_fn(|context| self.poll_frame(latest, context));
            let Some(frame) = frame.await? else {
                return Ok(None);
            };
            // Trailers are not part of the body.
            let Ok(piece) = Frame::into_data(frame) else {
                continue;
            };
            let left = self.left.checked_sub(piece.len());
            self.left = left.ok_or_else(|| HttpError::too_long(LONGEST))?;
            return Ok(Some(piece));
        }
    }

    /// Returns the time by which the next chunk must have arrived, and whether it is that of the total timeout.
    fn latest(&self) -> Option<(Instant, bool)> {
        // A time that no clock shows has no end.
        let idle = Instant::now().checked_add(self.waits.idle);
        match (idle, self.deadline) {
            (Some(idle), Some(deadline)) if idle <= deadline => Some((idle, false)),
            (_, Some(deadline)) => Some((deadline, true)),
            (idle, None) => idle.map(|idle| (idle, false)),
        }
    }

    fn poll_frame(
        &mut self,
        latest: Option<(Instant, bool)>,
        context: &mut Context<'_>,
    ) -> Poll<Result<Option<Frame<Bytes>>, HttpError>> {
        if let Poll::Ready(frame) = Pin::new(&mut self.body).poll_frame(context) {
            let frame = frame.transpose();
            return Poll::Ready(frame.map_err(|error| HttpError::reading(&*error)));
        }
        let Some((latest, is_whole)) = latest else {
            return Poll::Pending;
        };
        let timer = self
            .timer
            .get_or_insert_with(|| Box::pin(sleep_until(latest)));
        while timer.as_mut().poll(context).is_ready() {
            if timer.deadline() >= latest {
                return Poll::Ready(Err(self.late(is_whole)));
            }
            timer.as_mut().reset(latest);
        }
        Poll::Pending
    }

    fn late(&self, is_whole: bool) -> HttpError {
        if is_whole {
            HttpError::late("has not finished its response", self.waits.whole)
        } else {
            HttpError::late("stopped sending data", self.waits.idle)
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
