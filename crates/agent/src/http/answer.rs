//! A request that is sent, and the answer piece by piece.

use std::error::Error;
use std::future::Future;
use std::io;
use std::ops::Deref;
use std::time::Duration;

#[cfg(feature = "builtin")]
use reqwest::Url;
#[cfg(feature = "http")]
use reqwest::header::CONTENT_TYPE;
use reqwest::header::HeaderMap;
use reqwest::{RequestBuilder, Response};
use tokio::time::Instant;

use super::{HttpError, HttpErrorKind, causes};

/// How long is waited for the body of an error: the status is known already.
#[cfg(feature = "http")]
const ERROR_TIME: Duration = Duration::from_secs(2);
/// How much of such a body is read, in bytes.
#[cfg(feature = "http")]
const ERROR_BYTES: usize = 64 << 10;
/// How long a body may be at most, in bytes, also one of events that say nothing. A stream takes a hundred bytes and more for
/// each word: so much holds replies of a million words.
const LONGEST: usize = 512 << 20;

/// How long is waited for an answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub struct Waits {
    /// For its head.
    pub first: Duration,
    /// For each piece of its body.
    pub idle: Duration,
    /// For all of it, from the moment of asking.
    pub whole: Duration,
}

impl Default for Waits {
    /// A minute for the head and for each piece, five for all.
    fn default() -> Self {
        Self {
            first: Duration::from_mins(1),
            idle: Duration::from_mins(1),
            whole: Duration::from_mins(5),
        }
    }
}

#[cfg(feature = "builtin")]
impl Waits {
    /// The same time for all.
    pub(crate) const fn all(time: Duration) -> Self {
        Self {
            first: time,
            idle: time,
            whole: time,
        }
    }
}

/// An answer whose head has come.
pub(crate) struct Answer {
    response: Response,
    idle: Duration,
    whole: Duration,
    deadline: Option<Instant>,
    /// How much of the body may still come, in bytes.
    left: usize,
}

/// Sends a request, and waits for the head of the answer. Dropping the future, or the answer, closes the connection.
///
/// # Errors
/// No connection came about, or no head in time. A status that is none of success is no error.
pub(crate) async fn send(request: RequestBuilder, waits: Waits) -> Result<Answer, HttpError> {
    // A time so far away that no clock shows it is none.
    let deadline = Instant::now().checked_add(waits.whole);
    let first = waits.first.min(waits.whole);
    let sent = within(
        first,
        deadline,
        waits.whole,
        "has not begun to answer",
        request.send(),
    )
    .await?;
    Ok(Answer {
        response: sent.map_err(|error| HttpError::sending(&error))?,
        idle: waits.idle,
        whole: waits.whole,
        deadline,
        left: LONGEST,
    })
}

impl Answer {
    pub(crate) fn status(&self) -> u16 {
        self.response.status().as_u16()
    }

    pub(crate) fn headers(&self) -> &HeaderMap {
        self.response.headers()
    }

    /// What kind of body it has, in small letters; empty if that is not said.
    #[cfg(feature = "http")]
    pub(crate) fn content_type(&self) -> String {
        let value = self.headers().get(CONTENT_TYPE);
        let text = value.and_then(|value| value.to_str().ok());
        text.unwrap_or_default().trim().to_ascii_lowercase()
    }

    /// Where it came from, after redirects.
    #[cfg(feature = "builtin")]
    pub(crate) fn url(&self) -> &Url {
        self.response.url()
    }

    /// The next piece of the body. Dropping the future loses nothing.
    ///
    /// # Errors
    /// Nothing came in time, or the connection broke, or it is far too long.
    pub(crate) async fn piece(
        &mut self,
    ) -> Result<Option<impl Deref<Target = [u8]> + use<>>, HttpError> {
        let chunk = self.response.chunk();
        let piece = within(
            self.idle,
            self.deadline,
            self.whole,
            "has fallen silent",
            chunk,
        )
        .await?;
        let piece = piece.map_err(|error| HttpError::reading(&error))?;
        let length = piece.as_deref().map_or(0, <[u8]>::len);
        self.left = self
            .left
            .checked_sub(length)
            .ok_or_else(|| HttpError::too_long(LONGEST))?;
        Ok(piece)
    }

    /// The whole body.
    ///
    /// # Errors
    /// It is longer than this many bytes, or did not come in time, or the connection broke.
    #[cfg(feature = "http")]
    pub(crate) async fn body(&mut self, most: usize) -> Result<Vec<u8>, HttpError> {
        let mut body = Vec::new();
        while let Some(piece) = self.piece().await? {
            if body.len() + piece.len() > most {
                return Err(HttpError::too_long(most));
            }
            body.extend_from_slice(&piece);
        }
        Ok(body)
    }

    /// The beginning of the body of an error, as far as it comes soon.
    #[cfg(feature = "http")]
    pub(crate) async fn error_body(&mut self) -> Vec<u8> {
        let mut body = Vec::new();
        let gathered = async {
            while body.len() < ERROR_BYTES
                && let Ok(Some(piece)) = self.piece().await
            {
                body.extend_from_slice(&piece);
            }
        };
        // What has come is enough.
        let _ = tokio::time::timeout(ERROR_TIME, gathered).await;
        body.truncate(ERROR_BYTES);
        body
    }
}

/// Waits this long at most, and not beyond the deadline of the whole.
async fn within<F: Future>(
    wait: Duration,
    deadline: Option<Instant>,
    whole: Duration,
    what: &str,
    future: F,
) -> Result<F::Output, HttpError> {
    let waited = tokio::time::timeout(wait, future);
    let waited = match deadline {
        Some(deadline) => tokio::time::timeout_at(deadline, waited).await,
        None => Ok(waited.await),
    };
    let late = |what: &str, time: Duration| {
        HttpError::new(
            HttpErrorKind::Timeout,
            format!("{what} for {}", seconds(time)),
        )
    };
    match waited {
        Ok(Ok(output)) => Ok(output),
        Ok(Err(_)) => Err(late(what, wait)),
        Err(_) => Err(late("has not finished its answer", whole)),
    }
}

fn seconds(time: Duration) -> String {
    match time.as_secs() {
        _ if time < Duration::from_secs(2) => format!("{} ms", time.as_millis()),
        seconds => format!("{seconds} seconds"),
    }
}

/// Whether a machine answers, and no program there.
fn is_refused(error: &dyn Error) -> bool {
    let mut cause = error.source();
    while let Some(error) = cause {
        let io = error.downcast_ref::<io::Error>();
        if io.is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            return true;
        }
        cause = error.source();
    }
    false
}

impl HttpError {
    fn too_long(most: usize) -> Self {
        Self::new(
            HttpErrorKind::TooLong,
            format!("has answered with more than {most} bytes"),
        )
    }

    fn sending(error: &reqwest::Error) -> Self {
        let causes = causes(error);
        if error.is_connect() && is_refused(error) {
            return Self::new(
                HttpErrorKind::NobodyListens,
                "cannot be reached: the connection is refused",
            );
        }
        if error.is_connect() {
            return Self::new(
                HttpErrorKind::Connect,
                format!("cannot be reached: {causes}"),
            );
        }
        if error.is_builder() || error.is_redirect() {
            return Self::new(HttpErrorKind::Broken, format!("cannot be asked: {causes}"));
        }
        Self::new(
            HttpErrorKind::Broken,
            format!("has closed the connection: {causes}"),
        )
    }

    fn reading(error: &reqwest::Error) -> Self {
        Self::new(
            HttpErrorKind::Broken,
            format!("has broken off its answer: {}", causes(error)),
        )
    }
}

#[cfg(test)]
mod tests {
    use plaincall_testkit::model_server::{Head, ModelServer, Script};

    use super::*;
    use crate::http::HttpSettings;

    /// A stream ends too, whatever stands in it.
    #[tokio::test]
    async fn streams_without_an_end() {
        let body = vec![b": still here\n\n".to_vec(); 20];
        let server = ModelServer::start(vec![Script::new(Head::new(200), body)]).await;
        let client = HttpSettings::default().builder().unwrap().build().unwrap();
        let request = client.get(format!("http://{}", server.address));
        let mut answer = send(request, Waits::default()).await.unwrap();
        answer.left = 100;
        let error = loop {
            match answer.piece().await {
                Ok(piece) => assert!(piece.is_some()),
                Err(error) => break error,
            }
        };
        assert_eq!(error.kind, HttpErrorKind::TooLong);
        assert_eq!(
            error.to_string(),
            "the server has answered with more than 536870912 bytes"
        );
    }
}
