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
use crate::paths::{self, Found, Target};
use crate::settings::unclosed_from;

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
    /// The base of the paths of both requests.
    #[pyo3(get)]
    base: String,
    /// Whether the client asked for an event stream.
    #[pyo3(get)]
    is_streamed: bool,
    /// The tools that could not be offered unchanged: place, and whether it was dropped.
    #[pyo3(get)]
    changed_tools: Vec<(String, bool)>,
}

/// A request for a number of tokens, which the model server counts or which is estimated.
#[pyclass(frozen, module = "plaincall")]
pub(crate) struct TokenCount {
    count: Mutex<translation::TokenCount>,
    /// The base of the paths of both requests.
    #[pyo3(get)]
    base: String,
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

    /// Returns whether a request with this content type must be passed to `ask`. All others are forwarded unchanged.
    #[staticmethod]
    #[pyo3(signature = (method, path, content_type=None))]
    fn translates(method: &str, path: &str, content_type: Option<&str>) -> bool {
        let may_be_json =
            content_type.is_none_or(|kind| kind.to_ascii_lowercase().contains("json"));
        method == "POST" && paths::find(path).is_some_and(|found| found.is_certain || may_be_json)
    }

    /// Translates a request. Returns `None` if it and its answer are forwarded unchanged, `bytes` if only its body changes,
    /// the translated request, the count of its tokens, or the response that rejects it.
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
        let unchanged = || py.None().into_bound(py);
        let Some(Found { target, is_certain }) = paths::find(path) else {
            return Ok(unchanged());
        };
        if !is_certain && !released(py, body.len(), || paths::has_tools(body)) {
            return Ok(unchanged());
        }
        let (api, base) = match target {
            Target::Ask(api, base) => (api, base),
            Target::CountTokens(base) => (ClientApi::Messages, base),
            Target::Unsupported(api) => {
                let message = format!("{path} is not supported: only {} is translated", api.path());
                let mut error = GatewayError::invalid_request(message, None);
                error.status = 404;
                let rejected = ErrorResponse::new(py, api, &error)?;
                return Ok(rejected.into_bound(py).into_any());
            }
        };
        let host = Host::new(caller, Secret::new(seed), now);
        let asked = released(py, body.len(), || self.asked(api, body, host));
        match asked {
            Ask::Unchanged => Ok(unchanged()),
            Ask::Renamed(body) => Ok(PyBytes::new(py, &body).into_any()),
            Ask::Asked(asked) if matches!(target, Target::CountTokens(_)) => {
                let count = move || translation::TokenCount::new(asked.body());
                let count = Mutex::new(released(py, body.len(), count));
                let base = paths::server_base(base).to_owned();
                Ok(Bound::new(py, TokenCount { count, base })?.into_any())
            }
            Ask::Asked(asked) => {
                let changed = asked.changed_tools().iter();
                let changed = changed.map(|tool| (tool.reason.at.clone(), tool.is_dropped));
                let changed_tools = changed.collect();
                let is_streamed = asked.is_streamed();
                let base = base.to_owned();
                let exchange = Mutex::new(*asked);
                let asked = Asked {
                    exchange,
                    api,
                    base,
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
    /// The path of the request to the model server.
    #[getter]
    fn path(&self) -> String {
        format!("{}{}", self.base, paths::suffix(ClientApi::Chat))
    }

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

#[pymethods]
impl TokenCount {
    /// The path and the body of the next request to the model server, or `None` if no answer is needed any more.
    #[getter]
    fn request<'py>(&self, py: Python<'py>) -> Option<(String, Bound<'py, PyBytes>)> {
        let (path, body) = self.count().request()?;
        Some((format!("{}{path}", self.base), PyBytes::new(py, &body)))
    }

    /// Takes the model server's answer to the request, unless it is an error.
    fn answer(&self, py: Python<'_>, answer: &[u8]) {
        released(py, answer.len(), || self.count().answer(answer));
    }

    /// The headers and the body of the response to the client.
    #[getter]
    fn response<'py>(
        &self,
        py: Python<'py>,
    ) -> (Vec<(&'static str, &'static str)>, Bound<'py, PyBytes>) {
        let count = self.count();
        let mut headers = vec![("content-type", "application/json")];
        headers.extend(
            count
                .is_estimate()
                .then_some(translation::TokenCount::ESTIMATE),
        );
        (headers, PyBytes::new(py, count.response_body().as_bytes()))
    }
}

impl TokenCount {
    fn count(&self) -> MutexGuard<'_, translation::TokenCount> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
