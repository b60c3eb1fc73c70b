//! A model's server, as the clients ask it.

use std::collections::VecDeque;
use std::fmt;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use plaincall_http::http::Request;
use plaincall_http::http::header::{
    ACCEPT, ACCEPT_ENCODING, CONTENT_TYPE, HeaderName, HeaderValue, USER_AGENT,
};
use plaincall_http::{
    HttpClient, HttpError, HttpErrorKind, HttpResponse, HttpSettings, Waits, check_address,
};
use plaincall_wire::page_title;
use plaincall_wire::sse::{Decoder, Event};
use url::Url;

use super::key::Key;
use super::refusal::{self, Asked};
use super::{ModelError, ModelErrorKind};

/// The longest answer that comes in one piece, in bytes.
const WHOLE_BYTES: usize = 64 << 20;
/// How a client names itself.
const NAME: &str = concat!("plaincall/", env!("CARGO_PKG_VERSION"));

/// Where a model is, and how it is asked.
#[derive(Clone)]
pub(super) struct Server {
    /// The beginning of its addresses.
    url: String,
    /// The header that the key goes in, and what stands before it there.
    key_header: (&'static str, &'static str),
    /// A header that always goes with a request, unless another of its name is set.
    pub(super) fixed: Option<(&'static str, &'static str)>,
    pub(super) key: Option<Key>,
    pub(super) headers: Vec<(String, Key)>,
    pub(super) waits: Waits,
    pub(super) http: HttpSettings,
    /// Made when it is first asked.
    ready: OnceLock<Result<Ready, ModelError>>,
}

#[derive(Clone)]
struct Ready {
    client: HttpClient,
    base: Url,
    headers: Vec<(HeaderName, HeaderValue)>,
}

impl fmt::Debug for Server {
    /// What stands behind a `?` in the address may be a key.
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (address, _) = self.url.split_once('?').unwrap_or((&self.url, ""));
        formatter
            .debug_struct("Server")
            .field("url", &address)
            .field("key", &self.key)
            .field("waits", &self.waits)
            .field("http", &self.http)
            .finish_non_exhaustive()
    }
}

/// How long models take: many think for minutes before they say a word.
pub(super) const WAITS: Waits = Waits::new(
    Duration::from_mins(10),
    Duration::from_mins(5),
    Duration::from_hours(1),
);

impl Server {
    pub(super) fn new(url: String, key_header: (&'static str, &'static str)) -> Self {
        Self {
            url,
            key_header,
            fixed: None,
            key: None,
            headers: Vec::new(),
            waits: WAITS,
            http: HttpSettings::default(),
            ready: OnceLock::new(),
        }
    }

    /// Changes a setting.
    pub(super) fn set(&mut self, change: impl FnOnce(&mut Self)) {
        change(self);
        self.ready = OnceLock::new();
    }

    /// Whether it can be asked, as far as that can be known before.
    pub(super) fn check(&self) -> Result<(), ModelError> {
        self.ready().map(|_| ())
    }

    /// The host's name, or nothing.
    pub(super) fn host(&self) -> Option<&str> {
        self.ready().ok()?.base.host_str()
    }

    fn ready(&self) -> Result<&Ready, ModelError> {
        let ready = self.ready.get_or_init(|| self.make());
        ready.as_ref().map_err(Clone::clone)
    }

    fn make(&self) -> Result<Ready, ModelError> {
        let refused = |message: String| ModelError::new(ModelErrorKind::Refused, message);
        let base = base(&self.url).map_err(refused)?;
        let client = HttpClient::new(&self.http);
        let client = client.map_err(|error| refused(error.to_string()))?;
        let (name, before) = self.key_header;
        let mut headers = Vec::new();
        let is_replaced = |name: &str| {
            let mut names = self.headers.iter().map(|(own, _)| own);
            names.any(|own| own.eq_ignore_ascii_case(name))
        };
        let fixed = self.fixed.filter(|(name, _)| !is_replaced(name));
        headers.extend(fixed.and_then(|(name, value)| secret_header(name, value)));
        if let Some(key) = &self.key
            && !is_replaced(name)
        {
            let value = format!("{before}{}", key.secret());
            let header = secret_header(name, &value).filter(|_| !key.secret().is_empty());
            let wrong = "the key is empty, or has characters that no header can hold";
            headers.push(header.ok_or_else(|| refused(wrong.to_owned()))?);
        }
        for (name, value) in &self.headers {
            let header = secret_header(name, value.secret());
            let wrong = || {
                refused(format!(
                    "the header `{name}` has a name or a value that no header can have"
                ))
            };
            headers.push(header.ok_or_else(wrong)?);
        }
        Ok(Ready {
            client,
            base,
            headers,
        })
    }

    /// Who is asked for what, for messages.
    pub(super) fn asked<'a>(&self, path: &'a str, model: &'a str) -> Asked<'a> {
        let base = self.ready().map(|ready| shown(&ready.base));
        Asked {
            base: base.unwrap_or_default(),
            path,
            model,
            has_key: self.key.is_some() || !self.headers.is_empty(),
        }
    }

    /// Sends a request, and reads the beginning of the answer. Keys are left out of the error.
    pub(super) async fn post(
        &self,
        path: &str,
        body: Vec<u8>,
        asked: &Asked<'_>,
    ) -> Result<Answered, ModelError> {
        let answered = self.answered(path, body, asked).await;
        answered.map_err(|error| self.conceal(error))
    }

    async fn answered(
        &self,
        path: &str,
        body: Vec<u8>,
        asked: &Asked<'_>,
    ) -> Result<Answered, ModelError> {
        let ready = self.ready()?;
        let mut url = ready.base.clone();
        url.set_path(&format!("{}{path}", url.path().trim_end_matches('/')));
        let mut request = Request::post(url.as_str())
            .header(CONTENT_TYPE, "application/json")
            .header(ACCEPT, "text/event-stream, application/json")
            // What is encoded could not be read.
            .header(ACCEPT_ENCODING, "identity")
            .header(USER_AGENT, NAME);
        for (name, value) in &ready.headers {
            request = request.header(name, value);
        }
        let request = request.body(body.into()).map_err(|error| {
            let message = format!("{} cannot be asked: {error}", asked.server());
            ModelError::new(ModelErrorKind::Refused, message)
        })?;
        let sent = ready.client.send(request, self.waits).await;
        let mut answer = sent.map_err(|error| failed(&error, asked))?;
        if (200..300).contains(&answer.status()) {
            return Answered::open(answer, asked).await;
        }
        let body = answer.error_body(Vec::new()).await;
        Err(refusal::by_status(&answer, &body, asked))
    }

    /// Leaves the keys out of an error.
    pub(super) fn conceal(&self, mut error: ModelError) -> ModelError {
        let headers = self.headers.iter().map(|(_, value)| value);
        for key in self.key.iter().chain(headers) {
            error.message = key.conceal(&error.message);
            // A scheme stands before some.
            if let Some((_, secret)) = key.secret().split_once(' ') {
                error.message = Key::new(secret).conceal(&error.message);
            }
        }
        error
    }
}

fn secret_header(name: &str, value: &str) -> Option<(HeaderName, HeaderValue)> {
    let name: HeaderName = name.parse().ok()?;
    let mut value = HeaderValue::from_str(value).ok()?;
    value.set_sensitive(true);
    Some((name, value))
}

/// The beginning of the addresses of a server.
fn base(url: &str) -> Result<Url, String> {
    check_address(url)?;
    let shown = url.split(['?', '#']).next().unwrap_or_default();
    let mut base: Url = url.parse().map_err(|error| format!("{shown}: {error}"))?;
    base.set_fragment(None);
    // The whole address of a request, as documents show it.
    let path = base.path().trim_end_matches('/');
    let path = path.strip_suffix("/chat/completions").unwrap_or(path);
    let path = path.strip_suffix("/messages").unwrap_or(path).to_owned();
    base.set_path(&path);
    Ok(base)
}

/// An address as it is told: what stands behind `?` may be a key.
fn shown(base: &Url) -> String {
    let mut base = base.clone();
    base.set_query(None);
    base.as_str().trim_end_matches('/').to_owned()
}

/// Why there is no answer.
pub(super) fn failed(error: &HttpError, asked: &Asked<'_>) -> ModelError {
    let message = error.told(&asked.server());
    let (kind, advice) = match error.kind() {
        HttpErrorKind::Settings => (ModelErrorKind::Refused, ""),
        HttpErrorKind::NobodyListens if is_this_machine(asked.base.as_str()) => {
            (ModelErrorKind::NotRunning, "; is it running?")
        }
        HttpErrorKind::Connect | HttpErrorKind::NobodyListens | HttpErrorKind::NotAllowed => (
            ModelErrorKind::Connect,
            "; is it running, and is the address right?",
        ),
        HttpErrorKind::Timeout => (ModelErrorKind::Timeout, ""),
        HttpErrorKind::Broken | HttpErrorKind::TooLong => (ModelErrorKind::Broken, ""),
    };
    ModelError::new(kind, format!("{message}{advice}"))
}

/// Whether an address is one of this machine.
fn is_this_machine(address: &str) -> bool {
    let Ok(address) = address.parse::<Url>() else {
        return false;
    };
    let host = address.host_str().unwrap_or_default();
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost"
        || host.ends_with(".localhost")
        || host
            .parse()
            .is_ok_and(|address: IpAddr| address.is_loopback())
}

/// An answer of success.
pub(super) enum Answered {
    /// It comes as a stream of events.
    Stream(Box<EventStream>),
    /// It is one JSON text.
    Whole(Vec<u8>),
}

impl Answered {
    /// Finds out which it is. Some servers answer whole though they were asked for a stream, and some do not say which.
    async fn open(mut answer: HttpResponse, asked: &Asked<'_>) -> Result<Self, ModelError> {
        let content_type = answer.content_type();
        let mut begun = Vec::new();
        if !content_type.starts_with("text/event-stream") {
            // A byte order mark may come first, and blanks.
            while begun.trim_ascii().len() < 5 && begun.len() < 4096 {
                let piece = answer
                    .piece()
                    .await
                    .map_err(|error| failed(&error, asked))?;
                let Some(piece) = piece else { break };
                begun.extend_from_slice(&piece);
            }
            let text = begun.trim_ascii_start();
            if text.starts_with(b"{") || text.starts_with(b"[") || text.is_empty() {
                let whole = answer.body(begun, WHOLE_BYTES).await;
                return whole
                    .map(Self::Whole)
                    .map_err(|error| failed(&error, asked));
            }
            if let Some(title) = page_title(&content_type, text) {
                begun = answer.error_body(begun).await;
                let title = page_title(&content_type, &begun).unwrap_or(title);
                return Err(refusal::page(&title, asked));
            }
            let is_stream = ["data:", "event", "id:", ":", "retry", "\u{FEFF}"];
            if !is_stream
                .iter()
                .any(|begin| text.starts_with(begin.as_bytes()))
            {
                begun = answer.error_body(begun).await;
                return Err(refusal::unreadable(&begun, asked));
            }
        }
        let mut events = EventStream {
            answer,
            decoder: Some(Decoder::new()),
            events: VecDeque::new(),
        };
        events
            .feed(&begun)
            .map_err(|message| broken(&message, asked))?;
        Ok(Self::Stream(Box::new(events)))
    }
}

fn broken(message: &str, asked: &Asked<'_>) -> ModelError {
    ModelError::new(
        ModelErrorKind::Broken,
        format!("the answer of {} cannot be read: {message}", asked.server()),
    )
}

/// The events of an answer.
pub(super) struct EventStream {
    answer: HttpResponse,
    decoder: Option<Decoder>,
    /// Events of the last piece.
    events: VecDeque<Event<'static>>,
}

impl EventStream {
    /// The next event. Dropping the future loses nothing.
    pub(super) async fn next(
        &mut self,
        asked: &Asked<'_>,
    ) -> Result<Option<Event<'static>>, ModelError> {
        loop {
            if let Some(event) = self.events.pop_front() {
                return Ok(Some(event));
            }
            let piece = self.answer.piece().await;
            if let Some(piece) = piece.map_err(|error| failed(&error, asked))? {
                self.feed(&piece)
                    .map_err(|message| broken(&message, asked))?;
                continue;
            }
            let Some(decoder) = self.decoder.take() else {
                return Ok(None);
            };
            let last = decoder.finish();
            let last = last.map_err(|error| broken(&error.to_string(), asked))?;
            self.events.extend(last);
            if self.events.is_empty() {
                return Ok(None);
            }
        }
    }

    fn feed(&mut self, bytes: &[u8]) -> Result<(), String> {
        let Some(decoder) = &mut self.decoder else {
            return Ok(());
        };
        for event in decoder.feed(bytes) {
            let event = event.map_err(|error| error.to_string())?;
            self.events.push_back(Event {
                name: event.name.map(|name| name.into_owned().into()),
                data: event.data.into_owned().into(),
                id: event.id,
                retry: event.retry,
            });
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::{base, shown};

    #[test]
    fn addresses() {
        for (url, expected) in [
            ("http://localhost:11434/v1", "http://localhost:11434/v1"),
            ("http://localhost:11434/v1//", "http://localhost:11434/v1"),
            ("https://api.example", "https://api.example"),
            ("http://[::1]:8000/v1", "http://[::1]:8000/v1"),
            ("https://a/v1/chat/completions", "https://a/v1"),
            ("https://a/v1/messages/", "https://a/v1"),
            ("https://a/v1?api-version=1#x", "https://a/v1"),
        ] {
            assert_eq!(shown(&base(url).unwrap()), expected);
        }
    }
}
