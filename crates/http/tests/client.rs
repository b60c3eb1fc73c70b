//! Addresses, settings, error messages and endless responses.

use std::convert::Infallible;
use std::error::Error;
use std::fmt;
use std::io;
use std::time::Duration;

use http_body_util::StreamBody;
use plaincall_http::http::{Request, Response};
use plaincall_http::{
    Bytes, HttpClient, HttpError, HttpErrorKind, HttpResponse, HttpSettings, Proxy, Waits, causes,
    check_address,
};
use plaincall_testkit::model_server::{ModelServer, Script};
use rustls::CertificateError;

/// An error whose cause is another.
#[derive(Debug)]
struct Because(io::Error);

impl fmt::Display for Because {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("it failed")
    }
}

impl Error for Because {
    fn source(&self) -> Option<&(dyn Error + 'static)> {
        Some(&self.0)
    }
}

#[test]
fn why_it_failed() {
    let certificate = |wrong| io::Error::other(rustls::Error::InvalidCertificate(wrong));
    for (error, expected) in [
        (
            certificate(CertificateError::Expired),
            "its certificate has expired",
        ),
        (
            certificate(CertificateError::UnknownIssuer),
            "its certificate is issued by a certificate authority this system does not trust",
        ),
        (
            io::Error::other(certificate(CertificateError::NotValidForName)),
            "its certificate is for another name",
        ),
        (
            certificate(CertificateError::BadEncoding),
            "its certificate cannot be trusted; it may be self-signed",
        ),
        (io::Error::other("cut"), "cut"),
    ] {
        assert_eq!(causes(&Because(error)), expected);
    }
}

#[test]
fn addresses() {
    for (url, words) in [
        ("http://localhost:11434/v1", ""),
        ("HTTPS://api.example", ""),
        ("http://[::1]:8000/v1?key=x", ""),
        ("localhost:11434", "did you mean http://localhost:11434?"),
        (
            "localhost:11434/v1",
            "did you mean http://localhost:11434/v1?",
        ),
        ("api.example?key=word@", "did you mean http://api.example?"),
        ("a b", "a b: "),
        ("/v1", "/v1: "),
        ("ftp://a/v1", "begins with http://"),
        ("", ": "),
        ("http://", "http://: "),
        ("name:word@a/v1", "a user name or a password"),
        ("http://name:word@a/v1", "a user name or a password"),
        ("https://name@a", "a user name or a password"),
        ("http:///name:word@a/v1", "a user name or a password"),
    ] {
        let message = check_address(url).err().unwrap_or_default();
        assert!(message.contains(words), "{url}: {message}");
        assert!(!message.contains("word@"), "{url}: {message}");
        assert_eq!(message.is_empty(), words.is_empty(), "{url}: {message}");
    }
}

#[tokio::test]
async fn proxies() {
    let server = ModelServer::start(vec![Script::stream(&["Hello."], "stop")]).await;
    let local = format!("http://{}", server.address);
    for (url, is_good) in [
        ("http://name:word@proxy.example:3128", true),
        ("https://proxy.example", true),
        ("name:word@proxy.example", true),
        ("127.0.0.1:1", true),
        ("socks5://name:word@proxy.example", false),
        ("", false),
    ] {
        let mut settings = HttpSettings::default();
        settings.proxy = Some(Proxy::all(url));
        // Requests to this machine, and to excepted names, use none.
        for (except, to, uses_it) in [
            ("", &*local, false),
            ("", "http://a.invalid", true),
            ("*", "http://a.invalid", false),
            ("a.invalid", "https://a.invalid", false),
            ("", "https://a.invalid", true),
        ] {
            let mut settings = settings.clone();
            if let Some(proxy) = &mut settings.proxy {
                except.clone_into(&mut proxy.except);
            }
            let client = HttpClient::new(&settings).unwrap();
            let request = Request::get(to).body(Bytes::new()).unwrap();
            let sent = tokio::time::timeout(
                Duration::from_secs(5),
                client.send(request, Waits::default()),
            );
            let error = sent.await.ok().and_then(Result::err);
            let is_about_proxy =
                error.as_ref().map(HttpError::kind) == Some(HttpErrorKind::Settings);
            assert_eq!(is_about_proxy, uses_it && !is_good, "{url} {to}: {error:?}");
            let message = error.map(|error| error.to_string());
            let message = format!("{settings:?} {message:?}");
            assert!(!message.contains("word"), "{message}");
        }
    }
}

/// A name that leads only to addresses that may not be asked.
#[tokio::test]
async fn names_that_may_not_be_asked() {
    let server = ModelServer::start(vec![Script::stream(&["Hello."], "stop")]).await;
    let url = format!("http://localhost:{}", server.address.port());
    let mut settings = HttpSettings::default();
    for (allow, expected) in [
        (None, None),
        (
            Some((|_| false) as fn(_) -> _),
            Some(HttpErrorKind::NotAllowed),
        ),
    ] {
        settings.allow = allow;
        let client = HttpClient::new(&settings).unwrap();
        let request = Request::get(&url).body(Bytes::new()).unwrap();
        let sent = client.send(request, Waits::default()).await;
        assert_eq!(sent.err().map(|error| error.kind()), expected);
    }
    assert_eq!(server.seen().requests.len(), 1);
}

/// A stream also ends, regardless of its contents.
#[tokio::test]
async fn streams_without_an_end() {
    let piece = Bytes::from(vec![b'\n'; 1 << 20]);
    let pieces = futures_util::stream::repeat_with(move || {
        Ok::<_, Infallible>(hyper::body::Frame::data(piece.clone()))
    });
    let mut response = HttpResponse::new(Response::new(StreamBody::new(pieces)), Waits::default());
    let error = loop {
        match response.piece().await {
            Ok(piece) => assert!(piece.is_some()),
            Err(error) => break error,
        }
    };
    assert_eq!(error.kind(), HttpErrorKind::TooLong);
    assert_eq!(
        error.to_string(),
        "the server sent more than 536870912 bytes"
    );
}
