//! The gateway inside a client library, which sends the requests itself: requests of any path in, responses as bytes out.

mod keys;
mod paths;

use bytes::Bytes;
use plaincall_config::settings::Model;
use plaincall_grammar::{Constrain, Engine};
use plaincall_tool::definitions;
use plaincall_wire::openai::read_error;
use serde_json::Value;

pub use crate::adapter::Host;
use crate::adapter::{self, Adapter, AskEnd};
use crate::api::ClientApi;
use crate::error::GatewayError;
use crate::key::Secret;
pub use crate::reply::{Flow, USAGE_WAIT};
use crate::settings::ModelSettings;
use crate::token_count::TokenCount;
use keys::Keys;
use paths::{Found, Target};

const JSON: &str = "application/json";
const CONTENT_TYPE: &str = "content-type";
/// The maximum length of the body of an error that is read, in bytes.
const MAX_ERROR: usize = 64 << 10;
/// The maximum size of an answer about tokens, which may list all of them.
const MAX_COUNT: usize = 16 << 20;
/// The headers of an answer that another body makes wrong, in addition to `content-*`.
const OF_ANSWER: [&str; 15] = [
    "accept-ranges",
    "age",
    "connection",
    "digest",
    "etag",
    "expires",
    "keep-alive",
    "last-modified",
    "location",
    "repr-digest",
    "signature",
    "signature-input",
    "trailer",
    "transfer-encoding",
    "upgrade",
];

/// Translates the requests of a client library. It does no I/O and reads no clock.
///
/// ```
/// use plaincall_gateway::transport::{Ask, Host, Next, Transport};
/// use plaincall_gateway::Secret;
///
/// let settings = serde_json::json!({"repair_rounds": 1});
/// let transport = Transport::new(b"the same secret in all instances", settings)?;
/// assert!(Transport::translates("POST", "/v1/chat/completions"));
/// let body = br#"{"messages":[{"role":"user","content":"Add."}],"tools":[{"type":"function","function":{"name":"add",
///     "parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}]}"#;
/// let host = Host::new(Secret::new("random bytes"), 1_800_000_000);
/// let Ask::Asked(mut asked) = transport.ask("/v1/chat/completions", body, host) else { panic!("it offers a tool") };
///
/// // Send `asked.body()` to `asked.target()` of the model server, and feed its answer.
/// asked.begin_answer(200, vec![("content-type".to_owned(), "application/json".to_owned())]);
/// asked.feed(br#"{"choices":[{"message":{"content":"!!!GADGET_START:add\n!!!ARG:a\n5\n!!!GADGET_END"},"finish_reason":"stop"}]}"#);
/// let (body, next) = asked.end(None);
/// assert!(matches!(next, Next::Done) && String::from_utf8_lossy(&body).contains("tool_calls"));
/// # Ok::<(), Box<dyn std::error::Error>>(())
/// ```
#[derive(Debug)]
pub struct Transport {
    adapter: Adapter,
    engine: Option<Engine>,
    headers: Vec<(String, String)>,
}

/// The outcome of [`Transport::ask`].
#[derive(Debug)]
#[non_exhaustive]
pub enum Ask {
    /// It is forwarded unchanged, and so is its answer.
    Unchanged,
    /// It is forwarded with this body, and its answer unchanged.
    Renamed(Bytes),
    /// It is translated.
    Asked(Box<Asked>),
    /// The client asked for a number of tokens.
    CountTokens(Box<CountTokens>),
    /// The client gets this response.
    Response(Response),
}

/// A response to the client, which no model wrote.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct Response {
    /// The HTTP status.
    pub status: u16,
    /// The headers, with the content type.
    pub headers: Vec<(String, String)>,
    /// The body, in the format of the client's API.
    pub body: Vec<u8>,
}

/// A translated request, whose answer is being read.
#[derive(Debug)]
pub struct Asked {
    exchange: adapter::Asked,
    api: ClientApi,
    target: String,
    /// The status and the headers of the last answer.
    status: u16,
    headers: Vec<(String, String)>,
    /// Its body, if it is an error or a redirect.
    error: Vec<u8>,
}

/// A tool that could not be offered unchanged.
#[derive(Debug, Clone)]
#[non_exhaustive]
pub struct ChangedTool {
    /// The JSON Pointer of the tool in the client's request.
    pub at: String,
    /// `true` if it was dropped, `false` if it was loosened.
    pub is_dropped: bool,
    /// The sentence for a log, without content of the request.
    pub message: String,
}

impl ChangedTool {
    fn of(tool: &definitions::ChangedTool) -> Self {
        // The rest of the place has names of the definition.
        let place = tool.reason.at.split('/').take(3);
        let at = place.collect::<Vec<&str>>().join("/");
        let change = ["loosened", "dropped"][usize::from(tool.is_dropped)];
        Self {
            message: format!("the tool at {at} of the request was {change}"),
            at,
            is_dropped: tool.is_dropped,
        }
    }
}

/// The step after the end of an answer.
#[derive(Debug)]
#[non_exhaustive]
pub enum Next {
    /// The reply is complete.
    Done,
    /// [`Asked::body`] must be sent, to repair the reply.
    Again,
    /// The client gets this response. If bytes were sent before, the error is in the last of them too.
    Response(Response),
}

/// A request for a number of tokens, which the model server counts or which is estimated.
#[derive(Debug)]
pub struct CountTokens {
    count: TokenCount,
    base: String,
    /// The answer so far.
    answer: Vec<u8>,
}

/// Returns the last value of a header.
fn value_of<'h>(headers: &'h [(String, String)], sought: &str) -> Option<&'h str> {
    let found = headers
        .iter()
        .rfind(|(name, _)| name.eq_ignore_ascii_case(sought));
    found.map(|(_, value)| value.as_str())
}

/// Returns whether the client gets a header of the model server's answer. It does not get those that describe the answer's body,
/// place or connection.
fn keeps_header(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    !name.starts_with("content-") && !OF_ANSWER.contains(&name.as_str())
}

impl Response {
    fn of_error(api: ClientApi, error: &GatewayError) -> Self {
        let mut headers = error.headers.clone();
        headers.push(("content-type".to_owned(), JSON.to_owned()));
        if error.is_final() {
            headers.push(("x-should-retry".to_owned(), "false".to_owned()));
        }
        Self {
            status: error.status,
            headers,
            body: api.error_body(error, None),
        }
    }
}

/// The minimum length of a secret, in bytes.
const LEAST_SECRET: usize = 16;

/// Why a transport cannot be created: a message for people.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct SettingsError(String);

impl Transport {
    /// Creates a transport. Instances that serve the same conversations need the same secret, of at least 16 bytes. The settings are
    /// an object with the keys of a table `[models.NAME]` (docs/configuration.md). Those of the model server's place and key have no
    /// effect: the client library knows them.
    ///
    /// # Errors
    /// Returns an error with all problems of the settings.
    pub fn new(secret: &[u8], settings: Value) -> Result<Self, SettingsError> {
        let length = secret.len();
        if length < LEAST_SECRET {
            let needs = format!("needs at least {LEAST_SECRET}; use 32 random bytes");
            return Err(SettingsError(format!(
                "`secret` has {length} bytes, and {needs}"
            )));
        }
        let model = Model::from_json(settings).map_err(|error| {
            let problems = error.problems.into_iter();
            let problems: Vec<String> = problems.map(|problem| problem.message).collect();
            SettingsError(problems.join("; "))
        })?;
        let engine = match Constrain::from(model.constrain.unwrap_or_default()) {
            Constrain::For(engine) => Some(engine),
            // Nothing asks the model server for its engine.
            Constrain::Always => {
                let message =
                    "`constrain` must name the engine of the model server here, such as \"vllm\"";
                return Err(SettingsError(message.to_owned()));
            }
            Constrain::Auto | Constrain::Never => None,
        };
        let expands = |(_, value): &(&String, &String)| value.contains("${");
        if let Some((name, _)) = model.headers.iter().find(expands) {
            return Err(SettingsError(format!(
                "`headers.{name}`: only commands replace `${{NAME}}`; pass the value of the variable"
            )));
        }
        Ok(Self {
            adapter: Adapter::new(Secret::new(secret), ModelSettings::from(&model)),
            engine,
            headers: model.headers.into_iter().collect(),
        })
    }

    /// Returns the headers of a request to the model server: the client's, and those of the settings. `is_translated` is whether the
    /// body was translated.
    pub fn upstream_headers(
        &self,
        mut headers: Vec<(String, String)>,
        is_translated: bool,
    ) -> Vec<(String, String)> {
        let is = |name: &str, other: &str| name.eq_ignore_ascii_case(other);
        let mut replaced = vec!["content-length", "transfer-encoding"];
        replaced.extend(self.headers.iter().map(|(name, _)| name.as_str()));
        if is_translated {
            replaced.extend(["accept-encoding", "content-type"]);
        }
        headers.retain(|(name, _)| !replaced.iter().any(|other| is(name, other)));
        headers.extend(self.headers.iter().cloned());
        if is_translated {
            let value = |sought| headers.iter().find(|(name, _)| is(name, sought));
            let key = value("x-api-key").filter(|_| value("authorization").is_none());
            let key = key.map(|(_, key)| ("authorization".to_owned(), format!("Bearer {key}")));
            headers.extend(key);
            headers.push(("content-type".to_owned(), JSON.to_owned()));
            // Encoded answers could not be read.
            headers.push(("accept-encoding".to_owned(), "identity".to_owned()));
        }
        headers
    }

    /// Returns whether a request of any content type must be passed to [`ask`](Self::ask). All others are forwarded unchanged.
    pub fn translates(method: &str, target: &str) -> bool {
        method == "POST" && paths::find(split_query(target).0).is_some()
    }

    /// Translates a request to this path and query, both encoded as in the request.
    pub fn ask(&self, target: &str, body: &[u8], host: Host) -> Ask {
        let (path, query) = split_query(target);
        let Some(Found { target, is_certain }) = paths::find(path) else {
            return Ask::Unchanged;
        };
        let keys = Keys::of(body);
        if !is_certain && !keys.may_have_tools {
            return Ask::Unchanged;
        }
        let (api, base) = match target {
            Target::Ask(api, base) => (api, base),
            Target::CountTokens(base) => (ClientApi::Messages, base),
            Target::Unsupported(api) => {
                let message = format!("{path} is not supported: only {} is translated", api.path());
                let mut error = GatewayError::invalid_request(message, None);
                error.status = 404;
                return Ask::Response(Response::of_error(api, &error));
            }
        };
        if let Some(key) = keys.repeated {
            let message = format!("the body has more than one key `{key}`");
            let error = GatewayError::invalid_request(message, None);
            return Ask::Response(Response::of_error(api, &error));
        }
        let mut asked = match self.adapter.ask(api.path(), body, host) {
            adapter::Ask::Unchanged => return Ask::Unchanged,
            adapter::Ask::Renamed(body) => return Ask::Renamed(body.into()),
            adapter::Ask::Refused(error) => {
                return Ask::Response(Response::of_error(api, &error));
            }
            adapter::Ask::Asked(asked) => *asked,
        };
        if let Some(engine) = self.engine
            && let Err(error) = asked.constrain(engine)
        {
            let message = format!("the tools have no grammar: {error}");
            let error = GatewayError::invalid_request(message, None);
            return Ask::Response(Response::of_error(api, &error));
        }
        if matches!(target, Target::CountTokens(_)) {
            return Ask::CountTokens(Box::new(CountTokens {
                count: TokenCount::new(asked.body()),
                base: paths::server_base(base).to_owned(),
                answer: Vec::new(),
            }));
        }
        // The query of another API is not one of chat completions.
        let query = if matches!(api, ClientApi::Chat) {
            query
        } else {
            ""
        };
        Ask::Asked(Box::new(Asked {
            exchange: asked,
            api,
            target: format!(
                "{}{}{query}",
                paths::api_base(api, base),
                paths::suffix(ClientApi::Chat)
            ),
            status: 0,
            headers: Vec::new(),
            error: Vec::new(),
        }))
    }
}

impl Asked {
    /// Returns the path and the query of the next request to the model server.
    pub fn target(&self) -> &str {
        &self.target
    }

    /// Returns the body of the next request to the model server.
    pub fn body(&self) -> &[u8] {
        self.exchange.body()
    }

    /// Returns whether the client asked for an event stream.
    pub fn is_streamed(&self) -> bool {
        self.exchange.is_streamed()
    }

    /// Returns the tools that could not be offered unchanged.
    pub fn changed_tools(&self) -> Vec<ChangedTool> {
        let changed = self.exchange.changed_tools().iter();
        changed.map(ChangedTool::of).collect()
    }

    /// Begins the model server's answer with its status and headers.
    pub fn begin_answer(&mut self, status: u16, headers: Vec<(String, String)>) {
        self.status = status;
        self.headers = headers;
        self.error.clear();
        // Some servers do not stream.
        let content_type = value_of(&self.headers, CONTENT_TYPE).unwrap_or_default();
        let is_json = content_type.trim_start().starts_with(JSON);
        let is_stream = self.is_streamed() && !is_json;
        self.exchange.begin_answer(is_stream);
    }

    /// Feeds the next bytes of the model server's answer. Returns the bytes for the client, and whether to read on.
    pub fn feed(&mut self, chunk: &[u8]) -> (Vec<u8>, Flow) {
        if self.is_success() {
            let flow = self.exchange.feed(chunk);
            return (self.exchange.take(), flow);
        }
        let rest = MAX_ERROR - self.error.len();
        self.error
            .extend_from_slice(chunk.get(..rest).unwrap_or(chunk));
        let is_full = self.error.len() == MAX_ERROR;
        let flow = if is_full { Flow::Stop } else { Flow::Continue };
        (Vec::new(), flow)
    }

    /// Returns what keeps the connection to the client open, or `None` before any output. Send it after some seconds without
    /// output.
    pub fn keep_alive(&self) -> Option<Vec<u8>> {
        self.exchange.keep_alive()
    }

    /// Ends the model server's answer, with an error if there was one. Returns the last bytes for the client.
    pub fn end(&mut self, error: Option<String>) -> (Vec<u8>, Next) {
        if error.is_some() || self.is_success() {
            return self.ended(error.map(GatewayError::upstream));
        }
        if let Some(response) = self.redirect() {
            return (Vec::new(), Next::Response(response));
        }
        let mut error = GatewayError::from_upstream(self.status, read_error(&self.error));
        // Statuses that are not errors become 502.
        if !(400..600).contains(&self.status) {
            error.status = 502;
        }
        self.ended(Some(error))
    }

    /// Ends the model server's answer, or a request without one, because the connection broke. Returns the same as [`end`](Self::end),
    /// or `None` if the client must get the error of its own library: there is no reply that it could get instead.
    pub fn connection_error(&mut self, error: String) -> Option<(Vec<u8>, Next)> {
        if self.is_first() && !self.exchange.is_settled() {
            return None;
        }
        Some(self.end(Some(error)))
    }

    /// Returns the headers of the response to the client, unless it is a [`Response`].
    pub fn headers(&self) -> Vec<(String, String)> {
        let stream = self.is_streamed();
        self.kept_headers(if stream { self.api.stream_type() } else { JSON })
    }

    /// Returns the model server's headers for the client, with the type of another body.
    fn kept_headers(&self, content_type: &str) -> Vec<(String, String)> {
        let kept = self.headers.iter().filter(|(name, _)| keeps_header(name));
        let mut kept: Vec<(String, String)> = kept.cloned().collect();
        kept.push((CONTENT_TYPE.to_owned(), content_type.to_owned()));
        kept
    }

    fn is_first(&self) -> bool {
        self.exchange.counts().repair_rounds == 0
    }

    fn is_success(&self) -> bool {
        (200..300).contains(&self.status)
    }

    /// Returns the redirect of the first answer, if the client can follow it: its next request is translated again.
    fn redirect(&self) -> Option<Response> {
        if !self.is_first() || !matches!(self.status, 301..=303 | 307 | 308) {
            return None;
        }
        let location = value_of(&self.headers, "location")?;
        let end = location.find(['?', '#']).unwrap_or(location.len());
        let (path, rest) = location.split_at_checked(end)?;
        let path = path.trim_end_matches('/');
        // A request to another path might not be translated. The first segment after slashes may be a host.
        let base = path.strip_suffix(paths::suffix(ClientApi::Chat));
        let base = base.filter(|base| !base.ends_with('/'))?;
        let base = paths::client_base(self.api, base)?;
        let location = format!("{base}{}{rest}", paths::suffix(self.api));
        let content_type = value_of(&self.headers, CONTENT_TYPE).unwrap_or(JSON);
        let mut headers = self.kept_headers(content_type);
        headers.push(("location".to_owned(), location));
        Some(Response {
            status: self.status,
            headers,
            body: self.error.clone(),
        })
    }

    fn ended(&mut self, error: Option<GatewayError>) -> (Vec<u8>, Next) {
        let end = self.exchange.end(error);
        let bytes = self.exchange.take();
        match end {
            AskEnd::Done => (bytes, Next::Done),
            AskEnd::Again => {
                // If the next request has no answer, its error has no headers of this one.
                self.headers.clear();
                (bytes, Next::Again)
            }
            AskEnd::Refused(error) => {
                // Before any output, the error is the response, not an event.
                let bytes = if self.exchange.has_begun() {
                    bytes
                } else {
                    Vec::new()
                };
                let mut response = Response::of_error(self.api, &error);
                // Those of the model server may have a retry delay.
                let mut headers = self.kept_headers(JSON);
                headers.retain(|(name, _)| value_of(&response.headers, name).is_none());
                headers.append(&mut response.headers);
                response.headers = headers;
                (bytes, Next::Response(response))
            }
        }
    }
}

/// Returns the path and the query of a target, with its mark.
fn split_query(target: &str) -> (&str, &str) {
    target.split_at(target.find('?').unwrap_or(target.len()))
}

impl CountTokens {
    /// Returns the path and the body of the next request to the model server, or `None` if no answer is needed any more.
    pub fn request(&self) -> Option<(String, Bytes)> {
        let (path, body) = self.count.request()?;
        Some((format!("{}{path}", self.base), body))
    }

    /// Takes the next bytes of the model server's answer to the request, unless it is an error. Returns whether to read on.
    pub fn feed(&mut self, chunk: &[u8]) -> bool {
        let is_short = self.answer.len() + chunk.len() <= MAX_COUNT;
        if is_short {
            self.answer.extend_from_slice(chunk);
        } else {
            self.answer.clear();
        }
        is_short
    }

    /// Ends the answer. One that was too long counts as unreadable.
    pub fn end(&mut self) {
        self.count.answer(&std::mem::take(&mut self.answer));
    }

    /// Returns the response to the client.
    pub fn response(&self) -> Response {
        let mut headers = vec![("content-type", JSON)];
        headers.extend(self.count.is_estimate().then_some(TokenCount::ESTIMATE));
        let owned = |(name, value): (&str, &str)| (name.to_owned(), value.to_owned());
        Response {
            status: 200,
            headers: headers.into_iter().map(owned).collect(),
            body: self.count.response_body().into_bytes(),
        }
    }
}
