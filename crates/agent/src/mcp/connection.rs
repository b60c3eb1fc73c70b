//! One connection to a server, and how it ended.

use std::collections::HashMap;
use std::error::Error;
use std::ffi::OsString;
use std::fmt;
use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use plaincall::process::{BackgroundProcess, Program, is_inherited_variable};
use plaincall_http::http::header::{HeaderName, HeaderValue};
use plaincall_http::{HttpClient, HttpError, causes};
use rmcp::RoleClient;
use rmcp::model::ErrorCode;
use rmcp::service::{ClientInitializeError, Peer, RunningService, ServiceError, serve_client};
use rmcp::transport::streamable_http_client::{
    StreamableHttpClientTransportConfig, StreamableHttpError,
};
use rmcp::transport::{StreamableHttpClientTransport, Transport};
use tokio::time::timeout;
use url::Url;

use super::client::Client;
use super::config::McpTransport;
use super::events::EventClient;
use super::messages::{LONGEST_MESSAGE, Messages, Unreadable};
use super::requests::{MOST_REQUESTS, Requests};
use super::{McpOptions, clipped};
use crate::text::is_unseen;

/// How much of a server's standard error is kept, in bytes.
const KEPT_WORDS: usize = 4 << 10;
/// How much of it is told, in characters.
const TOLD_WORDS: usize = 500;
/// How long a server whose output has ended may take to end by itself.
const PATIENCE: Duration = Duration::from_millis(500);
/// How long a server may take to end that was asked to.
const GRACE: Duration = Duration::from_secs(1);
/// The variables that a server sees beside those that every command sees: what programs look for that people use by hand.
const SEEN: [&str; 4] = ["LOGNAME", "SHELL", "TERM", "USER"];

/// A connection. Dropping it ends it, and with it all processes of the server.
pub(super) struct Connection {
    service: RunningService<RoleClient, Client>,
    program: Mutex<Option<BackgroundProcess>>,
    /// Whether the server wrote a message that was too long.
    is_over: Arc<AtomicBool>,
    /// Whether it did not read the answers to what it asked.
    is_deaf: Arc<AtomicBool>,
}

impl Connection {
    /// Connects to a server, within [`McpOptions::connect_timeout`].
    pub(super) async fn open(reach: &McpTransport, options: &McpOptions) -> Result<Self, String> {
        match reach {
            McpTransport::Stdio {
                command,
                args,
                env,
                cwd,
            } => {
                let program = Program {
                    program: command.into(),
                    arguments: args.iter().map(OsString::from).collect(),
                    directory: cwd.clone().unwrap_or_else(|| PathBuf::from(".")),
                    environment: environment(env, options),
                };
                start(&program, options).await
            }
            McpTransport::Http { url, headers } => reach_out(url, headers, options).await,
        }
    }

    pub(super) fn peer(&self) -> &Peer<RoleClient> {
        self.service.peer()
    }

    pub(super) fn is_gone(&self) -> bool {
        self.peer().is_transport_closed()
    }

    /// Whether the server has said that its tools are others by now.
    pub(super) fn has_changed(&self) -> bool {
        self.service.service().has_changed.load(Ordering::Relaxed)
    }

    /// How it ended. Only the first who asks hears of the program.
    pub(super) async fn end(&self) -> Ending {
        let program = self.take_program();
        let too_long = self.is_over.load(Ordering::Relaxed);
        let is_told = too_long || self.is_deaf.load(Ordering::Relaxed);
        let patience = if is_told { Duration::ZERO } else { PATIENCE };
        let mut ending = match program {
            Some(program) => ended(program, patience).await,
            None => Ending::of("has closed the connection"),
        };
        if too_long {
            ending.how = format!("wrote a message of more than {LONGEST_MESSAGE} bytes");
        }
        if self.is_deaf.load(Ordering::Relaxed) {
            ending.how = deaf();
        }
        ending
    }

    fn take_program(&self) -> Option<BackgroundProcess> {
        let mut program = self.program.lock().unwrap_or_else(PoisonError::into_inner);
        program.take()
    }

    /// Ends it in order: the server's input is closed, and it has a moment to end by itself.
    pub(super) async fn close(&self) {
        // What reads and writes goes away with this token, and closes the pipes.
        self.service.cancellation_token().cancel();
        if let Some(program) = self.take_program() {
            let _ = program.end(PATIENCE, GRACE).await;
        }
    }
}

/// The named variables of the caller, and those that are set for the server.
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

async fn start(program: &Program, options: &McpOptions) -> Result<Connection, String> {
    let started = BackgroundProcess::start(program, KEPT_WORDS);
    let (resident, stdin, stdout) = started
        .map_err(|error| format!("could not be started: {}", program.why_not_started(&error)))?;
    let (Some(stdin), Some(stdout)) = (stdin, stdout) else {
        return Err("could not be started: it has no standard input and output".to_owned());
    };
    let is_over = Arc::new(AtomicBool::new(false));
    let unreadable = Unreadable::Fail(Arc::clone(&is_over));
    let transport = Messages::<RoleClient, _, _>::new(stdout, stdin, unreadable);
    begin(transport, Some(resident), is_over, options).await
}

async fn reach_out(
    url: &str,
    headers: &[(String, String)],
    options: &McpOptions,
) -> Result<Connection, String> {
    if Url::parse(url).is_ok_and(|url| !url.username().is_empty() || url.password().is_some()) {
        return Err("cannot be asked: its address has a user name or a password in it; write an `Authorization` in `headers`".to_owned());
    }
    let client = HttpClient::new(&options.http).map_err(|error| error.to_string())?;
    let mut heads = HashMap::new();
    for (name, value) in headers {
        let head = HeaderName::from_bytes(name.as_bytes()).ok();
        let value = HeaderValue::from_str(value).ok();
        let (Some(head), Some(mut value)) = (head, value) else {
            return Err(format!(
                "cannot be asked: the header `{name}` cannot be sent"
            ));
        };
        value.set_sensitive(true);
        heads.insert(head, value);
    }
    // In a new session a call would be made twice, of which nobody knows how far it came.
    let config = StreamableHttpClientTransportConfig::with_uri(url)
        .custom_headers(heads)
        .reinit_on_expired_session(false);
    let transport = StreamableHttpClientTransport::with_client(EventClient(client), config);
    begin(transport, None, Arc::default(), options).await
}

/// Begins the conversation with a server, perhaps with one that was started.
async fn begin(
    transport: impl Transport<RoleClient> + 'static,
    program: Option<BackgroundProcess>,
    is_over: Arc<AtomicBool>,
    options: &McpOptions,
) -> Result<Connection, String> {
    use ClientInitializeError as Wrong;
    let is_deaf = Arc::default();
    let transport = Requests::new(transport, Arc::clone(&is_deaf));
    let served = serve_client(Client::default(), transport);
    match (timeout(options.connect_timeout, served).await, program) {
        (Ok(Ok(service)), program) => Ok(Connection {
            service,
            program: Mutex::new(program),
            is_over,
            is_deaf,
        }),
        (Ok(Err(_)), _) if is_deaf.load(Ordering::Relaxed) => Err(deaf()),
        (Ok(Err(Wrong::ConnectionClosed(_) | Wrong::TransportError { .. })), Some(program)) => {
            let Ending { how, words } = ended(program, PATIENCE).await;
            Err(format!("{how} before it had answered{words}"))
        }
        (Ok(Err(error)), _) => Err(not_begun(&error)),
        (Err(_), program) => {
            let words = program.map_or(String::new(), |program| last_words(&program.words()));
            let time = options.connect_timeout.as_secs_f32();
            Err(format!("has not answered within {time} s{words}"))
        }
    }
}

pub(super) struct Ending {
    /// In words that go behind its name.
    pub(super) how: String,
    /// What it said last, in words that go behind those; empty if it said nothing.
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
    match program.end(patience, GRACE).await {
        Ok(end) => Ending {
            how: if end.was_asked {
                "closed its standard output".to_owned()
            } else {
                end.how
            },
            words: last_words(&end.words),
        },
        Err(error) => Ending::of(&format!("is gone ({error})")),
    }
}

fn deaf() -> String {
    format!("asked {MOST_REQUESTS} things and read no answer")
}

/// The end of what it said, if it said anything. It stands on one line: lines of its own would look like ours.
fn last_words(words: &str) -> String {
    let words = words.split(|c: char| c.is_whitespace() || is_unseen(c));
    let words: Vec<&str> = words.filter(|word| !word.is_empty()).collect();
    let words = words.join(" ");
    if words.is_empty() {
        return String::new();
    }
    let skipped = words.chars().count().saturating_sub(TOLD_WORDS);
    let dots = if skipped > 0 { "…" } else { "" };
    let last: String = words.chars().skip(skipped).collect();
    format!("; it said last: {dots}{last}")
}

fn not_begun(error: &ClientInitializeError) -> String {
    match error {
        ClientInitializeError::JsonRpcError(data) => {
            format!("refuses the connection: {}", clipped(&data.message))
        }
        ClientInitializeError::TransportError { error, .. } => transport(error),
        ClientInitializeError::ConnectionClosed(_) => {
            "has closed the connection before it had answered".to_owned()
        }
        // The rest shows whole messages, in the words of programmers.
        _ => "does not answer as an MCP server does".to_owned(),
    }
}

/// Why a call was not answered, in words that go behind the server's name. `None` if the connection has ended.
pub(super) fn not_answered(error: &ServiceError) -> Option<String> {
    match error {
        ServiceError::TransportClosed => None,
        ServiceError::TransportSend(error) => Some(transport(error)),
        ServiceError::McpError(error) if error.code == ErrorCode::PARSE_ERROR => Some(format!(
            "has answered with something that cannot be read; nobody knows how far the call came: {}",
            clipped(&error.message)
        )),
        ServiceError::McpError(error) => {
            Some(format!("refuses the call: {}", clipped(&error.message)))
        }
        ServiceError::Cancelled { .. } => Some("has called the call off".to_owned()),
        _ => Some("has answered with something that is no result".to_owned()),
    }
}

/// What a transport reports. Addresses are left out, which may hold secrets.
fn transport(error: &(dyn Error + 'static)) -> String {
    let mut cause = Some(error);
    while let Some(error) = cause {
        if let Some(http) = error.downcast_ref::<StreamableHttpError<HttpError>>() {
            return over_http(http);
        }
        cause = error.source();
    }
    format!("cannot be asked: {}", causes(error))
}

fn over_http(error: &StreamableHttpError<HttpError>) -> String {
    use StreamableHttpError as Http;
    match error {
        Http::Client(error) => error.message_for("").trim_start().to_owned(),
        Http::HttpStatus(error) => format!("answers with the status {}", error.status),
        Http::AuthRequired(_) => {
            "wants to know who asks (status 401): say it in `headers`, such as `Authorization`"
                .to_owned()
        }
        Http::InsufficientScope(_) => {
            "does not let this key do that (status 403)".to_owned()
        }
        Http::UnexpectedContentType(_) => {
            "answers with something else than JSON or an event stream; is this the address of its MCP endpoint?".to_owned()
        }
        Http::SessionExpired => {
            "says that its session is over; nothing is made again by itself".to_owned()
        }
        Http::UnexpectedServerResponse(said) => format!("answers unexpectedly: {}", clipped(said)),
        other => format!("does not answer as an MCP server does: {}", clipped(&other.to_string())),
    }
}
