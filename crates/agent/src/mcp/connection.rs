//! A connection to a server, and how it ended.

use std::collections::HashMap;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::Ordering;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::FutureExt as _;
use plaincall::process::{BackgroundProcess, Program, is_inherited_variable};
use plaincall_http::http::header::{HeaderName, HeaderValue};
use plaincall_http::{HttpClient, HttpError, causes};
use rmcp::RoleClient;
use rmcp::model::{
    CallToolRequest, CallToolRequestParams, CancelledNotificationParam, ClientRequest, RequestId,
    ServerResult,
};
use rmcp::service::{
    ClientInitializeError, Peer, PeerRequestOptions, RunningService, ServiceError, serve_client,
};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use tokio::time::timeout;
use url::Url;

use super::client::Client;
use super::config::McpTransport;
use super::events::EventClient;
use super::messages::{INVALID, Messages, Noise, Reason, Unreadable};
use super::requests::Requests;
use super::{McpOptions, clipped};
use crate::text::is_unseen;

/// How much of a server's standard error is kept, in bytes.
const KEPT_WORDS: usize = 4 << 10;
/// How much of it is quoted, in characters.
const QUOTED_WORDS: usize = 500;
/// How long a server that has closed its output may take to exit.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a server may take to exit after a signal.
const GRACE: Duration = Duration::from_secs(1);
/// The variables that servers get in addition to those of every command.
const SEEN: [&str; 4] = ["LOGNAME", "SHELL", "TERM", "USER"];

/// A connection. Dropping it closes it and kills the processes of the server.
pub(super) struct Connection {
    service: RunningService<RoleClient, Client>,
    program: Mutex<Option<BackgroundProcess>>,
    /// Set if we ended the connection.
    reason: Reason,
}

impl Connection {
    /// Connects to a server, within [`McpOptions::connect_timeout`].
    pub(super) async fn open(
        transport: &McpTransport,
        options: &McpOptions,
        noise: Noise,
    ) -> Result<Self, String> {
        match transport {
            McpTransport::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                let directory = cwd.clone().unwrap_or_else(|| PathBuf::from("."));
                let mut program = Program::new(command, directory);
                program.arguments = args.iter().map(OsString::from).collect();
                program.environment = environment(env, options);
                start(&program, options, noise).await
            }
            McpTransport::Http { url, headers } => reach_out(url, headers, options, noise).await,
        }
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    /// Calls a tool. Returns any result, also one with content of an unknown kind. Dropping the future cancels the call.
    pub(super) async fn call(
        &self,
        params: CallToolRequestParams,
    ) -> Result<ServerResult, ServiceError> {
        let request = ClientRequest::CallToolRequest(CallToolRequest::new(params));
        let options = PeerRequestOptions::no_options();
        let sent = self.peer().send_request_with_option(request, options);
        let handle = sent.await?;
        let mut abandoned = Abandoned {
            peer: self.peer(),
            id: Some(handle.id.clone()),
        };
        let answer = handle.await_response().await;
        abandoned.id = None;
        answer
    }

    pub(super) fn is_gone(&self) -> bool {
        self.peer().is_transport_closed()
    }

    /// Whether the server has reported that its tool list changed.
    pub(super) fn has_changed(&self) -> bool {
        self.service.service().has_changed.load(Ordering::Relaxed)
    }

    /// Returns how it ended. Only the first call returns the exit of the program.
    pub(super) async fn end(&self) -> Ending {
        let program = self.take_program();
        let reason = self.reason.get();
        let patience = reason.map_or(PATIENCE, |_| Duration::ZERO);
        let mut ending = match program {
            Some(program) => ended(program, patience).await,
            None => Ending::of("closed the connection"),
        };
        if let Some(reason) = reason {
            ending.how.clone_from(reason);
        }
        ending
    }

    fn take_program(&self) -> Option<BackgroundProcess> {
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        program.take()
    }

    /// Closes the server's stdin and gives it time to exit.
    pub(super) async fn close(&self) {
        // This token ends the reader and the writer, which closes the pipes.
        self.service.cancellation_token().cancel();
        if let Some(program) = self.take_program() {
            let _ = program.wait(PATIENCE, GRACE).await;
        }
    }
}

/// Cancels a request when it is dropped.
struct Abandoned<'p> {
    peer: &'p Peer<RoleClient>,
    id: Option<RequestId>,
}

impl Drop for Abandoned<'_> {
    fn drop(&mut self) {
        if let Some(id) = self.id.take() {
            let reason = "the call was cancelled".to_owned();
            let cancelled = CancelledNotificationParam::new(Some(id), Some(reason));
            // One poll queues the notification.
            let _ = self.peer.notify_cancelled(cancelled).now_or_never();
        }
    }
}

/// The inherited variables and those of the configuration.
fn environment(env: &[(String, String)], options: &McpOptions) -> Vec<(OsString, OsString)> {
    let is_seen = |name: &OsString| {
        is_inherited_variable(name) || name.to_str().is_some_and(|name| SEEN.contains(&name))
    };
    let given = options.environment.iter().filter(|(name, _)| is_seen(name));
    given
        .map(|(name, value)| (name.clone(), value.clone()))
        .chain(env.iter().map(|(name, value)| (name.into(), value.into())))
        .collect()
}

async fn start(
    program: &Program,
    options: &McpOptions,
    noise: Noise,
) -> Result<Connection, String> {
    let started = BackgroundProcess::start(program, KEPT_WORDS);
    let (resident, stdin, stdout) = started
        .map_err(|error| format!("could not be started: {}", program.why_not_started(&error)))?;
    let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
        return Err("could not be started: it has no stdin and stdout".to_owned());
    };
    let reason = Reason::default();
    let unreadable = Unreadable::Skip(Arc::clone(&reason), noise);
    let transport = Messages::<RoleClient, _, _>::new(stdout, stdin, unreadable);
    begin(transport, Some(resident), reason, options).await
}

async fn reach_out(
    url: &str,
    headers: &[(String, String)],
    options: &McpOptions,
    noise: Noise,
) -> Result<Connection, String> {
    if Url::parse(url).is_ok_and(|url| !url.username().is_empty() || url.password().is_some()) {
        return Err("cannot be used: its URL contains a user name or a password; set `Authorization` in `headers` instead".to_owned());
    }
    let client = HttpClient::new(&options.http).map_err(|error| error.to_string())?;
    let mut heads = HashMap::new();
    for (name, value) in headers {
        let head = HeaderName::from_bytes(name.as_bytes()).ok();
        let value = HeaderValue::from_str(value).ok();
        let (Some(head), Some(mut value)) = (head, value) else {
            return Err(format!("cannot be used: the header `{name}` is invalid"));
        };
        value.set_sensitive(true);
        heads.insert(head, value);
    }
    // A call that meets an expired session has not run. It is repeated once, in a new session.
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(heads)
        .reinit_on_expired_session(true);
    let client = EventClient(client, noise);
    let transport = StreamableHttpClientTransport::with_client(client, config);
    begin(transport, None, Reason::default(), options).await
}

/// Initializes a connection, possibly to a program that was started.
async fn begin(
    transport: impl Transport<RoleClient> + 'static,
    program: Option<BackgroundProcess>,
    reason: Reason,
    options: &McpOptions,
) -> Result<Connection, String> {
    use ClientInitializeError as Wrong;
    let transport = Requests::new(transport, Arc::clone(&reason));
    let served = serve_client(Client::default(), transport);
    let served = timeout(options.connect_timeout, served).await;
    if let (Ok(Err(_)), Some(reason)) = (&served, reason.get()) {
        return Err(reason.clone());
    }
    match (served, program) {
        (Ok(Ok(service)), program) => Ok(Connection {
            service,
            program: Mutex::new(program),
            reason,
        }),
        (Ok(Err(Wrong::ConnectionClosed(_) | Wrong::TransportError { .. })), Some(program)) => {
            let Ending { how, words } = ended(program, PATIENCE).await;
            Err(format!("{how} before it answered{words}"))
        }
        (Ok(Err(error)), _) => Err(not_begun(&error)),
        (Err(_), program) => {
            let words = program.map_or(String::new(), |program| last_words(&program.stderr()));
            let time = options.connect_timeout.as_secs_f32();
            Err(format!("did not answer within {time} s{words}"))
        }
    }
}

pub(super) struct Ending {
    /// A predicate: it follows the name of the server.
    pub(super) how: String,
    /// The end of its stderr, to follow `how`; may be empty.
    pub(super) words: String,
}

impl Ending {
    pub(super) fn of(how: &str) -> Self {
        Self {
            how: how.to_owned(),
            words: String::new(),
        }
    }
}

impl fmt::Display for Ending {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}{}", self.how, self.words)
    }
}

async fn ended(program: BackgroundProcess, patience: Duration) -> Ending {
    match program.wait(patience, GRACE).await {
        Ok(exit) => Ending {
            how: if exit.was_stopped {
                "closed its stdout".to_owned()
            } else {
                exit.to_string()
            },
            words: last_words(&exit.stderr),
        },
        Err(error) => Ending::of(&format!("ended ({error})")),
    }
}

/// The end of its stderr on one line, so that it cannot imitate our messages.
fn last_words(words: &str) -> String {
    let words = words.split(|c: char| c.is_whitespace() || is_unseen(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let words = words.join(" ");
    if words.is_empty() {
        return String::new();
    }
    let skipped = words.chars().count().saturating_sub(QUOTED_WORDS);
    let dots = if skipped > 0 { "…" } else { "" };
    let last: String = words.chars().skip(skipped).collect();
    format!("; its stderr ends: {dots}{last}")
}

fn not_begun(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(data) => {
            format!("rejected the connection: {}", clipped(&data.message))
        }
        ClientInitializeError::TransportError { error, .. } => transport(error),
        ClientInitializeError::ConnectionClosed(_) => {
            "closed the connection before it answered".to_owned()
        }
        // The other errors contain whole messages.
        _ => "is not an MCP server".to_owned(),
    }
}

/// Why a call has no result, as a predicate. `None` if the connection has ended.
pub(super) fn not_answered(error: &ServiceError) -> Option<String> {
    match error {
        ServiceError::TransportClosed => None,
        ServiceError::TransportSend(error) => Some(transport(error)),
        ServiceError::McpError(error) if error.message.starts_with(INVALID) => Some(format!(
            "sent an invalid answer; the call may have run: {}",
            clipped(&error.message)
        )),
        ServiceError::McpError(error) => {
            Some(format!("rejected the call: {}", clipped(&error.message)))
        }
        ServiceError::Cancelled { .. } => Some("cancelled the call".to_owned()),
        _ => Some("sent an answer that is not a result".to_owned()),
    }
}

/// The error of a transport, without URLs, which may contain secrets.
fn transport(error: &(dyn Error + 'static)) -> String {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(http) = error.downcast_ref::<StreamableHttpError<HttpError>>() {
            return over_http(http);
        }
        cause = error.source();
    }
    format!("cannot be reached: {}", causes(error))
}

fn over_http(error: &StreamableHttpError<HttpError>) -> String {
    use StreamableHttpError as Http;
    match error {
        Http::Client(error) => error.message_for("").trim_start().to_owned(),
        Http::HttpStatus(error) => format!("returned status {}", error.status),
        Http::AuthRequired(_) => {
            "requires authentication (status 401); set `Authorization` in `headers`".to_owned()
        }
        Http::InsufficientScope(_) => "denied access with this key (status 403)".to_owned(),
        Http::UnexpectedContentType(_) => {
            "returned neither JSON nor an event stream; is this the URL of its MCP endpoint?"
                .to_owned()
        }
        Http::SessionExpired => "ended the session, and also the new one".to_owned(),
        Http::ReinitializationFailed(error) => format!(
            "ended the session and rejected a new one: {}",
            clipped(&error.message)
        ),
        Http::UnexpectedServerResponse(answer) => {
            format!("sent an unexpected answer: {}", clipped(answer))
        }
        other => format!("is not an MCP server: {}", clipped(&other.to_string())),
    }
}
