//! The rules by which a text is read and written (`spec/common.md` 12).

use plaincall_syntax::Syntax;
use pyo3::prelude::*;

use crate::error;

/// The markers around reasoning: `(open, close)`.
type Reasoning = (String, String);

/// The rules by which a text is read and written: the syntax, its markers and options.
///
/// Create one with `Dialect.block()`, `Dialect.emoji()` or `Dialect.auto()` (the syntax of the first call). Dialects are
/// immutable and can be shared.
#[pyclass(frozen, eq, module = "plaincall")]
#[derive(Clone, PartialEq)]
pub(crate) struct Dialect {
    pub(crate) inner: plaincall_syntax::Dialect,
}

/// The options that all syntaxes have.
#[derive(Default)]
struct Options {
    escaped: bool,
    key: Option<String>,
    reasoning: Option<Reasoning>,
    leading_reasoning: Option<Reasoning>,
    in_reasoning: bool,
}

impl Dialect {
    /// Returns the dialect of an argument. Default: the automatic dialect.
    pub(crate) fn or_auto(dialect: Option<&Self>) -> plaincall_syntax::Dialect {
        dialect.map_or_else(plaincall_syntax::Dialect::auto, |dialect| {
            dialect.inner.clone()
        })
    }

    fn new(mut inner: plaincall_syntax::Dialect, options: Options) -> PyResult<Self> {
        if options.escaped {
            inner = inner.escaped();
        }
        if let Some(key) = options.key {
            inner = inner.keyed(key);
        }
        match (options.reasoning, options.leading_reasoning) {
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
        Ok(Self { inner })
    }
}

fn with_markers(
    mut dialect: plaincall_syntax::Dialect,
    markers: [Option<String>; 3],
    anywhere: bool,
) -> plaincall_syntax::Dialect {
    let [start, end, arg] = markers;
    if let Some(marker) = start {
        dialect = dialect.start(marker);
    }
    if let Some(marker) = end {
        dialect = dialect.end(marker);
    }
    if let Some(marker) = arg {
        dialect = dialect.arg(marker);
    }
    if anywhere {
        dialect = dialect.markers_anywhere();
    }
    dialect
}

fn with_emoji(
    mut dialect: plaincall_syntax::Dialect,
    strict: bool,
    self_closing: bool,
) -> plaincall_syntax::Dialect {
    if strict {
        dialect = dialect.strict();
    }
    if self_closing {
        dialect = dialect.self_closing();
    }
    dialect
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
        let block = plaincall_syntax::Dialect::block();
        let dialect = with_markers(block, [start, end, arg], markers_anywhere);
        Self::new(
            dialect,
            Options {
                escaped,
                key,
                reasoning,
                leading_reasoning,
                in_reasoning,
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
        let dialect = with_emoji(plaincall_syntax::Dialect::emoji(), strict, self_closing);
        Self::new(
            dialect,
            Options {
                escaped,
                key,
                reasoning,
                leading_reasoning,
                in_reasoning,
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
        let auto = plaincall_syntax::Dialect::auto();
        let dialect = with_markers(auto, [start, end, arg], markers_anywhere);
        let dialect = with_emoji(dialect, strict, self_closing);
        Self::new(
            dialect,
            Options {
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

    fn __repr__(&self) -> String {
        let syntax = self.syntax().unwrap_or("auto");
        let options = if self.inner.is_escaped() {
            "escaped=True"
        } else {
            ""
        };
        format!("Dialect.{syntax}({options})")
    }
}
