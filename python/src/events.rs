//! The events of the parser as Python objects (`spec/common.md`, "Events").

use plaincall_syntax::{Event, EventKind, Slot, Span};
use plaincall_tool::ReplyDiagnostic;
use pyo3::basic::CompareOp;
use pyo3::prelude::*;
use pyo3::types::{PyString, PyTuple, PyType};

/// Defines an immutable class. The named attributes come first, and are its positional patterns and arguments; each class also has
/// the span and the source text.
macro_rules! event {
    ($(#[$doc:meta])* $name:ident($($field:ident),*)) => {
        $(#[$doc])*
        #[pyclass(frozen, get_all, module = "plaincall")]
        #[allow(clippy::struct_field_names, reason = "`Text.text` is the text")]
        pub(crate) struct $name {
            $(pub(crate) $field: Py<PyAny>,)*
            pub(crate) start: usize,
            pub(crate) end: usize,
            pub(crate) source: Py<PyAny>,
        }

        impl $name {
            fn attributes<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyTuple>> {
                let span = [self.start, self.end].map(|at| at.into_pyobject(py));
                let [start, end] = span;
                let attributes = [
                    $(self.$field.bind(py).clone(),)*
                    start?.into_any(),
                    end?.into_any(),
                    self.source.bind(py).clone(),
                ];
                PyTuple::new(py, attributes)
            }
        }

        #[pymethods]
        impl $name {
            #[new]
            #[allow(clippy::too_many_arguments, reason = "one for each attribute")]
            fn new(
                $($field: Py<PyAny>,)*
                start: usize,
                end: usize,
                source: Py<PyAny>,
            ) -> Self {
                Self { $($field,)* start, end, source }
            }

            /// What pickles contain.
            fn __reduce__<'py>(
                &self,
                py: Python<'py>,
            ) -> PyResult<(Bound<'py, PyType>, Bound<'py, PyTuple>)> {
                Ok((py.get_type::<Self>(), self.attributes(py)?))
            }

            #[classattr]
            #[pyo3(name = "__match_args__")]
            fn match_args(py: Python<'_>) -> PyResult<Bound<'_, PyTuple>> {
                PyTuple::new(py, [$(stringify!($field),)* "start", "end", "source"])
            }

            fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
                let names = [$(stringify!($field),)* "start", "end", "source"];
                let attributes = self.attributes(py)?;
                let shown = names.iter().zip(attributes.iter()).map(|(name, value)| {
                    Ok(format!("{name}={}", value.repr()?.to_string_lossy()))
                });
                let shown: PyResult<Vec<String>> = shown.collect();
                Ok(format!("{}({})", stringify!($name), shown?.join(", ")))
            }

            fn __richcmp__<'py>(
                &self,
                other: &Bound<'py, PyAny>,
                operation: CompareOp,
            ) -> PyResult<Bound<'py, PyAny>> {
                let py = other.py();
                match (other.cast::<Self>(), operation) {
                    (Ok(other), CompareOp::Eq | CompareOp::Ne) => {
                        let other = other.get().attributes(py)?;
                        self.attributes(py)?.rich_compare(other, operation)
                    }
                    _ => Ok(py.NotImplemented().into_bound(py)),
                }
            }

            fn __hash__(&self, py: Python<'_>) -> PyResult<isize> {
                self.attributes(py)?.hash()
            }
        }
    };
}

event! {
    /// Text outside calls. In a document, adjacent text is one object.
    Text(text)
}
event! {
    /// Text between reasoning markers.
    Reasoning(text)
}
event! {
    /// The start of a call: its start marker and header.
    CallStart(name, id, dependencies, syntax, raw_args)
}
event! {
    /// The start of a value: the argument `pointer`, or the body of an emoji call (`None`).
    ValueStart(pointer)
}
event! {
    /// A piece of a value, as written.
    ValueDelta(text)
}
event! {
    /// The end of a value. Its source is the line end that belongs to the syntax, or empty.
    ValueEnd()
}
event! {
    /// The end of a call. Its source is the end marker, or empty.
    CallEnd(termination)
}
event! {
    /// Bytes that are not text, reasoning, a marker or a value.
    Ignored(text)
}
event! {
    /// A problem in the text, or of a call. It covers no input, so its source is empty.
    Diagnostic(code, severity, message, pointer)
}

/// Returns a text as a Python string.
pub(crate) fn string(py: Python<'_>, text: &str) -> Py<PyAny> {
    PyString::new(py, text).into_any().unbind()
}

/// Returns a word of a fixed set as a Python string.
pub(crate) fn word(py: Python<'_>, word: &str) -> Py<PyAny> {
    PyString::intern(py, word).into_any().unbind()
}

/// Returns a text as a Python string, or `None`.
pub(crate) fn optional(py: Python<'_>, text: Option<&str>) -> Py<PyAny> {
    text.map_or_else(|| py.None(), |text| string(py, text))
}

/// Returns the texts as a tuple.
pub(crate) fn strings<'t>(
    py: Python<'_>,
    texts: impl IntoIterator<Item = &'t str>,
) -> PyResult<Py<PyAny>> {
    let texts: Vec<&str> = texts.into_iter().collect();
    Ok(PyTuple::new(py, texts)?.into_any().unbind())
}

/// Converts an event.
pub(crate) fn to_python(py: Python<'_>, event: &Event<'_>) -> PyResult<Py<PyAny>> {
    let Span { start, end, .. } = event.span;
    /// An event whose text is its source.
    macro_rules! of_text {
        ($class:ident, $text:expr) => {{
            let text = string(py, $text);
            let source = text.clone_ref(py);
            Py::new(
                py,
                $class {
                    text,
                    start,
                    end,
                    source,
                },
            )?
            .into_any()
        }};
    }
    let source = || string(py, event.source());
    Ok(match &event.kind {
        EventKind::Text(text) => of_text!(Text, text),
        EventKind::Reasoning(text) => of_text!(Reasoning, text),
        EventKind::ValueDelta(text) => of_text!(ValueDelta, text),
        EventKind::CallStart(header) => {
            let start = CallStart {
                name: string(py, header.name()),
                id: optional(py, header.id()),
                dependencies: strings(py, header.dependencies())?,
                syntax: word(py, header.syntax().name()),
                raw_args: optional(py, header.raw_args()),
                start,
                end,
                source: source(),
            };
            Py::new(py, start)?.into_any()
        }
        EventKind::ValueStart(slot) => {
            let pointer = match slot {
                Slot::Argument(pointer) => Some(pointer.as_str()),
                Slot::Body => None,
            };
            let (pointer, source) = (optional(py, pointer), source());
            let value = ValueStart {
                pointer,
                start,
                end,
                source,
            };
            Py::new(py, value)?.into_any()
        }
        EventKind::ValueEnd => {
            let source = source();
            Py::new(py, ValueEnd { start, end, source })?.into_any()
        }
        EventKind::CallEnd(ending) => {
            let termination = word(py, ending.termination().name());
            let source = source();
            Py::new(
                py,
                CallEnd {
                    termination,
                    start,
                    end,
                    source,
                },
            )?
            .into_any()
        }
        EventKind::Diagnostic(found) => diagnostic(py, &found.into())?.into_any(),
        // Kinds that this version does not know are bytes without a meaning.
        _ => of_text!(Ignored, event.source()),
    })
}

/// Converts a diagnostic of a text or a call.
pub(crate) fn diagnostic(py: Python<'_>, found: &ReplyDiagnostic) -> PyResult<Py<Diagnostic>> {
    let pointer = Some(found.pointer.as_str()).filter(|pointer| !pointer.is_empty());
    let diagnostic = Diagnostic {
        code: word(py, found.code),
        severity: word(py, found.severity.name()),
        message: string(py, &found.message),
        pointer: optional(py, pointer),
        start: found.span.start,
        end: found.span.end,
        source: word(py, ""),
    };
    Py::new(py, diagnostic)
}

/// Converts diagnostics to a tuple.
pub(crate) fn diagnostics<'d>(
    py: Python<'_>,
    found: impl IntoIterator<Item = &'d ReplyDiagnostic>,
) -> PyResult<Py<PyTuple>> {
    let all: PyResult<Vec<Py<Diagnostic>>> =
        found.into_iter().map(|one| diagnostic(py, one)).collect();
    Ok(PyTuple::new(py, all?)?.unbind())
}
