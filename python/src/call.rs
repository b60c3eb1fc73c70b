//! A complete call as a Python object.

use plaincall_call::document::BoundCall;
use plaincall_call::{Bound, CallError, ReplyDiagnostic, SuspectMarker, ToolCall, ToolSet};
use plaincall_syntax::Syntax;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde_json::Value;

use crate::events::{diagnostics, optional, string, strings, word};
use crate::json;

/// A function and its arguments, which create an object again.
type Reduced<'py> = (pyo3::Bound<'py, PyAny>, (pyo3::Bound<'py, PyDict>,));

/// A call, with the decision of whether it may run.
///
/// An invalid call is data: it has `problems` and a `rejection`, and nothing is raised.
#[pyclass(frozen, get_all, module = "plaincall")]
pub(crate) struct Call {
    /// The index in order of appearance, from 0.
    index: usize,
    /// The name of the tool, as written.
    name: Py<PyAny>,
    /// The id, written or assigned.
    id: Py<PyAny>,
    /// Whether the id was assigned, not written.
    is_id_automatic: bool,
    /// The ids of the calls that it depends on.
    dependencies: Py<PyAny>,
    /// The arguments as a `dict`, or `None` if they are invalid.
    arguments: Py<PyAny>,
    /// The errors: of the text, and with tools those of the definition.
    problems: Py<PyTuple>,
    /// Why the call must not run, as a sentence for the model; `None` if it may run.
    rejection: Py<PyAny>,
    /// Text in a value that was probably meant to end the call earlier. Run such a call only if a person approves it.
    held: Py<PyAny>,
    /// All diagnostics of the text of the call, also warnings.
    diagnostics: Py<PyTuple>,
    /// `"block"` or `"emoji"`.
    syntax: Py<PyAny>,
    /// How it ended: `"explicit"`, `"next_call"` or `"end_of_stream"`.
    termination: Py<PyAny>,
    /// The text after the name in the header of an emoji call; `None` in the block syntax.
    raw_args: Py<PyAny>,
    /// The body of an emoji call; `None` in the block syntax.
    body: Py<PyAny>,
    /// The start, in bytes of the text.
    start: usize,
    /// The end, in bytes of the text.
    end: usize,
    /// The exact text, with markers; `None` if a value was over the limit and not kept.
    source: Py<PyAny>,
}

/// The decision about a call.
pub(crate) struct Decided {
    /// The arguments, if they are valid.
    pub(crate) arguments: Option<Value>,
    pub(crate) problems: Vec<ReplyDiagnostic>,
    pub(crate) rejection: Option<CallError>,
    pub(crate) held: Option<SuspectMarker>,
}

impl Call {
    pub(crate) fn new(py: Python<'_>, call: &ToolCall, decided: &Decided) -> PyResult<Self> {
        let arguments = match &decided.arguments {
            Some(arguments) => json::to_python(py, arguments)?.unbind(),
            None => py.None(),
        };
        let rejection = decided.rejection.as_ref().map(ToString::to_string);
        let held = decided.held.as_ref().map(ToString::to_string);
        Ok(Self {
            index: call.index,
            name: string(py, &call.name),
            id: string(py, &call.id),
            is_id_automatic: call.is_id_automatic,
            dependencies: strings(py, call.dependencies.iter().map(String::as_str))?,
            arguments,
            problems: diagnostics(py, &decided.problems)?,
            rejection: optional(py, rejection.as_deref()),
            held: optional(py, held.as_deref()),
            diagnostics: diagnostics(py, &call.diagnostics)?,
            syntax: word(py, call.syntax.name()),
            termination: word(py, call.termination.name()),
            raw_args: optional(py, call.raw_args()),
            body: optional(py, call.body()),
            start: call.span.start,
            end: call.span.end,
            source: optional(py, call.source()),
        })
    }
}

/// Defines what pickles contain: these attributes, which are all.
macro_rules! pickled {
    ($($name:ident)*) => {
        const PICKLED: &[&str] = &[$(stringify!($name)),*];

        /// Creates the call that a pickle describes by its attributes.
        #[pyfunction]
        pub(crate) fn unpickled_call(attributes: &pyo3::Bound<'_, PyAny>) -> PyResult<Call> {
            Ok(Call {
                $($name: attributes.get_item(stringify!($name))?.extract()?,)*
            })
        }
    };
}

pickled! {
    index name id is_id_automatic dependencies arguments problems rejection held diagnostics syntax termination raw_args body start
    end source
}

#[pymethods]
impl Call {
    /// What pickles contain.
    fn __reduce__<'py>(this: &pyo3::Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let attributes = PyDict::new(this.py());
        for name in PICKLED {
            attributes.set_item(name, this.getattr(*name)?)?;
        }
        let module = this.py().import("plaincall._plaincall")?;
        Ok((module.getattr("unpickled_call")?, (attributes,)))
    }

    #[classattr]
    #[pyo3(name = "__match_args__")]
    fn match_args() -> (&'static str, &'static str, &'static str) {
        ("name", "arguments", "id")
    }

    /// Whether the call may run: it is complete and valid, and nothing in it was probably meant as its end.
    #[getter]
    fn may_run(&self, py: Python<'_>) -> bool {
        self.rejection.is_none(py) && self.held.is_none(py)
    }

    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let shown = |value: &Py<PyAny>| -> PyResult<String> {
            Ok(value.bind(py).repr()?.to_string_lossy().into_owned())
        };
        let (name, id, arguments) = (
            shown(&self.name)?,
            shown(&self.id)?,
            shown(&self.arguments)?,
        );
        let rejection = if self.rejection.is_none(py) {
            String::new()
        } else {
            format!(", rejection={}", shown(&self.rejection)?)
        };
        Ok(format!(
            "Call(name={name}, id={id}, arguments={arguments}{rejection})"
        ))
    }
}

impl Decided {
    /// Returns the decision about a call of a text without tools.
    pub(crate) fn without_tools(
        call: &ToolCall,
        decided: Result<Option<SuspectMarker>, CallError>,
    ) -> Self {
        let errors = call.diagnostics.iter().filter(|one| one.is_error());
        // Only the definition of a tool gives the line and body of an emoji call a meaning.
        let has_arguments = call.syntax == Syntax::Block && call.parse_error.is_none();
        let (rejection, held) = match decided {
            Ok(held) => (None, held),
            Err(error) => (Some(error), None),
        };
        Self {
            arguments: has_arguments.then(|| call.arguments.to_value()),
            problems: errors.cloned().collect(),
            rejection,
            held,
        }
    }

    /// Returns the decision about a call of a tool.
    pub(crate) fn with_tools(
        call: &ToolCall,
        tools: &ToolSet,
        bound: Result<Bound, CallError>,
    ) -> Self {
        let rejection = match bound {
            Ok(bound) => {
                return Self {
                    arguments: Some(bound.arguments.to_value()),
                    problems: Vec::new(),
                    rejection: None,
                    held: bound.held,
                };
            }
            Err(error) => error,
        };
        // Its arguments may be valid all the same, as those of a truncated call.
        let bound = BoundCall::new(call, tools);
        let problems = bound.diagnostics().filter(|one| one.is_error());
        Self {
            problems: problems.cloned().collect(),
            arguments: bound.arguments.ok().map(|arguments| arguments.to_value()),
            rejection: Some(rejection),
            held: None,
        }
    }
}
