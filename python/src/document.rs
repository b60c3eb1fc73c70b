//! A complete text with its calls.

use std::sync::Arc;

use plaincall_prompt::repair::repair_document;
use plaincall_reply::document::{DocumentReader, Segment};
use plaincall_reply::{ModelText, PromptText, Stop};
use plaincall_syntax::Syntax;
use plaincall_tool::{ToolLookup, ToolSet};
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyByteArray, PyBytes, PyTuple};

use crate::call::Call;
use crate::dialect::Dialect;
use crate::events::{Reasoning, Text, diagnostics, string};
use crate::input::{bytes, dialect_of};
use crate::lock::{check_signals, free, in_pieces, released};
use crate::settings::stop_from;
use crate::{error, toolbox};

/// A function and its arguments, which create an object again.
type Reduced<'py> = (
    Bound<'py, PyAny>,
    (Py<PyAny>, Option<Py<PyAny>>, &'static str),
);

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
    source: Source,
}

/// How a document was read, which gives the same document again.
pub(crate) struct Source {
    /// `str` or `bytes`.
    text: Py<PyAny>,
    /// A `Dialect` or `ToolSet`. Default: the automatic dialect.
    rules: Option<Py<PyAny>>,
    stop: Stop,
}

impl Source {
    pub(crate) fn new(
        text: &Bound<'_, PyAny>,
        rules: Option<Bound<'_, PyAny>>,
        stop: Stop,
    ) -> Self {
        // A `bytearray` may change.
        let text = match text.cast::<PyByteArray>() {
            Ok(bytes) => PyBytes::new(text.py(), &bytes.to_vec()).into_any(),
            Err(_) => text.clone(),
        };
        Self {
            text: text.unbind(),
            rules: rules.map(Bound::unbind),
            stop,
        }
    }

    /// Reads the text with a copy of the reader. Signals, such as Ctrl-C, can stop it.
    pub(crate) fn read<T: ToolLookup + Clone + Send + 'static>(
        self,
        py: Python<'_>,
        reader: &DocumentReader<T>,
        tools: Option<Arc<ToolSet>>,
    ) -> PyResult<Document> {
        let given = self.text.clone_ref(py).into_bound(py);
        let text = bytes("text", &given)?;
        let read = read(py, reader, &text, self.stop)?;
        Document::new(py, read, &text, tools, self)
    }
}

/// Reads a text with a copy of the reader. Signals, such as Ctrl-C, can stop it.
fn read<T: ToolLookup + Clone + Send + 'static>(
    py: Python<'_>,
    reader: &DocumentReader<T>,
    text: &[u8],
    stop: Stop,
) -> PyResult<plaincall_reply::Document> {
    let mut reader = reader.clone();
    if let Err(stopped) = in_pieces(py, text, |piece| reader.feed(piece), Ok) {
        free(reader);
        return Err(stopped);
    }
    Ok(released(py, text.len(), || reader.finish(stop)))
}

impl Document {
    /// Converts a document, whose calls were validated against these tools.
    fn new(
        py: Python<'_>,
        read: plaincall_reply::Document,
        text: &[u8],
        tools: Option<Arc<ToolSet>>,
        source: Source,
    ) -> PyResult<Self> {
        let mut calls = Vec::new();
        let mut segments = Vec::with_capacity(read.segments.len());
        for (at, segment) in read.segments.iter().enumerate() {
            if let Err(stopped) = check_signals(py, at) {
                free(read);
                return Err(stopped);
            }
            let (start, end) = (segment.span().start, segment.span().end);
            let source = || {
                let source = text.get(start..end).unwrap_or_default();
                string(py, &String::from_utf8_lossy(source))
            };
            segments.push(match segment {
                Segment::Text { text, .. } => {
                    let (text, source) = (string(py, text), source());
                    let text = Text {
                        text,
                        start,
                        end,
                        source,
                    };
                    Py::new(py, text)?.into_any()
                }
                Segment::Reasoning { text, .. } => {
                    let (text, source) = (string(py, text), source());
                    let reasoning = Reasoning {
                        text,
                        start,
                        end,
                        source,
                    };
                    Py::new(py, reasoning)?.into_any()
                }
                Segment::Call(read) => {
                    let call = Py::new(py, Call::new(py, read, tools.clone())?)?;
                    calls.push(call.clone_ref(py));
                    call.into_any()
                }
                _ => continue,
            });
        }
        Ok(Self {
            syntax: read.syntax.map(Syntax::name),
            segments: PyTuple::new(py, segments)?.unbind(),
            calls: PyTuple::new(py, calls)?.unbind(),
            diagnostics: diagnostics(py, &read.diagnostics)?,
            read,
            source,
        })
    }

    /// Returns a message to the model about what is wrong with the calls, if anything is.
    pub(crate) fn repair(
        &self,
        py: Python<'_>,
        tools: &ToolSet,
        dialect: &plaincall_syntax::Dialect,
    ) -> PyResult<Option<PromptText>> {
        let text = self.source.text.bind(py);
        let text = bytes("text", text)?;
        let text = ModelText::new(String::from_utf8_lossy(&text));
        let message = repair_document(&self.read, &text, tools, dialect);
        message.map_err(error::dialect)
    }
}

impl Document {
    fn compared<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
        (self.syntax, &self.segments, &self.diagnostics).into_pyobject(py)
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

    /// It cannot change.
    fn __copy__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    /// What pickles contain: the text, and what it was read with.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let module = py.import("plaincall._plaincall")?;
        let source = &self.source;
        let rules = source.rules.as_ref().map(|rules| rules.clone_ref(py));
        Ok((
            module.getattr("unpickled_document")?,
            (source.text.clone_ref(py), rules, source.stop.name()),
        ))
    }

    /// Documents are equal if their parts and diagnostics are.
    fn __richcmp__<'py>(
        &self,
        other: &Bound<'py, PyAny>,
        operation: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        let py = other.py();
        match (other.cast::<Self>(), operation) {
            (Ok(other), CompareOp::Eq | CompareOp::Ne) => {
                let other = other.get().compared(py)?;
                self.compared(py)?.rich_compare(other, operation)
            }
            _ => Ok(py.NotImplemented().into_bound(py)),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        self.segments.bind(py).hash()
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
/// `stop` is the finish reason of the reply, as an API has it (`"stop"`, `"length"`, `"end_turn"`, `"max_tokens"`, …), or
/// `"natural"` (the text is complete), `"end_of_file"`, `"length"` or `"broken"` (unknown). It decides whether a call without an end
/// marker may run. Default: unknown. Default dialect: automatic. `table` is faster for many texts.
#[pyfunction]
#[pyo3(signature = (text, dialect=None, *, stop=None))]
pub(crate) fn parse<'py>(
    py: Python<'py>,
    text: &Bound<'py, PyAny>,
    dialect: Option<&Bound<'py, PyAny>>,
    stop: Option<&Bound<'py, PyAny>>,
) -> PyResult<Document> {
    let read_in = dialect_of(dialect)?;
    let source = Source::new(text, dialect.cloned(), stop_from(stop)?);
    source.read(py, Dialect::or_auto(read_in).reader()?, None)
}

/// Reads the document that a pickle describes.
#[pyfunction]
pub(crate) fn unpickled_document<'py>(
    text: &Bound<'py, PyAny>,
    rules: Option<&Bound<'py, PyAny>>,
    stop: &Bound<'py, PyAny>,
) -> PyResult<Document> {
    let tools = rules.and_then(|rules| rules.cast::<toolbox::ToolSet>().ok());
    match tools {
        Some(tools) => toolbox::ToolSet::parse(tools, text, Some(stop)),
        None => parse(text.py(), text, rules, Some(stop)),
    }
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
    dialect: Option<&Bound<'_, PyAny>>,
) -> PyResult<Vec<NearMiss>> {
    let dialect = Dialect::or_auto(dialect_of(dialect)?);
    let bytes = bytes("text", text)?;
    let text = String::from_utf8_lossy(&bytes);
    let reader = dialect.reader()?;
    let document = read(py, reader, text.as_bytes(), Stop::Broken)?;
    let found = released(py, text.len(), || {
        document.near_misses(&text, &dialect.inner)
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
