//! The core of the gateway through its byte API (`spec/gateway.md`).

use std::num::NonZeroUsize;
use std::sync::{Mutex, MutexGuard, PoisonError};

use plaincall_call::grammar::Engine;
use plaincall_gateway::translation::{self, Ask, AskEnd, ClientApi, Flow, Host};
use plaincall_gateway::{
    ArgumentMode, GatewayError, Markers, ModelSettings, PromptBudget, ReasoningSpan, Secret,
    ToolMode,
};
use plaincall_wire::openai::read_error;
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::dialect::Dialect;
use crate::error;
use crate::grammar;
use crate::lock::released;
use crate::settings::unclosed_from;

const APIS: [ClientApi; 3] = [ClientApi::Chat, ClientApi::Responses, ClientApi::Messages];

/// Translates requests with tools to plain text, and replies back. It does no I/O.
#[pyclass(frozen, module = "plaincall")]
pub(crate) struct Adapter {
    adapter: translation::Adapter,
    engine: Option<Engine>,
}

/// A translated request whose answer is being read.
#[pyclass(frozen, module = "plaincall")]
pub(crate) struct Asked {
    exchange: Mutex<translation::Asked>,
    api: ClientApi,
    /// The path of the request to the model server.
    #[pyo3(get)]
    path: String,
    /// Whether the client asked for an event stream.
    #[pyo3(get)]
    is_streamed: bool,
    /// The tools that could not be offered unchanged: place, and whether it was dropped.
    #[pyo3(get)]
    changed_tools: Vec<(String, bool)>,
}

/// A rejected request, as the response that the client gets.
#[pyclass(frozen, get_all, module = "plaincall")]
pub(crate) struct ErrorResponse {
    /// The HTTP status.
    status: u16,
    /// The headers, with the content type.
    headers: Vec<(String, String)>,
    /// The body: JSON in the format of the client's API.
    body: Py<PyBytes>,
}

impl ErrorResponse {
    fn new(py: Python<'_>, api: ClientApi, error: &GatewayError) -> PyResult<Py<Self>> {
        let mut headers = error.headers.clone();
        headers.push(("content-type".to_owned(), "application/json".to_owned()));
        if error.is_final() {
            headers.push(("x-should-retry".to_owned(), "false".to_owned()));
        }
        let body = PyBytes::new(py, &api.error_body(error, None)).unbind();
        let status = error.status;
        Py::new(
            py,
            Self {
                status,
                headers,
                body,
            },
        )
    }
}

/// Returns the last segments of an API's path, without the version.
fn suffix(api: ClientApi) -> &'static str {
    api.path().strip_prefix("/v1").unwrap_or(api.path())
}

/// Returns the API of a path, and its base.
fn api_of(path: &str) -> Option<(ClientApi, &str)> {
    let path = path.trim_end_matches('/');
    APIS.into_iter().find_map(|api| {
        let base = path.strip_suffix(suffix(api))?;
        may_have(api, base).then_some((api, base))
    })
}

/// Returns the API that this path is below, if the model server does not have it.
fn api_above(path: &str) -> Option<ClientApi> {
    let is_below = |api: &ClientApi| {
        let below = format!("{}/", suffix(*api));
        let mut places = path.match_indices(&below);
        places.any(|(at, _)| may_have(*api, path.get(..at).unwrap_or_default()))
    };
    let translated = [ClientApi::Responses, ClientApi::Messages];
    translated.into_iter().find(is_below)
}

/// Returns whether a base may be that of an API. Other programs have `/messages` and `/responses` too, so their base must be
/// empty or end in a version.
fn may_have(api: ClientApi, base: &str) -> bool {
    let last = base.rsplit('/').next().unwrap_or_default();
    matches!(api, ClientApi::Chat) || base.is_empty() || is_version(last)
}

/// Returns whether a segment of a path is a version, such as `v1` or `v1beta`.
fn is_version(segment: &str) -> bool {
    let number = segment.strip_prefix('v').unwrap_or_default();
    number.starts_with(|first: char| first.is_ascii_digit())
        && number.chars().all(|one| one.is_ascii_alphanumeric())
}

#[pymethods]
impl Adapter {
    /// Creates an adapter. Instances that serve the same conversations need the same secret: 32 random bytes.
    #[new]
    #[pyo3(signature = (secret, *, mode="text", dialect=None, keyed=false, reasoning=Some(("<think>".to_owned(), "</think>".to_owned())), in_reasoning=false, arguments="checked", unclosed="reject", repair_rounds=2, upstream_model=None, listed_tools=None, hidden_tools=Vec::new(), description_length=None, engine=None))]
    #[allow(clippy::too_many_arguments, reason = "keyword arguments of Python")]
    fn new(
        secret: &[u8],
        mode: &str,
        dialect: Option<&Dialect>,
        keyed: bool,
        reasoning: Option<(String, String)>,
        in_reasoning: bool,
        arguments: &str,
        unclosed: &str,
        repair_rounds: u32,
        upstream_model: Option<String>,
        listed_tools: Option<Vec<String>>,
        hidden_tools: Vec<String>,
        description_length: Option<NonZeroUsize>,
        engine: Option<&str>,
    ) -> PyResult<Self> {
        let mut settings = ModelSettings::default();
        settings.mode = match mode {
            "text" => ToolMode::Text,
            "native" => ToolMode::Native,
            other => return Err(error::one_of("mode", other, &["text", "native"])),
        };
        if let Some(dialect) = dialect {
            settings.dialect = dialect.inner.clone();
        }
        if keyed {
            settings.markers = Markers::Keyed;
        }
        settings.reasoning = reasoning.map(|(open, close)| {
            let mut span = ReasoningSpan::new(open, close);
            span.is_started = in_reasoning;
            span
        });
        settings.arguments = match arguments {
            "checked" => ArgumentMode::Checked,
            "stream" => ArgumentMode::Stream,
            other => return Err(error::one_of("arguments", other, &["checked", "stream"])),
        };
        settings.unclosed = unclosed_from(unclosed)?;
        settings.repair_rounds = repair_rounds;
        settings.upstream_model = upstream_model;
        let mut budget = PromptBudget::default();
        budget.listed_tools = listed_tools;
        budget.hidden_tools = hidden_tools;
        budget.description_length = description_length;
        settings.prompt_budget = budget;
        settings.check().map_err(error::dialect)?;
        Ok(Self {
            adapter: translation::Adapter::new(Secret::new(secret), settings),
            engine: engine.map(grammar::engine).transpose()?,
        })
    }

    /// Returns whether a request must be passed to `ask`. All others are forwarded unchanged.
    #[staticmethod]
    fn translates(method: &str, path: &str) -> bool {
        method == "POST" && (api_of(path).is_some() || api_above(path).is_some())
    }

    /// Translates a request. Returns `None` if it and its answer are forwarded unchanged, `bytes` if only its body changes,
    /// the translated request, or the response that rejects it.
    ///
    /// `caller` is the client's key, or another text that is the same for all its requests; `seed` is 16 or more random bytes
    /// for this request only; `now` is in seconds since 1970.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        path: &str,
        body: &[u8],
        caller: &str,
        seed: &[u8],
        now: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let Some((api, base)) = api_of(path) else {
            let Some(api) = api_above(path) else {
                return Ok(py.None().into_bound(py));
            };
            let message = format!("{path} is not supported: only {} is translated", api.path());
            let mut error = GatewayError::invalid_request(message, None);
            error.status = 404;
            return Ok(ErrorResponse::new(py, api, &error)?
                .into_bound(py)
                .into_any());
        };
        let host = Host::new(caller, Secret::new(seed), now);
        let asked = released(py, body.len(), || self.asked(api, body, host));
        match asked {
            Ask::Unchanged => Ok(py.None().into_bound(py)),
            Ask::Renamed(body) => Ok(PyBytes::new(py, &body).into_any()),
            Ask::Asked(asked) => {
                let changed = asked.changed_tools().iter();
                let changed = changed.map(|tool| (tool.reason.at.clone(), tool.is_dropped));
                let changed_tools = changed.collect();
                let is_streamed = asked.is_streamed();
                let path = format!("{base}{}", suffix(ClientApi::Chat));
                let exchange = Mutex::new(*asked);
                let asked = Asked {
                    exchange,
                    api,
                    path,
                    is_streamed,
                    changed_tools,
                };
                Ok(Bound::new(py, asked)?.into_any())
            }
            Ask::Refused(error) => Ok(ErrorResponse::new(py, api, &error)?
                .into_bound(py)
                .into_any()),
            _ => Err(error::value(
                "this request needs a newer version of plaincall",
            )),
        }
    }
}

impl Adapter {
    fn asked(&self, api: ClientApi, body: &[u8], host: Host<'_>) -> Ask {
        let mut ask = self.adapter.ask(api.path(), body, host);
        if let (Ask::Asked(asked), Some(engine)) = (&mut ask, self.engine)
            && let Err(error) = asked.constrain(engine)
        {
            let message = format!("the tools have no grammar: {error}");
            return Ask::Refused(GatewayError::invalid_request(message, None));
        }
        ask
    }
}

impl Asked {
    fn asked(&self) -> MutexGuard<'_, translation::Asked> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last bytes for the client, and what follows.
type Ended<'py> = (Bound<'py, PyBytes>, Bound<'py, PyAny>);

impl Asked {
    fn ended<'py>(&self, py: Python<'py>, error: Option<GatewayError>) -> PyResult<Ended<'py>> {
        let (end, bytes) = {
            let mut asked = self.asked();
            let end = asked.end(error);
            let bytes = asked.take();
            // Before any output, the error is the response, not an event.
            let is_response = matches!(end, AskEnd::Refused(_)) && !asked.has_begun();
            (end, if is_response { Vec::new() } else { bytes })
        };
        let bytes = PyBytes::new(py, &bytes);
        let next = match end {
            AskEnd::Done => py.None().into_bound(py),
            AskEnd::Again => true.into_pyobject(py)?.to_owned().into_any(),
            AskEnd::Refused(error) => ErrorResponse::new(py, self.api, &error)?
                .into_bound(py)
                .into_any(),
            _ => {
                return Err(error::value(
                    "this answer needs a newer version of plaincall",
                ));
            }
        };
        Ok((bytes, next))
    }
}

#[pymethods]
impl Asked {
    /// The body of the next request to the model server.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.asked().body())
    }

    /// Begins the model server's answer with its content type.
    fn begin_answer(&self, content_type: &str) {
        // Some servers do not stream.
        let is_json = content_type.trim_start().starts_with("application/json");
        self.asked().begin_answer(self.is_streamed && !is_json);
    }

    /// Feeds the next bytes of the model server's answer. Returns the bytes for the client, and whether to read on: 0 to read on,
    /// 1 to read on for the usage only, 2 to stop.
    fn feed<'py>(&self, py: Python<'py>, chunk: &[u8]) -> (Bound<'py, PyBytes>, u8) {
        let work = || {
            let mut asked = self.asked();
            let flow = match asked.feed(chunk) {
                Flow::UsageOnly => 1,
                Flow::Stop => 2,
                _ => 0,
            };
            (asked.take(), flow)
        };
        let (bytes, flow) = released(py, chunk.len(), work);
        (PyBytes::new(py, &bytes), flow)
    }

    /// Returns what keeps the connection to the client open, or `None` before any output. Send it after some seconds without
    /// output.
    fn keep_alive<'py>(&self, py: Python<'py>) -> Option<Bound<'py, PyBytes>> {
        let bytes = self.asked().keep_alive()?;
        Some(PyBytes::new(py, &bytes))
    }

    /// Ends the model server's answer, with an error if there was one. Returns the last bytes for the client, and `None` if the
    /// reply is complete, `True` if `body` must be sent to repair it, or the response that rejects the request. If bytes were
    /// sent before, the error is in the last bytes too.
    #[pyo3(signature = (error=None))]
    fn end<'py>(&self, py: Python<'py>, error: Option<String>) -> PyResult<Ended<'py>> {
        self.ended(py, error.map(GatewayError::upstream))
    }

    /// Ends an answer with an error status of the model server. Returns the same as `end`.
    fn fail<'py>(&self, py: Python<'py>, status: u16, body: &[u8]) -> PyResult<Ended<'py>> {
        let mut error = GatewayError::from_upstream(status, read_error(body));
        // Statuses that are not errors become 502.
        if !(400..600).contains(&status) {
            error.status = 502;
        }
        self.ended(py, Some(error))
    }
}
