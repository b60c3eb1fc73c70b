//! The gateway inside a client library, which sends the requests itself: requests of any path in, responses as bytes out.

mod keys;
mod paths;

use std::fmt;

use bytes::Bytes;
use plaincall_call::definitions::ChangedTool;
use plaincall_call::grammar::{Constrain, Engine};
use plaincall_config::settings::Model;
use plaincall_wire::openai::read_error;
use serde_json::Value;

use crate::adapter::{self, Adapter, AskEnd, Host};
use crate::api::ClientApi;
use crate::error::GatewayError;
use crate::key::Secret;
use crate::reply::Flow;
use crate::settings::ModelSettings;
use crate::token_count::TokenCount;
use keys::Keys;
use paths::{Found, Target};

const JSON: &str = "application/json";
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
/// use plaincall_gateway::translation::Host;
/// use plaincall_gateway::transport::{Ask, Next, Transport};
/// use plaincall_gateway::Secret;
///
/// let settings = serde_json::json!({"repair_rounds": 1});
/// let transport = Transport::new(b"the same secret in all instances", settings)?;
/// assert!(Transport::translates("POST", "/v1/chat/completions"));
/// let body = br#"{"messages":[{"role":"user","content":"Add."}],"tools":[{"type":"function","function":{"name":"add",
///     "parameters":{"type":"object","properties":{"a":{"type":"integer"}}}}}]}"#;
/// let host = Host::new("", Secret::new("random bytes"), 1_800_000_000);
/// let Ask::Asked(mut asked) = transport.ask("/v1/chat/completions", body, host) else { panic!("it offers a tool") };
///
/// // Send `asked.body()` to `asked.path()` of the model server, and feed its answer.
/// asked.begin_answer("application/json");
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
    base: String,
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
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SettingsError(String);

impl fmt::Display for SettingsError {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&self.0)
    }
}

impl std::error::Error for SettingsError {}

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
    pub fn translates(method: &str, path: &str) -> bool {
        method == "POST" && paths::find(path).is_some()
    }

    /// Returns whether the client gets a header of the model server's answer. It does not get those that describe the answer's body,
    /// place or connection.
    pub fn keeps_header(name: &str) -> bool {
        let name = name.to_ascii_lowercase();
        !name.starts_with("content-") && !OF_ANSWER.contains(&name.as_str())
    }

    /// Translates a request.
    pub fn ask(&self, path: &str, body: &[u8], host: Host<'_>) -> Ask {
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
            }));
        }
        let base = base.to_owned();
        Ask::Asked(Box::new(Asked {
            exchange: asked,
            api,
            base,
        }))
    }
}

impl Asked {
    /// Returns the base of the paths of both requests.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the path of the request to the model server.
    pub fn path(&self) -> String {
        format!("{}{}", self.base, paths::suffix(ClientApi::Chat))
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
    pub fn changed_tools(&self) -> &[ChangedTool] {
        self.exchange.changed_tools()
    }

    /// Begins the model server's answer with its content type.
    pub fn begin_answer(&mut self, content_type: &str) {
        // Some servers do not stream.
        let is_json = content_type.trim_start().starts_with(JSON);
        let is_stream = self.is_streamed() && !is_json;
        self.exchange.begin_answer(is_stream);
    }

    /// Feeds the next bytes of the model server's answer. Returns the bytes for the client, and whether to read on.
    pub fn feed(&mut self, chunk: &[u8]) -> (Vec<u8>, Flow) {
        let flow = self.exchange.feed(chunk);
        (self.exchange.take(), flow)
    }

    /// Returns what keeps the connection to the client open, or `None` before any output. Send it after some seconds without
    /// output.
    pub fn keep_alive(&self) -> Option<Vec<u8>> {
        self.exchange.keep_alive()
    }

    /// Ends the model server's answer, with an error if there was one. Returns the last bytes for the client.
    pub fn end(&mut self, error: Option<String>) -> (Vec<u8>, Next) {
        self.ended(error.map(GatewayError::upstream))
    }

    /// Ends an answer with an error status of the model server. Returns the same as [`end`](Self::end).
    pub fn fail(&mut self, status: u16, body: &[u8]) -> (Vec<u8>, Next) {
        let mut error = GatewayError::from_upstream(status, read_error(body));
        // Statuses that are not errors become 502.
        if !(400..600).contains(&status) {
            error.status = 502;
        }
        self.ended(Some(error))
    }

    fn ended(&mut self, error: Option<GatewayError>) -> (Vec<u8>, Next) {
        let end = self.exchange.end(error);
        let bytes = self.exchange.take();
        match end {
            AskEnd::Done => (bytes, Next::Done),
            AskEnd::Again => (bytes, Next::Again),
            AskEnd::Refused(error) => {
                // Before any output, the error is the response, not an event.
                let bytes = if self.exchange.has_begun() {
                    bytes
                } else {
                    Vec::new()
                };
                (bytes, Next::Response(Response::of_error(self.api, &error)))
            }
        }
    }
}

impl CountTokens {
    /// Returns the base of the paths of the requests to the model server.
    pub fn base(&self) -> &str {
        &self.base
    }

    /// Returns the path and the body of the next request to the model server, or `None` if no answer is needed any more.
    pub fn request(&self) -> Option<(String, Bytes)> {
        let (path, body) = self.count.request()?;
        Some((format!("{}{path}", self.base), body))
    }

    /// Takes the model server's answer to the request, unless it is an error.
    pub fn answer(&mut self, answer: &[u8]) {
        self.count.answer(answer);
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
