//! A complete text with its calls.

use std::sync::Arc;

use plaincall_prompt::repair::repair_document;
use plaincall_reply::{ModelText, PromptText, ReplyCheck, Unclosed, document::Segment};
use plaincall_syntax::{DialectError, Syntax};
use plaincall_tool::{NoTools, ToolSet};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyTuple;

use crate::call::Call;
use crate::dialect::Dialect;
use crate::error;
use crate::events::{Reasoning, Text, diagnostics, string};
use crate::input::bytes;
use crate::lock::released;
use crate::settings::stop_from;

/// A complete text: its parts, its calls and its diagnostics (`spec/common.md` 11).
#[pyclass(frozen, module = "plaincall")]
pub(crate) struct Document {
    /// The syntax of the dialect; in the automatic dialect that of the first call, or `None`.
    #[pyo3(get)]
    syntax: Option<&'static str>,
    /// `Text`, `Reasoning` and `Call` objects, in order. Their spans cover the text without gaps.
    #[pyo3(get)]
    segments: Py<PyTuple>,
    /// The calls, in order.
    #[pyo3(get)]
    calls: Py<PyTuple>,
    /// All diagnostics, ordered by the ends of their spans. With tools, also those of their definitions.
    #[pyo3(get)]
    diagnostics: Py<PyTuple>,
    read: plaincall_reply::Document,
    /// The text, if there is no call: a repair message may be about it.
    source: ModelText<'static>,
}

impl Document {
    /// Converts a document, whose calls were validated against these tools.
    pub(crate) fn new(
        py: Python<'_>,
        read: plaincall_reply::Document,
        text: &[u8],
        tools: Option<Arc<ToolSet>>,
    ) -> PyResult<Self> {
        let mut calls = Vec::new();
        let mut segments = Vec::with_capacity(read.segments.len());
        for segment in &read.segments {
            let (start, end) = (segment.span().start, segment.span().end);
            let source = || {
                let source = text.get(start..end).unwrap_or_default();
                string(py, &String::from_utf8_lossy(source))
            };
            segments.push(match segment {
                Segment::Text { text, .. } => {
                    let (text, source) = (string(py, text), source());
                    Py::new(
                        py,
                        Text {
                            text,
                            start,
                            end,
                            source,
                        },
                    )?
                    .into_any()
                }
                Segment::Reasoning { text, .. } => {
                    let (text, source) = (string(py, text), source());
                    Py::new(
                        py,
                        Reasoning {
                            text,
                            start,
                            end,
                            source,
                        },
                    )?
                    .into_any()
                }
                Segment::Call(read) => {
                    let call = Py::new(py, Call::new(py, read, tools.clone())?)?;
                    calls.push(call.clone_ref(py));
                    call.into_any()
                }
                _ => continue,
            });
        }
        let source = match read.calls().next() {
            Some(_) => String::new(),
            None => String::from_utf8_lossy(text).into_owned(),
        };
        Ok(Self {
            syntax: read.syntax.map(Syntax::name),
            segments: PyTuple::new(py, segments)?.unbind(),
            calls: PyTuple::new(py, calls)?.unbind(),
            diagnostics: diagnostics(py, &read.diagnostics)?,
            read,
            source: ModelText::new(source),
        })
    }

    /// Returns a message to the model about what is wrong with the calls, if anything is.
    pub(crate) fn repair(
        &self,
        tools: &ToolSet,
        dialect: &plaincall_syntax::Dialect,
    ) -> Result<Option<PromptText>, DialectError> {
        repair_document(&self.read, &self.source, tools, dialect)
    }
}

#[pymethods]
impl Document {
    /// The text outside calls and reasoning.
    #[getter]
    fn text(&self) -> String {
        let segments = self.read.segments.iter();
        let texts = segments.map(|segment| match segment {
            Segment::Text { text, .. } => text.as_str(),
            _ => "",
        });
        texts.collect()
    }

    /// Returns the document as JSON, as `plaincall parse` prints it.
    fn to_json(&self) -> PyResult<String> {
        serde_json::to_string(&self.read).map_err(error::value)
    }

    /// A pickle could not contain the tools that checked its calls.
    #[allow(clippy::unused_self, reason = "a method of Python")]
    fn __reduce__(&self) -> PyResult<()> {
        Err(PyTypeError::new_err(
            "a `Document` cannot be pickled: pickle its `calls`, `segments` or `diagnostics`, or `to_json()`",
        ))
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let calls = self.calls.bind(py).repr()?;
        let diagnostics = self.diagnostics.bind(py).len();
        Ok(format!(
            "Document(calls={}, {diagnostics} diagnostics)",
            calls.to_string_lossy()
        ))
    }
}

/// Finds the calls in a complete text: `str` or `bytes`. No text is an error.
///
/// `stop` states how the text ended, which decides whether a call without an end marker may run: `"natural"` (the text is
/// complete), `"end_of_file"`, `"length"` or `"broken"` (unknown). Default dialect: automatic.
#[pyfunction]
#[pyo3(signature = (text, dialect=None, *, stop="broken"))]
pub(crate) fn parse(
    py: Python<'_>,
    text: &Bound<'_, PyAny>,
    dialect: Option<&Dialect>,
    stop: &str,
) -> PyResult<Document> {
    let stop = stop_from(stop)?;
    let dialect = Dialect::or_auto(dialect);
    let text = bytes(text)?;
    let read = released(py, text.len(), || {
        let check = ReplyCheck::new(&dialect, Unclosed::Reject)?;
        plaincall_reply::Document::read(&text, &dialect, NoTools, check, stop)
    });
    Document::new(py, read.map_err(error::dialect)?, &text, None)
}

/// Text that looks like a marker or a call in another format, and is neither (`spec/common.md` 9).
#[pyclass(frozen, get_all, module = "plaincall")]
pub(crate) struct NearMiss {
    /// The text.
    source: String,
    /// The marker that was probably meant.
    suggestion: String,
    /// The start, in bytes of the text.
    start: usize,
    /// The end, in bytes of the text.
    end: usize,
}

#[pymethods]
impl NearMiss {
    fn __repr__(&self) -> String {
        let Self {
            source,
            suggestion,
            start,
            end,
        } = self;
        format!("NearMiss(source={source:?}, suggestion={suggestion:?}, start={start}, end={end})")
    }
}

/// Finds text that looks like a marker or a call in another format, and is neither: in `str` or `bytes`. Default dialect:
/// automatic.
#[pyfunction]
#[pyo3(signature = (text, dialect=None))]
pub(crate) fn near_misses(
    py: Python<'_>,
    text: &Bound<'_, PyAny>,
    dialect: Option<&Dialect>,
) -> PyResult<Vec<NearMiss>> {
    let dialect = Dialect::or_auto(dialect);
    let bytes = bytes(text)?;
    let text = String::from_utf8_lossy(&bytes);
    let found = released(py, text.len(), || {
        plaincall_reply::Document::parse(&text, &dialect)?.near_misses(&text, &dialect)
    });
    let places = Places::new(&bytes);
    let found = found.map_err(error::dialect)?.into_iter();
    let near = found.map(|miss| NearMiss {
        source: text.get(miss.span.range()).unwrap_or_default().to_owned(),
        suggestion: miss.suggestion,
        start: places.original(miss.span.start),
        end: places.original(miss.span.end),
    });
    Ok(near.collect())
}

/// Converts places in a text in which invalid bytes were replaced to places in the bytes.
struct Places {
    /// The ends of replacements, in order: in the text and in the bytes.
    ends: Vec<(usize, usize)>,
}

impl Places {
    fn new(bytes: &[u8]) -> Self {
        let (mut replaced, mut original) = (0, 0);
        let mut ends = Vec::new();
        for chunk in bytes.utf8_chunks() {
            replaced += chunk.valid().len();
            original += chunk.valid().len();
            if !chunk.invalid().is_empty() {
                replaced += char::REPLACEMENT_CHARACTER.len_utf8();
                original += chunk.invalid().len();
                ends.push((replaced, original));
            }
        }
        Self { ends }
    }

    fn original(&self, place: usize) -> usize {
        let after = self.ends.partition_point(|(end, _)| *end <= place);
        let last = after.checked_sub(1).and_then(|last| self.ends.get(last));
        last.map_or(place, |(replaced, original)| original + (place - replaced))
    }
}
