//! A complete call as a Python object.

use std::sync::Arc;

use plaincall_plan::PlannedCall;
use plaincall_reply::{DecidedCall, ReadCall, ReplyCheck};
use plaincall_tool::ToolSet;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use serde_json::Value;

use crate::events::{diagnostics, optional, string, strings, word};
use crate::json;

/// A function and its arguments, which create an object again.
type Reduced<'py> = (Bound<'py, PyAny>, (Bound<'py, PyDict>,));

/// A call, with the decision of whether it may run.
///
/// An invalid call is data: it has `problems` and a `rejection`, and nothing is raised.
#[pyclass(frozen, module = "plaincall")]
pub(crate) struct Call {
    /// The index in order of appearance, from 0.
    #[pyo3(get)]
    index: usize,
    /// The name of the tool, as written.
    #[pyo3(get)]
    name: Py<PyAny>,
    /// The id, written or assigned.
    #[pyo3(get)]
    id: Py<PyAny>,
    /// Whether the id was assigned, not written.
    #[pyo3(get)]
    is_id_automatic: bool,
    /// The ids of the calls that it depends on.
    #[pyo3(get)]
    dependencies: Py<PyAny>,
    /// The arguments that were validated. Python gets copies.
    arguments: Option<Value>,
    /// The errors: of the text, and with tools those of the definition.
    #[pyo3(get)]
    problems: Py<PyTuple>,
    /// Why the call must not run, as a sentence for the model; `None` if it may run.
    #[pyo3(get)]
    rejection: Py<PyAny>,
    /// Text in a value that was probably meant to end the call earlier. Run such a call only if a person approves it.
    #[pyo3(get)]
    held: Py<PyAny>,
    /// All diagnostics of the text of the call, also warnings.
    #[pyo3(get)]
    diagnostics: Py<PyTuple>,
    /// `"block"` or `"emoji"`.
    #[pyo3(get)]
    syntax: Py<PyAny>,
    /// How it ended: `"explicit"`, `"next_call"` or `"end_of_stream"`.
    #[pyo3(get)]
    termination: Py<PyAny>,
    /// The text after the name in the header of an emoji call; `None` in the block syntax.
    #[pyo3(get)]
    raw_args: Py<PyAny>,
    /// The body of an emoji call; `None` in the block syntax.
    #[pyo3(get)]
    body: Py<PyAny>,
    /// The start, in bytes of the text.
    #[pyo3(get)]
    start: usize,
    /// The end, in bytes of the text.
    #[pyo3(get)]
    end: usize,
    /// The exact text, with markers; `None` if a value was over the limit and not kept.
    #[pyo3(get)]
    source: Py<PyAny>,
    /// The text before it that looks like the beginning of a call, as JSON: with other tools, `execute` reads it. Otherwise `None`.
    #[pyo3(get)]
    before: Py<PyAny>,
    /// The tools that have read it; after a pickle none.
    tools: Option<Arc<ToolSet>>,
}

impl Call {
    /// Converts a call, which these tools have read.
    pub(crate) fn new(
        py: Python<'_>,
        read: &DecidedCall,
        tools: Option<Arc<ToolSet>>,
    ) -> PyResult<Self> {
        let call = &read.call;
        let rejection = read.rejection().map(ToString::to_string);
        let held = read.held().map(ToString::to_string);
        Ok(Self {
            index: call.index,
            name: string(py, &call.name),
            id: string(py, &call.id),
            is_id_automatic: call.is_id_automatic,
            dependencies: strings(py, call.dependencies.iter().map(String::as_str))?,
            arguments: read.value(),
            problems: diagnostics(py, read.errors())?,
            rejection: optional(py, rejection.as_deref()),
            held: optional(py, held.as_deref()),
            diagnostics: diagnostics(py, &call.diagnostics)?,
            syntax: word(py, call.syntax.name()),
            termination: word(py, call.termination.name()),
            raw_args: optional(py, call.raw_args.as_deref()),
            body: optional(py, call.body()),
            start: call.span.start,
            end: call.span.end,
            source: optional(py, call.source()),
            before: optional(py, read.before().as_deref()),
            tools,
        })
    }

    /// Returns the call for the plan of a reply with these tools. A call that other tools have read, or none, is validated by
    /// `check`. Nothing that Python has put into the call is an error.
    pub(crate) fn planned(
        &self,
        py: Python<'_>,
        tools: &Arc<ToolSet>,
        check: &mut ReplyCheck,
    ) -> PyResult<PlannedCall> {
        let mut call = PlannedCall::new(self.id.extract::<String>(py)?);
        call.dependencies = self.dependencies.extract(py)?;
        call.rejection = self.rejection.extract(py)?;
        call.held = self.held.extract(py)?;
        let is_own = self
            .tools
            .as_ref()
            .is_some_and(|own| Arc::ptr_eq(own, tools));
        if !is_own {
            let [syntax, termination]: [String; 2] =
                [self.syntax.extract(py)?, self.termination.extract(py)?];
            let name: String = self.name.extract(py)?;
            let before: Option<String> = self.before.extract(py)?;
            let arguments = self.arguments.as_ref().and_then(Value::as_object);
            let before = before.as_deref();
            let read = ReadCall::named(&name, arguments, &syntax, &termination, before);
            let mismatch = check.mismatch(tools, &read);
            call.rejection = call.rejection.or(mismatch);
        }
        Ok(call)
    }
}

/// Defines what pickles contain: these attributes and the arguments, which are all.
macro_rules! pickled {
    ($($name:ident)*) => {
        const PICKLED: &[&str] = &[$(stringify!($name),)* ARGUMENTS];

        /// Creates the call that a pickle describes by its attributes.
        #[pyfunction]
        pub(crate) fn unpickled_call(attributes: &Bound<'_, PyAny>) -> PyResult<Call> {
            let arguments = attributes.get_item(ARGUMENTS)?;
            Ok(Call {
                $($name: attributes.get_item(stringify!($name))?.extract()?,)*
                arguments: json::of_python(ARGUMENTS, &arguments)?.map(Value::Object),
                tools: None,
            })
        }
    };
}

const ARGUMENTS: &str = "arguments";

pickled! {
    index name id is_id_automatic dependencies problems rejection held diagnostics syntax termination raw_args body start
    end source before
}

/// Returns all attributes.
fn attributes<'py>(call: &Bound<'py, Call>) -> PyResult<Bound<'py, PyDict>> {
    let attributes = PyDict::new(call.py());
    for name in PICKLED {
        attributes.set_item(name, call.getattr(*name)?)?;
    }
    Ok(attributes)
}

#[pymethods]
impl Call {
    /// What pickles contain.
    fn __reduce__<'py>(this: &Bound<'py, Self>) -> PyResult<Reduced<'py>> {
        let module = this.py().import("plaincall._plaincall")?;
        Ok((module.getattr("unpickled_call")?, (attributes(this)?,)))
    }

    #[classattr]
    #[pyo3(name = "__match_args__")]
    fn match_args() -> (&'static str, &'static str, &'static str) {
        ("name", "arguments", "id")
    }

    /// The arguments as a new `dict`, or `None` if they are invalid, or those of an emoji call without tools.
    #[getter]
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        match &self.arguments {
            Some(arguments) => json::to_python(py, arguments),
            None => Ok(py.None().into_bound(py)),
        }
    }

    /// It cannot change.
    fn __copy__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    /// Calls are equal if all attributes are.
    fn __richcmp__<'py>(
        this: &Bound<'py, Self>,
        other: &Bound<'py, PyAny>,
        operation: CompareOp,
    ) -> PyResult<Bound<'py, PyAny>> {
        match (other.cast::<Self>(), operation) {
            (Ok(other), CompareOp::Eq | CompareOp::Ne) => {
                attributes(this)?.rich_compare(attributes(other)?, operation)
            }
            _ => Ok(this.py().NotImplemented().into_bound(this.py())),
        }
    }

    fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
        (&self.name, &self.id, &self.source, self.start)
            .into_pyobject(py)?
            .hash()
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
            self.arguments(py)?.repr()?.to_string_lossy().into_owned(),
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
