//! The rules by which a text is read and written (`spec/common.md` 12).

use plaincall_names::{DialectOptions, SyntaxOption};
use plaincall_syntax::Syntax;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;

/// The markers around reasoning: `(open, close)`.
type Reasoning = (String, String);

/// A function and its arguments, which create an object again.
type Reduced<'py> = (Bound<'py, PyAny>, (&'static str, Bound<'py, PyDict>));

/// The rules by which a text is read and written: the syntax, its markers and options.
///
/// Create one with `Dialect.block()`, `Dialect.emoji()` or `Dialect.auto()` (the syntax of the first call). Dialects are
/// immutable and can be shared and pickled.
#[pyclass(frozen, eq, module = "plaincall")]
#[derive(Clone)]
pub(crate) struct Dialect {
    pub(crate) inner: plaincall_syntax::Dialect,
    options: DialectOptions,
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

/// Returns the options that differ from their defaults, as keyword arguments.
fn arguments<'py>(options: &DialectOptions, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
    let arguments = PyDict::new(py);
    let texts = [
        ("start", &options.start),
        ("end", &options.end),
        ("arg", &options.arg),
        ("key", &options.key),
    ];
    for (name, text) in texts {
        if let Some(text) = text {
            arguments.set_item(name, text)?;
        }
    }
    let flags = [
        ("markers_anywhere", options.markers_anywhere),
        ("strict", options.strict),
        ("self_closing", options.self_closing),
        ("escaped", options.escaped),
        ("in_reasoning", options.in_reasoning),
        ("no_reasoning", options.no_reasoning),
    ];
    for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
        arguments.set_item(name, true)?;
    }
    let markers = [
        ("reasoning", &options.reasoning),
        ("leading_reasoning", &options.leading_reasoning),
    ];
    for (name, markers) in markers {
        if let Some((open, close)) = markers {
            arguments.set_item(name, (open, close))?;
        }
    }
    Ok(arguments)
}

impl Dialect {
    /// Returns the dialect of an argument. Default: the automatic dialect.
    pub(crate) fn or_auto(dialect: Option<&Self>) -> plaincall_syntax::Dialect {
        dialect.map_or_else(plaincall_syntax::Dialect::auto, |dialect| {
            dialect.inner.clone()
        })
    }

    /// Returns the dialect for replies (`spec/common.md` 5).
    pub(crate) fn for_reply(&self) -> Self {
        let inner = self.inner.clone().for_reply();
        let mut options = self.options.clone();
        if options.reasoning.is_none() {
            let markers = inner.reasoning_markers();
            options.leading_reasoning = markers.map(|markers| markers.map(str::to_owned).into());
        }
        Self { inner, options }
    }

    fn new(options: DialectOptions) -> PyResult<Self> {
        let has_markers = options.reasoning.is_some() || options.leading_reasoning.is_some();
        if options.reasoning.is_some() && options.leading_reasoning.is_some() {
            let message = "use `reasoning` or `leading_reasoning`, not both";
            return Err(error::dialect(message));
        }
        if options.no_reasoning && has_markers {
            let message = "use `no_reasoning` or reasoning markers, not both";
            return Err(error::dialect(message));
        }
        let inner = options.dialect().map_err(error::dialect)?;
        Ok(Self { inner, options })
    }

    /// Returns the name of the function that creates it.
    fn function(&self) -> &'static str {
        self.inner.syntax().map_or("auto", Syntax::name)
    }
}

/// Creates the dialect that a pickle describes.
#[pyfunction]
pub(crate) fn unpickled_dialect<'py>(
    function: &str,
    arguments: &Bound<'py, PyDict>,
) -> PyResult<Bound<'py, PyAny>> {
    let dialect = arguments.py().get_type::<Dialect>();
    dialect.call_method(function, (), Some(arguments))
}

#[pymethods]
#[allow(
    clippy::too_many_arguments,
    clippy::fn_params_excessive_bools,
    reason = "keyword arguments of Python"
)]
impl Dialect {
    /// The most common markers around reasoning.
    #[classattr]
    const THINK: (&'static str, &'static str) = (
        plaincall_syntax::Dialect::THINK[0],
        plaincall_syntax::Dialect::THINK[1],
    );

    /// Returns a dialect of the block syntax (`spec/block.md`).
    #[staticmethod]
    #[pyo3(signature = (*, start=None, end=None, arg=None, markers_anywhere=false, escaped=false, key=None, reasoning=None, leading_reasoning=None, in_reasoning=false, no_reasoning=false))]
    fn block(
        start: Option<String>,
        end: Option<String>,
        arg: Option<String>,
        markers_anywhere: bool,
        escaped: bool,
        key: Option<String>,
        reasoning: Option<Reasoning>,
        leading_reasoning: Option<Reasoning>,
        in_reasoning: bool,
        no_reasoning: bool,
    ) -> PyResult<Self> {
        let mut options = DialectOptions::default();
        options.syntax = SyntaxOption::Block;
        options.start = start;
        options.end = end;
        options.arg = arg;
        options.markers_anywhere = markers_anywhere;
        options.escaped = escaped;
        options.key = key;
        options.reasoning = reasoning;
        options.leading_reasoning = leading_reasoning;
        options.in_reasoning = in_reasoning;
        options.no_reasoning = no_reasoning;
        Self::new(options)
    }

    /// Returns a dialect of the emoji-bracket syntax (`spec/emoji.md`).
    #[staticmethod]
    #[pyo3(signature = (*, strict=false, self_closing=false, escaped=false, key=None, reasoning=None, leading_reasoning=None, in_reasoning=false, no_reasoning=false))]
    fn emoji(
        strict: bool,
        self_closing: bool,
        escaped: bool,
        key: Option<String>,
        reasoning: Option<Reasoning>,
        leading_reasoning: Option<Reasoning>,
        in_reasoning: bool,
        no_reasoning: bool,
    ) -> PyResult<Self> {
        let mut options = DialectOptions::default();
        options.syntax = SyntaxOption::Emoji;
        options.strict = strict;
        options.self_closing = self_closing;
        options.escaped = escaped;
        options.key = key;
        options.reasoning = reasoning;
        options.leading_reasoning = leading_reasoning;
        options.in_reasoning = in_reasoning;
        options.no_reasoning = no_reasoning;
        Self::new(options)
    }

    /// Returns a dialect that takes the syntax of the first call.
    #[staticmethod]
    #[pyo3(signature = (*, start=None, end=None, arg=None, markers_anywhere=false, strict=false, self_closing=false, escaped=false, key=None, reasoning=None, leading_reasoning=None, in_reasoning=false, no_reasoning=false))]
    fn auto(
        start: Option<String>,
        end: Option<String>,
        arg: Option<String>,
        markers_anywhere: bool,
        strict: bool,
        self_closing: bool,
        escaped: bool,
        key: Option<String>,
        reasoning: Option<Reasoning>,
        leading_reasoning: Option<Reasoning>,
        in_reasoning: bool,
        no_reasoning: bool,
    ) -> PyResult<Self> {
        let mut options = DialectOptions::default();
        options.syntax = SyntaxOption::Auto;
        options.start = start;
        options.end = end;
        options.arg = arg;
        options.markers_anywhere = markers_anywhere;
        options.strict = strict;
        options.self_closing = self_closing;
        options.escaped = escaped;
        options.key = key;
        options.reasoning = reasoning;
        options.leading_reasoning = leading_reasoning;
        options.in_reasoning = in_reasoning;
        options.no_reasoning = no_reasoning;
        Self::new(options)
    }

    /// The syntax, or `None` in the automatic dialect.
    #[getter]
    fn syntax(&self) -> Option<&'static str> {
        self.inner.syntax().map(Syntax::name)
    }

    /// Whether a backslash makes a marker content.
    #[getter]
    fn escaped(&self) -> bool {
        self.inner.is_escaped()
    }

    /// The key is not shown.
    fn __repr__(&self, py: Python<'_>) -> PyResult<String> {
        let arguments = arguments(&self.options, py)?;
        let shown = arguments.iter().map(|(name, value)| {
            let name = name.to_string();
            let value = match &*name {
                "key" => "...".to_owned(),
                _ => value.repr()?.to_string(),
            };
            Ok(format!("{name}={value}"))
        });
        let shown: PyResult<Vec<String>> = shown.collect();
        Ok(format!(
            "Dialect.{}({})",
            self.function(),
            shown?.join(", ")
        ))
    }

    /// What pickles contain, also the key.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let restore = py
            .import("plaincall._plaincall")?
            .getattr("unpickled_dialect")?;
        Ok((restore, (self.function(), arguments(&self.options, py)?)))
    }
}
