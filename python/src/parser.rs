//! The streaming parser.

use std::sync::Mutex;

use plaincall_syntax::{ByteParser, Event};
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::dialect::Dialect;
use crate::error;
use crate::events::to_python;
use crate::input::{bytes, dialect_of};
use crate::lock::{alone, in_pieces};

/// Finds calls in a text while it arrives.
///
/// Feed it `str` or `bytes`; the bytes of a character may come in two chunks. The events are the same for every split, except
/// for where text is split. No text is an error.
#[pyclass(frozen, module = "plaincall")]
pub(crate) struct Parser {
    parser: Mutex<Option<ByteParser>>,
}

/// Converts events, and appends them to a list.
fn append(objects: &Bound<'_, PyList>, events: &[Event<'_>]) -> PyResult<()> {
    let mut events = events.iter();
    events.try_for_each(|event| objects.append(to_python(objects.py(), event)?))
}

/// Describes a parser or reader, which another thread may use.
pub(crate) fn state(is_finished: PyResult<bool>) -> &'static str {
    match is_finished {
        Ok(true) => "finished",
        Ok(false) => "not finished",
        Err(_) => "in use",
    }
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
        let parser = Dialect::or_auto(dialect_of(dialect)?).parser()?;
        Ok(Self {
            parser: Mutex::new(Some(parser)),
        })
    }

    /// Reads the next chunk, and returns its events. A signal that stops it ends the text.
    ///
    /// Raises `ValueError` after `finish`.
    fn feed<'py>(
        &self,
        py: Python<'py>,
        chunk: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let chunk = bytes("chunk", chunk)?;
        let mut own = alone(&self.parser)?;
        let mut parser = own.take().ok_or_else(finished)?;
        let objects = PyList::empty(py);
        let read = |piece| parser.feed(piece).collect();
        in_pieces(py, &chunk, read, |events: Vec<Event<'_>>| {
            append(&objects, &events)
        })?;
        *own = Some(parser);
        Ok(objects)
    }

    /// Ends the text, and returns its last events.
    ///
    /// Raises `ValueError` the second time.
    fn finish<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyList>> {
        let parser = alone(&self.parser)?.take().ok_or_else(finished)?;
        let events: Vec<Event<'_>> = parser.finish().collect();
        let objects = PyList::empty(py);
        append(&objects, &events)?;
        Ok(objects)
    }

    fn __repr__(&self) -> String {
        let is_finished = alone(&self.parser).map(|parser| parser.is_none());
        format!("Parser({})", state(is_finished))
    }
}
