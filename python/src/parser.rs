//! The streaming parser.

use plaincall_syntax::{ByteParser, Event};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::dialect::Dialect;
use crate::error;
use crate::events::to_python;
use crate::input::{bytes, dialect_of};
use crate::lock::released;

/// Finds calls in a text while it arrives.
///
/// Feed it `str` or `bytes`; the bytes of a character may come in two chunks. The events are the same for every split, except
/// for where text is split. No text is an error.
#[pyclass(module = "plaincall")]
pub(crate) struct Parser {
    parser: Option<ByteParser>,
}

/// Converts events to a list.
pub(crate) fn listed<'py>(py: Python<'py>, events: &[Event<'_>]) -> PyResult<Bound<'py, PyList>> {
    let events: PyResult<Vec<Py<PyAny>>> =
        events.iter().map(|event| to_python(py, event)).collect();
    PyList::new(py, events?)
}

pub(crate) fn finished() -> PyErr {
    error::value("the parser is finished; create another one for the next text")
}

#[pymethods]
impl Parser {
    /// Creates a parser for one text. Default dialect: automatic.
    #[new]
    #[pyo3(signature = (dialect=None))]
    fn new(dialect: Option<&Bound<'_, PyAny>>) -> PyResult<Self> {
        let parser = Some(Dialect::or_auto(dialect_of(dialect)?).parser()?);
        Ok(Self { parser })
    }

    /// Reads the next chunk, and returns its events.
    ///
    /// Raises `ValueError` after `finish`.
    fn feed<'py>(
        &mut self,
        py: Python<'py>,
        chunk: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let parser = self.parser.as_mut().ok_or_else(finished)?;
        let chunk = bytes("chunk", chunk)?;
        let events: Vec<Event<'_>> = released(py, chunk.len(), || parser.feed(&chunk).collect());
        listed(py, &events)
    }

    /// Ends the text, and returns its last events.
    ///
    /// Raises `ValueError` the second time.
    fn finish<'py>(&mut self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let parser = self.parser.take().ok_or_else(finished)?;
        let events: Vec<Event<'_>> = parser.finish().collect();
        listed(py, &events)
    }
}
