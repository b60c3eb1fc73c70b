//! The core of the gateway inside a client library (`spec/gateway.md`).

use plaincall_gateway::Secret;
use plaincall_gateway::transport::{
    Ask, Asked, CountTokens, Flow, Host, Next, Response, Transport, USAGE_WAIT,
};
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::document::write;
use crate::error::Error;
use crate::state::{Object, State};

/// An operation of requests and replies.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase", rename_all_fields = "camelCase")]
pub(crate) enum ExchangeOperation {
    /// Creates a transport. The text is its secret. The names of settings are in camel case or in snake case.
    Create { settings: Map<String, Value> },
    /// Returns whether a request must be passed to `ask`.
    Translates { method: String, target: String },
    /// Returns the headers of a request to the model server for those of the client's.
    UpstreamHeaders {
        object: u32,
        headers: Vec<(String, String)>,
        is_translated: bool,
    },
    /// Translates a request, whose body is the text. `seed` is random; `now` is in seconds since 1970.
    Ask {
        object: u32,
        target: String,
        seed: String,
        now: u64,
    },
    /// Returns the body of the next request to the model server.
    Body { object: u32 },
    /// Begins the model server's answer.
    Begin {
        object: u32,
        status: u16,
        headers: Vec<(String, String)>,
    },
    /// Returns the headers of the response to the client.
    Headers { object: u32 },
    /// Returns what keeps the connection open.
    KeepAlive { object: u32 },
    /// Ends the model server's answer, with an error if there was one.
    End { object: u32, error: Option<String> },
    /// Ends an answer, or a request without one, because the connection broke. Returns `null` if the error is the client's.
    ConnectionError { object: u32, error: String },
    /// Returns the next request of a count of tokens.
    CountRequest { object: u32 },
    /// Takes the next bytes of the answer to it, which are the text. Returns whether to read on.
    CountFeed { object: u32 },
    /// Ends the answer to it.
    CountEnd { object: u32 },
    /// Returns the response of a count of tokens.
    CountResponse { object: u32 },
}

/// What happens with a request.
#[derive(Serialize)]
#[serde(
    tag = "kind",
    rename_all = "camelCase",
    rename_all_fields = "camelCase"
)]
enum AskView {
    Unchanged,
    Renamed {
        body: String,
    },
    Asked {
        object: u32,
        target: String,
        is_streamed: bool,
        /// How long to wait for the usage, in milliseconds.
        usage_wait: u64,
        changed_tools: Vec<ChangedView>,
    },
    CountTokens {
        object: u32,
    },
    Response(ResponseView),
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ChangedView {
    at: String,
    is_dropped: bool,
    message: String,
}

#[derive(Serialize)]
struct ResponseView {
    status: u16,
    headers: Vec<(String, String)>,
    body: String,
}

/// The last bytes for the client, and what follows.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct EndView {
    bytes: String,
    is_repaired: bool,
    response: Option<ResponseView>,
}

#[derive(Serialize)]
struct RequestView {
    target: String,
    body: String,
}

impl From<Response> for ResponseView {
    fn from(response: Response) -> Self {
        Self {
            status: response.status,
            headers: response.headers,
            body: text(response.body),
        }
    }
}

/// Returns bytes that are a text.
fn text(bytes: Vec<u8>) -> String {
    String::from_utf8(bytes).unwrap_or_else(|error| {
        let bytes = error.into_bytes();
        String::from_utf8_lossy(&bytes).into_owned()
    })
}

impl ExchangeOperation {
    pub(crate) fn perform(self, state: &mut State, text: &[u8]) -> Result<(), Error> {
        match self {
            Self::Create { settings } => {
                let given = settings.keys().cloned().collect::<Vec<_>>();
                let settings = settings.into_iter();
                let settings = settings.map(|(name, value)| (snake_case(&name), value));
                let transport = Transport::new(text, settings.collect())
                    .map_err(|error| Error::argument(as_given(&error.to_string(), &given)))?;
                let object = state.add(Object::Transport(Box::new(transport)));
                write(&mut state.output, &object)
            }
            Self::Translates { method, target } => {
                write(&mut state.output, &Transport::translates(&method, &target))
            }
            Self::UpstreamHeaders {
                object,
                headers,
                is_translated,
            } => {
                let headers = state
                    .transport(object)?
                    .upstream_headers(headers, is_translated);
                write(&mut state.output, &headers)
            }
            Self::Ask {
                object,
                target,
                seed,
                now,
            } => {
                let host = Host::new(Secret::new(seed), now);
                let asked = state.transport(object)?.ask(&target, text, host);
                let view = view(state, asked)?;
                write(&mut state.output, &view)
            }
            Self::CountRequest { object } => {
                let request = state.count(object)?.request();
                let view = request.map(|(target, body)| RequestView {
                    target,
                    body: self::text(body.to_vec()),
                });
                write(&mut state.output, &view)
            }
            Self::CountFeed { object } => {
                let reads_on = state.count(object)?.feed(text);
                write(&mut state.output, &reads_on)
            }
            Self::CountEnd { object } => {
                state.count(object)?.end();
                Ok(())
            }
            Self::CountResponse { object } => {
                let response = ResponseView::from(state.count(object)?.response());
                write(&mut state.output, &response)
            }
            Self::Body { object }
            | Self::Begin { object, .. }
            | Self::KeepAlive { object }
            | Self::Headers { object }
            | Self::End { object, .. }
            | Self::ConnectionError { object, .. } => {
                let mut output = std::mem::take(&mut state.output);
                let written = state
                    .asked(object)
                    .and_then(|asked| self.of_asked(asked, &mut output));
                state.output = output;
                written
            }
        }
    }

    fn of_asked(self, asked: &mut Asked, output: &mut Vec<u8>) -> Result<(), Error> {
        let ended = match self {
            Self::Body { .. } => {
                output.extend_from_slice(asked.body());
                return Ok(());
            }
            Self::Begin {
                status, headers, ..
            } => {
                asked.begin_answer(status, headers);
                return Ok(());
            }
            Self::Headers { .. } => return write(output, &asked.headers()),
            Self::KeepAlive { .. } => return write(output, &asked.keep_alive().map(self::text)),
            Self::ConnectionError { error, .. } => asked.connection_error(error),
            Self::End { error, .. } => Some(asked.end(error)),
            _ => return Ok(()),
        };
        let view = ended.map(|(bytes, next)| EndView {
            bytes: self::text(bytes),
            is_repaired: matches!(next, Next::Again),
            response: match next {
                Next::Response(response) => Some(response.into()),
                _ => None,
            },
        });
        write(output, &view)
    }
}

/// Returns the name of a setting in a configuration file.
fn snake_case(name: &str) -> String {
    let letters = name.chars().map(|letter| match letter {
        'A'..='Z' => format!("_{}", letter.to_ascii_lowercase()),
        _ => letter.to_string(),
    });
    letters.collect()
}

/// Returns a message that names settings as the host has given them. Values are not changed: each stands after its setting.
fn as_given(message: &str, given: &[String]) -> String {
    given.iter().fold(message.to_owned(), |message, name| {
        let found = format!("`{}`", snake_case(name));
        message.replacen(&found, &format!("`{name}`"), 1)
    })
}

fn view(state: &mut State, asked: Ask) -> Result<AskView, Error> {
    Ok(match asked {
        Ask::Unchanged => AskView::Unchanged,
        Ask::Renamed(body) => AskView::Renamed {
            body: text(body.to_vec()),
        },
        Ask::Asked(asked) => {
            let changed = asked.changed_tools().into_iter();
            let changed = changed.map(|tool| ChangedView {
                at: tool.at,
                is_dropped: tool.is_dropped,
                message: tool.message,
            });
            AskView::Asked {
                target: asked.target().to_owned(),
                is_streamed: asked.is_streamed(),
                usage_wait: USAGE_WAIT.as_secs() * 1000,
                changed_tools: changed.collect(),
                object: state.add(Object::Asked(asked)),
            }
        }
        Ask::CountTokens(count) => AskView::CountTokens {
            object: state.add(Object::CountTokens(count)),
        },
        Ask::Response(response) => AskView::Response(response.into()),
        _ => return Err(Error::argument("this request needs a newer version")),
    })
}

/// Feeds an answer. The output is the flow (0 to read on, 1 to read on for the usage only, 2 to stop), then the bytes for the client.
pub(crate) fn feed(asked: &mut Asked, output: &mut Vec<u8>, chunk: &[u8]) {
    let (bytes, flow) = asked.feed(chunk);
    output.push(match flow {
        Flow::UsageOnly => 1,
        Flow::Stop => 2,
        _ => 0,
    });
    output.extend_from_slice(&bytes);
}

impl State {
    fn transport(&mut self, object: u32) -> Result<&Transport, Error> {
        match self.get(object) {
            Some(Object::Transport(transport)) => Ok(transport),
            _ => Err(Error::finished()),
        }
    }

    fn asked(&mut self, object: u32) -> Result<&mut Asked, Error> {
        match self.get(object) {
            Some(Object::Asked(asked)) => Ok(asked),
            _ => Err(Error::finished()),
        }
    }

    fn count(&mut self, object: u32) -> Result<&mut CountTokens, Error> {
        match self.get(object) {
            Some(Object::CountTokens(count)) => Ok(count),
            _ => Err(Error::finished()),
        }
    }
}
