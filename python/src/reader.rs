//! Replies, read while they arrive.

use std::sync::Arc;

use plaincall_reply::{ReplyItem, ReplyReader};
use plaincall_tool::ToolSet;
use pyo3::prelude::*;
use pyo3::types::PyList;

use crate::call::Call;
use crate::events::to_python;
use crate::input::bytes;
use crate::lock::released;
use crate::parser::finished;
use crate::settings::stop_from;

/// Reads the replies of one conversation while the model writes.
///
/// `feed` returns the events of the parser, and a `Call` after the end of each call.
#[pyclass(module = "plaincall")]
pub(crate) struct Reader {
    reader: ReplyReader<Arc<ToolSet>>,
    is_finished: bool,
}

impl Reader {
    pub(crate) fn new(reader: ReplyReader<Arc<ToolSet>>) -> Self {
        Self {
            reader: reader.with_events(),
            is_finished: false,
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
        for item in items {
            match item {
                ReplyItem::Event(event) => objects.append(to_python(py, &event)?)?,
                ReplyItem::Call(read) => {
                    let tools = Some(Arc::clone(self.reader.tools()));
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
    /// it in the same chunk; calls of earlier chunks have been returned.
    ///
    /// Raises `ValueError` after `finish`.
    fn feed<'py>(
        &mut self,
        py: Python<'py>,
        chunk: &Bound<'py, PyAny>,
    ) -> PyResult<Bound<'py, PyList>> {
        if self.is_finished {
            return Err(finished());
        }
        let chunk = bytes("chunk", chunk)?;
        let reader = &mut self.reader;
        let items: Vec<ReplyItem<'_>> =
            released(py, chunk.len(), || reader.feed(&*chunk).collect());
        self.listed(py, items)
    }

    /// Ends the reply, and returns its last events and calls. `stop` states how it ended, as in `parse`.
    ///
    /// Raises `ValueError` the second time.
    #[pyo3(signature = (*, stop=None))]
    fn finish<'py>(
        &mut self,
        py: Python<'py>,
        stop: Option<&Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyList>> {
        if self.is_finished {
            return Err(finished());
        }
        let stop = stop_from(stop)?;
        self.is_finished = true;
        let items = self.reader.finish(stop).items;
        self.listed(py, items)
    }

    /// Begins the next reply of the conversation: ids may be used again, numbering continues.
    fn begin_reply(&mut self) {
        self.is_finished = false;
        self.reader.begin_reply();
    }
}
