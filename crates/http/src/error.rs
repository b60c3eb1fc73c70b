//! Errors.

use std::error::Error;
use std::fmt::Write as _;
use std::io;
use std::time::Duration;

use hyper_util::client::legacy::Error as ClientError;
use rustls::CertificateError;

/// An error of a request or a response.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{}", self.message_for("the server"))]
pub struct HttpError {
    kind: HttpErrorKind,
    /// A predicate that follows the name of the server.
    words: String,
}

/// The kind of an [`HttpError`].
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum HttpErrorKind {
    /// The settings are invalid.
    Settings,
    /// Connecting failed.
    Connect,
    /// The connection was refused.
    ConnectionRefused,
    /// The name resolves only to addresses that are not allowed.
    NotAllowed,
    /// A timeout.
    Timeout,
    /// The connection failed.
    Broken,
    /// The body is too long.
    TooLong,
}

impl HttpError {
    pub(crate) fn new(kind: HttpErrorKind, words: impl Into<String>) -> Self {
        let words = words.into();
        Self { kind, words }
    }

    pub(crate) fn late(what: &str, time: Duration) -> Self {
        let time = match time.as_secs() {
            _ if time < Duration::from_secs(2) => format!("{} ms", time.as_millis()),
            seconds => format!("{seconds} seconds"),
        };
        Self::new(HttpErrorKind::Timeout, format!("{what} for {time}"))
    }

    pub(crate) fn too_long(most: usize) -> Self {
        let words = format!("sent more than {most} bytes");
        Self::new(HttpErrorKind::TooLong, words)
    }

    pub(crate) fn sending(error: &ClientError) -> Self {
        if chain(error.source()).any(<dyn Error>::is::<NotAllowed>) {
            return Self::new(
                HttpErrorKind::NotAllowed,
                "resolves only to addresses that are not allowed",
            );
        }
        let words = causes(error);
        if !error.is_connect() {
            let words = format!("closed the connection: {words}");
            return Self::new(HttpErrorKind::Broken, words);
        }
        let mut io = chain(error.source()).filter_map(<dyn Error>::downcast_ref::<io::Error>);
        if io.any(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
            let words = "cannot be reached: connection refused";
            return Self::new(HttpErrorKind::ConnectionRefused, words);
        }
        Self::new(
            HttpErrorKind::Connect,
            format!("cannot be reached: {words}"),
        )
    }

    pub(crate) fn reading(error: &(dyn Error + 'static)) -> Self {
        let words = format!("ended its response early: {}", chained(Some(error)));
        Self::new(HttpErrorKind::Broken, words)
    }

    /// The kind of an [`HttpError`].
    pub fn kind(&self) -> HttpErrorKind {
        self.kind
    }

    /// Whether connecting failed, so that the server has not seen the request.
    pub fn is_connect(&self) -> bool {
        matches!(
            self.kind,
            HttpErrorKind::Connect | HttpErrorKind::ConnectionRefused
        )
    }

    /// Returns a sentence about a server, such as `the model's server at http://…`.
    pub fn message_for(&self, server: &str) -> String {
        if self.kind == HttpErrorKind::Settings {
            self.words.clone()
        } else {
            format!("{server} {}", self.words)
        }
    }
}

/// A name resolves only to addresses that [`HttpSettings::allow`](crate::HttpSettings::allow) rejects.
#[derive(Debug, thiserror::Error)]
#[error("none of its addresses is allowed")]
pub(crate) struct NotAllowed;

/// Returns the causes of an error without the error itself, whose URL may contain a secret.
pub fn causes(error: &dyn Error) -> String {
    chained(error.source())
}

/// An error and all its causes.
fn chain<'e>(
    error: Option<&'e (dyn Error + 'static)>,
) -> impl Iterator<Item = &'e (dyn Error + 'static)> {
    std::iter::successors(error, |&error| error.source())
}

fn chained(error: Option<&(dyn Error + 'static)>) -> String {
    let mut text = String::new();
    for error in chain(error) {
        let message = in_words(error);
        // Some repeat the message of their cause.
        if !text.ends_with(&message) {
            let colon = if text.is_empty() { "" } else { ": " };
            let _ = write!(text, "{colon}{message}");
        }
    }
    if text.is_empty() {
        text.push_str("unknown error");
    }
    text
}

/// Formats an error, with plain messages for certificate errors.
fn in_words(error: &(dyn Error + 'static)) -> String {
    use CertificateError as Wrong;
    let mut inner = error;
    // It is nested, and not as a cause.
    while let Some(packed) = inner
        .downcast_ref::<io::Error>()
        .and_then(io::Error::get_ref)
    {
        inner = packed;
    }
    let Some(rustls::Error::InvalidCertificate(wrong)) = inner.downcast_ref() else {
        return error.to_string();
    };
    let words = match wrong {
        Wrong::Expired | Wrong::ExpiredContext { .. } => "its certificate has expired",
        Wrong::NotValidYet | Wrong::NotValidYetContext { .. } => "its certificate is not valid yet",
        Wrong::NotValidForName | Wrong::NotValidForNameContext { .. } => {
            "its certificate is for another name"
        }
        Wrong::Revoked => "its certificate was revoked",
        Wrong::UnknownIssuer => {
            "its certificate is issued by a certificate authority this system does not trust"
        }
        _ => "its certificate cannot be trusted; it may be self-signed",
    };
    words.to_owned()
}
