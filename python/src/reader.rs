//! Replies, read while they arrive.

use std::sync::{Arc, Mutex};

use plaincall_reply::{ReplyItem, ReplyReader};
use plaincall_tool::ToolSet;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::call::Call;
use crate::events::to_python;
use crate::input::bytes;
use crate::lock::{alone, check_signals, in_pieces};
use crate::parser::{finished, state};
use crate::settings::stop_from;

/// Reads the replies of one conversation while the model writes.
///
/// `feed` returns the events of the parser, and a `Call` after the end of each call.
#[pyclass(frozen, module = "plaincall")]
pub(crate) struct Reader {
    tools: Arc<ToolSet>,
    /// The reader, and whether the reply is finished.
    reader: Mutex<(ReplyReader<Arc<ToolSet>>, bool)>,
}

impl Reader {
    pub(crate) fn new(reader: ReplyReader<Arc<ToolSet>>) -> Self {
        Self {
            tools: Arc::clone(reader.tools()),
            reader: Mutex::new((reader.with_events(), false)),
        }
    }

    fn listed<'py>(
        &self,
        py: Python<'py>,
        mut items: Vec<ReplyItem<'_>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let objects = PyList::empty(py);
        // Nothing of this chunk has been used yet.
        ReplyItem::reject_reasoning(&mut items);
        for (at, item) in items.into_iter().enumerate() {
            check_signals(py, at)?;
            match item {
                ReplyItem::Event(event) => objects.append(to_python(py, &event)?)?,
                ReplyItem::Call(read) => {
                    let tools = Some(Arc::clone(&self.tools));
                    objects.append(Py::new(py, Call::new(py, &read, tools)?)?)?;
                }
                _ => {}
            }
        }
        Ok(objects)
    }
}

#[pymethods]
impl Reader {
    /// Reads the next chunk of the reply: `str` or `bytes`. A reasoning end marker that nothing opened rejects the calls before
    /// it in the same chunk; calls of earlier chunks have been returned. A signal that stops it ends the reply; `begin_reply` begins
    /// the next one.
    ///
    /// Raises `ValueError` after `finish`.
    fn feed<'py>(
        &self,
        py: Python<'py>,
        chunk: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        let chunk = bytes("chunk", chunk)?;
        let mut own = alone(&self.reader)?;
        let (reader, is_finished) = &mut *own;
        if *is_finished {
            return Err(finished());
        }
        *is_finished = true;
        let mut items: Vec<ReplyItem<'_>> = Vec::new();
        let read = |piece| items.extend(reader.feed(piece));
        in_pieces(py, &chunk, read, Ok)?;
        let objects = self.listed(py, items)?;
        *is_finished = false;
        Ok(objects)
    }

    /// Ends the reply, and returns its last events and calls. `stop` states how it ended, as in `parse`.
    ///
    /// Raises `ValueError` the second time.
    #[pyo3(signature = (*, stop=None))]
    fn finish<'py>(
        &self,
        py: Python<'py>,
        stop: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        let mut own = alone(&self.reader)?;
        let (reader, is_finished) = &mut *own;
        if *is_finished {
            return Err(finished());
        }
        let stop = stop_from(stop)?;
        *is_finished = true;
        let items = reader.finish(stop).items;
        self.listed(py, items)
    }

    /// Begins the next reply of the conversation: ids may be used again, numbering continues.
    fn begin_reply(&self) -> PyResult<()> {
        let mut own = alone(&self.reader)?;
        let (reader, is_finished) = &mut *own;
        *is_finished = false;
        reader.begin_reply();
        Ok(())
    }

    fn __repr__(&self) -> String {
        let is_finished = alone(&self.reader).map(|own| own.1);
        format!("Reader({})", state(is_finished))
    }
}
