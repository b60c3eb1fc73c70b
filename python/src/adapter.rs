//! The core of the gateway inside a client library (`spec/gateway.md`).

use std::sync::{Mutex, MutexGuard, PoisonError};

use plaincall_gateway::Secret;
pub(crate) use plaincall_gateway::transport::USAGE_WAIT;
use plaincall_gateway::transport::{self, Ask, Flow, Host, Next, Transport};
use plaincall_tool::json::parse;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use serde_json::Map;

use crate::error;
use crate::input::wrong_type;
use crate::lock::released;

/// Translates requests with tools to plain text, and replies back. It does no I/O.
#[pyclass(frozen, module = "plaincall.gateway")]
pub(crate) struct Adapter {
    transport: Transport,
    /// The names of the settings, for `repr`: values may be secret.
    names: Vec<String>,
}

/// A translated request whose answer is being read.
#[pyclass(frozen, module = "plaincall.gateway")]
pub(crate) struct Asked {
    asked: Mutex<transport::Asked>,
}

/// A request for a number of tokens, which the model server counts or which is estimated.
#[pyclass(frozen, module = "plaincall.gateway")]
pub(crate) struct TokenCount {
    count: Mutex<transport::CountTokens>,
}

/// A response to the client that no model wrote: an error, a redirect, or a number of tokens.
#[pyclass(frozen, get_all, module = "plaincall.gateway")]
pub(crate) struct ErrorResponse {
    /// The HTTP status.
    status: u16,
    /// The headers, with the content type.
    headers: Vec<(String, String)>,
    /// The body: JSON in the format of the client's API.
    body: Py<PyBytes>,
}

impl ErrorResponse {
    fn of(py: Python<'_>, response: transport::Response) -> PyResult<Bound<'_, PyAny>> {
        let body = PyBytes::new(py, &response.body).unbind();
        let response = Self {
            status: response.status,
            headers: response.headers,
            body,
        };
        Ok(Bound::new(py, response)?.into_any())
    }
}

#[pymethods]
impl ErrorResponse {
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let body = self.body.bind(py).repr()?;
        Ok(format!(
            "ErrorResponse(status={}, body={body})",
            self.status
        ))
    }
}

#[pymethods]
impl Adapter {
    /// Creates an adapter. Instances that serve the same conversations need the same secret: 32 random bytes. `None` as a setting is
    /// its default.
    #[new]
    #[pyo3(signature = (secret, **settings))]
    fn new(secret: &Bound<'_, PyAny>, settings: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let bytes = secret.cast::<PyBytes>();
        let bytes = bytes.map_err(|_| wrong_type("secret", "bytes", secret))?;
        let mut given = Map::new();
        let py = secret.py();
        let json = py.import("json")?;
        for (name, value) in settings.into_iter().flatten() {
            let text = match json.call_method1("dumps", (&value,)) {
                Err(error)
                    if !(error.is_instance_of::<PyValueError>(py)
                        || error.is_instance_of::<PyTypeError>(py)) =>
                {
                    return Err(error);
                }
                text => text.and_then(|text| text.extract::<String>()),
            };
            let Some(read) = text.ok().and_then(|text| parse(&text).ok()) else {
                // Its value may be long.
                let kind = value.get_type().name()?;
                let message = format!("`{name}`: JSON has no value for this {kind}");
                return Err(error::value(message));
            };
            if !read.is_null() {
                given.insert(name.to_string(), read);
            }
        }
        let names = given.keys().cloned().collect();
        let transport = Transport::new(bytes.as_bytes(), given.into()).map_err(error::value)?;
        Ok(Self { transport, names })
    }

    fn __repr__(&self) -> String {
        format!("Adapter({})", self.names.join(", "))
    }

    /// Returns whether a request of any content type must be passed to `ask`. All others are forwarded unchanged.
    #[staticmethod]
    fn translates(method: &str, target: &str) -> bool {
        Transport::translates(method, target)
    }

    /// Returns the headers of a request to the model server for those of the client's request.
    fn upstream_headers(
        &self,
        headers: Vec<(String, String)>,
        is_translated: bool,
    ) -> Vec<(String, String)> {
        self.transport.upstream_headers(headers, is_translated)
    }

    /// Translates a request. Returns `None` if it and its answer are forwarded unchanged, `bytes` if only its body changes,
    /// the translated request, the count of its tokens, or the response that rejects it.
    ///
    /// `seed` is 16 or more random bytes for this request only; `now` is in seconds since 1970.
    fn ask<'py>(
        &self,
        py: Python<'py>,
        target: &str,
        body: &[u8],
        seed: &[u8],
        now: u64,
    ) -> PyResult<Bound<'py, PyAny>> {
        let host = Host::new(Secret::new(seed), now);
        match released(py, body.len(), || self.transport.ask(target, body, host)) {
            Ask::Unchanged => Ok(py.None().into_bound(py)),
            Ask::Renamed(body) => Ok(PyBytes::new(py, &body).into_any()),
            Ask::Asked(asked) => {
                let asked = Mutex::new(*asked);
                Ok(Bound::new(py, Asked { asked })?.into_any())
            }
            Ask::CountTokens(count) => {
                let count = Mutex::new(*count);
                Ok(Bound::new(py, TokenCount { count })?.into_any())
            }
            Ask::Response(response) => ErrorResponse::of(py, response),
            _ => Err(error::value(
                "this request needs a newer version of plaincall",
            )),
        }
    }
}

impl Asked {
    fn asked(&self) -> MutexGuard<'_, transport::Asked> {
        self.asked.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The last bytes for the client, and what follows.
type Ended<'py> = (Bound<'py, PyBytes>, Bound<'py, PyAny>);

fn ended(py: Python<'_>, (bytes, next): (Vec<u8>, Next)) -> PyResult<Ended<'_>> {
    let next = match next {
        Next::Done => py.None().into_bound(py),
        Next::Again => true.into_pyobject(py)?.to_owned().into_any(),
        Next::Response(response) => ErrorResponse::of(py, response)?,
        _ => {
            return Err(error::value(
                "this answer needs a newer version of plaincall",
            ));
        }
    };
    Ok((PyBytes::new(py, &bytes), next))
}

#[pymethods]
impl Asked {
    /// The path and the query of the next request to the model server.
    #[getter]
    fn target(&self) -> String {
        self.asked().target().to_owned()
    }

    /// The body of the next request to the model server.
    #[getter]
    fn body<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, self.asked().body())
    }

    /// Whether the client asked for an event stream.
    #[getter]
    fn is_streamed(&self) -> bool {
        self.asked().is_streamed()
    }

    /// The tools that could not be offered unchanged: a sentence for each, without content of the request.
    #[getter]
    fn changed_tools(&self) -> Vec<String> {
        let changed = self.asked().changed_tools().into_iter();
        changed.map(|tool| tool.message).collect()
    }

    /// The headers of the response to the client, unless it is an `ErrorResponse`.
    #[getter]
    fn headers(&self) -> Vec<(String, String)> {
        self.asked().headers()
    }

    /// Begins the model server's answer with its status and headers.
    fn begin_answer(&self, status: u16, headers: Vec<(String, String)>) {
        self.asked().begin_answer(status, headers);
    }

    /// Feeds the next bytes of the model server's answer. Returns the bytes for the client, and whether to read on: 0 to read on,
    /// 1 to read on for the usage only, 2 to stop.
    fn feed<'py>(&self, py: Python<'py>, chunk: &[u8]) -> (Bound<'py, PyBytes>, u8) {
        let (bytes, flow) = released(py, chunk.len(), || self.asked().feed(chunk));
        let flow = match flow {
            Flow::UsageOnly => 1,
            Flow::Stop => 2,
            _ => 0,
        };
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
        let end = self.asked().end(error);
        ended(py, end)
    }

    /// Ends the answer, or a request without one, because the connection broke. Returns the same as `end`, or `None` if the client
    /// must get the error of its own library.
    fn connection_error<'py>(
        &self,
        py: Python<'py>,
        error: String,
    ) -> PyResult<Option<Ended<'py>>> {
        let end = self.asked().connection_error(error);
        end.map(|end| ended(py, end)).transpose()
    }
}

#[pymethods]
impl TokenCount {
    /// The target and the body of the next request to the model server, or `None` if no answer is needed any more.
    #[getter]
    fn request<'py>(&self, py: Python<'py>) -> Option<(String, Bound<'py, PyBytes>)> {
        let (path, body) = self.count().request()?;
        Some((path, PyBytes::new(py, &body)))
    }

    /// Takes the next bytes of the model server's answer to the request, unless it is an error. Returns whether to read on.
    fn feed(&self, chunk: &[u8]) -> bool {
        self.count().feed(chunk)
    }

    /// Ends the answer.
    fn end(&self, py: Python<'_>) {
        released(py, usize::MAX, || self.count().end());
    }

    /// The response to the client.
    #[getter]
    fn response<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        ErrorResponse::of(py, self.count().response())
    }
}

impl TokenCount {
    fn count(&self) -> MutexGuard<'_, transport::CountTokens> {
        self.count.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
