//! The rules by which a text is read and written (`spec/common.md` 12).

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
    options: Options,
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

/// The options of all syntaxes, as given.
#[derive(Clone, Default)]
#[allow(clippy::struct_excessive_bools, reason = "keyword arguments of Python")]
struct Options {
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
}

impl Options {
    /// Returns the options that differ from their defaults, as keyword arguments.
    fn arguments<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let arguments = PyDict::new(py);
        let texts = [
            ("start", &self.start),
            ("end", &self.end),
            ("arg", &self.arg),
            ("key", &self.key),
        ];
        for (name, text) in texts {
            if let Some(text) = text {
                arguments.set_item(name, text)?;
            }
        }
        let flags = [
            ("markers_anywhere", self.markers_anywhere),
            ("strict", self.strict),
            ("self_closing", self.self_closing),
            ("escaped", self.escaped),
            ("in_reasoning", self.in_reasoning),
        ];
        for (name, _) in flags.into_iter().filter(|(_, is_set)| *is_set) {
            arguments.set_item(name, true)?;
        }
        let markers = [
            ("reasoning", &self.reasoning),
            ("leading_reasoning", &self.leading_reasoning),
        ];
        for (name, markers) in markers {
            if let Some((open, close)) = markers {
                arguments.set_item(name, (open, close))?;
            }
        }
        Ok(arguments)
    }
}

impl Dialect {
    /// Returns the dialect of an argument. Default: the automatic dialect.
    pub(crate) fn or_auto(dialect: Option<&Self>) -> plaincall_syntax::Dialect {
        dialect.map_or_else(plaincall_syntax::Dialect::auto, |dialect| {
            dialect.inner.clone()
        })
    }

    fn new(mut inner: plaincall_syntax::Dialect, options: Options) -> PyResult<Self> {
        if let Some(marker) = &options.start {
            inner = inner.start(marker);
        }
        if let Some(marker) = &options.end {
            inner = inner.end(marker);
        }
        if let Some(marker) = &options.arg {
            inner = inner.arg(marker);
        }
        if options.markers_anywhere {
            inner = inner.markers_anywhere();
        }
        if options.strict {
            inner = inner.strict();
        }
        if options.self_closing {
            inner = inner.self_closing();
        }
        if options.escaped {
            inner = inner.escaped();
        }
        if let Some(key) = &options.key {
            inner = inner.keyed(key);
        }
        match (&options.reasoning, &options.leading_reasoning) {
            (Some(_), Some(_)) => {
                return Err(error::dialect(
                    "use `reasoning` or `leading_reasoning`, not both",
                ));
            }
            (Some((open, close)), None) => inner = inner.reasoning(open, close),
            (None, Some((open, close))) => inner = inner.leading_reasoning(open, close),
            (None, None) => {}
        }
        if options.in_reasoning {
            inner = inner.in_reasoning();
        }
        inner.check().map_err(error::dialect)?;
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
    #[pyo3(signature = (*, start=None, end=None, arg=None, markers_anywhere=false, escaped=false, key=None, reasoning=None, leading_reasoning=None, in_reasoning=false))]
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
    ) -> PyResult<Self> {
        Self::new(
            plaincall_syntax::Dialect::block(),
            Options {
                start,
                end,
                arg,
                markers_anywhere,
                escaped,
                key,
                reasoning,
                leading_reasoning,
                in_reasoning,
                ..Options::default()
            },
        )
    }

    /// Returns a dialect of the emoji-bracket syntax (`spec/emoji.md`).
    #[staticmethod]
    #[pyo3(signature = (*, strict=false, self_closing=false, escaped=false, key=None, reasoning=None, leading_reasoning=None, in_reasoning=false))]
    fn emoji(
        strict: bool,
        self_closing: bool,
        escaped: bool,
        key: Option<String>,
        reasoning: Option<Reasoning>,
        leading_reasoning: Option<Reasoning>,
        in_reasoning: bool,
    ) -> PyResult<Self> {
        Self::new(
            plaincall_syntax::Dialect::emoji(),
            Options {
                strict,
                self_closing,
                escaped,
                key,
                reasoning,
                leading_reasoning,
                in_reasoning,
                ..Options::default()
            },
        )
    }

    /// Returns a dialect that takes the syntax of the first call.
    #[staticmethod]
    #[pyo3(signature = (*, start=None, end=None, arg=None, markers_anywhere=false, strict=false, self_closing=false, escaped=false, key=None, reasoning=None, leading_reasoning=None, in_reasoning=false))]
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
    ) -> PyResult<Self> {
        Self::new(
            plaincall_syntax::Dialect::auto(),
            Options {
                start,
                end,
                arg,
                markers_anywhere,
                strict,
                self_closing,
                escaped,
                key,
                reasoning,
                leading_reasoning,
                in_reasoning,
            },
        )
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
        let arguments = self.options.arguments(py)?;
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
        Ok((restore, (self.function(), self.options.arguments(py)?)))
    }
}
