//! The rules by which a text is read and written (`spec/common.md` 12).

use std::hash::{Hash, Hasher};
use std::sync::OnceLock;

use plaincall_names::{DialectOptions, SyntaxOption, Unclosed};
use plaincall_reply::ReplyCheck;
use plaincall_reply::document::DocumentReader;
use plaincall_syntax::{ByteParser, DialectError, Syntax};
use plaincall_tool::{Limits, NoTools};
use pyo3::exceptions::PyTypeError;
use pyo3::prelude::*;
use pyo3::types::PyDict;

use crate::error;
use crate::input::argument;

/// A function and its arguments, which create an object again.
type Reduced<'py> = (Bound<'py, PyAny>, (&'static str, Bound<'py, PyDict>));

/// The rules by which a text is read and written: the syntax, its markers and options.
///
/// Create one with `Dialect.block()`, `Dialect.emoji()` or `Dialect.auto()` (the syntax of the first call). Dialects are
/// immutable and can be shared, hashed and pickled. The first use of one compiles it, so create it once.
///
/// `escaped` enables escapes: a backslash before the last character of a marker makes it content. `key` is part of every
/// marker. `reasoning` has the markers around reasoning, in which calls are ignored; those of `leading_reasoning` count at the
/// beginning of a text only. `in_reasoning` begins inside reasoning. Tools and tables read `leading_reasoning=Dialect.THINK`
/// unless other markers are set; `no_reasoning` switches it off. `start`, `end` and `arg` replace the markers
/// `!!!GADGET_START:`, `!!!GADGET_END` and `!!!ARG:` of the block syntax. `markers_anywhere` recognizes block markers anywhere in
/// a call. `strict` accepts only the canonical form of the emoji marker, and `self_closing` accepts ` /]` as the end of an emoji
/// call without a body.
///
/// Raises `DialectError` for options that cannot be used together.
#[pyclass(frozen, eq, hash, module = "plaincall")]
#[derive(Clone)]
pub(crate) struct Dialect {
    pub(crate) inner: plaincall_syntax::Dialect,
    options: DialectOptions,
    /// For cloning: compiled when it is first used.
    parser: OnceLock<ByteParser>,
    reader: OnceLock<DocumentReader<NoTools>>,
}

impl PartialEq for Dialect {
    fn eq(&self, other: &Self) -> bool {
        self.inner == other.inner
    }
}

impl Hash for Dialect {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.inner.hash(state);
    }
}

/// The automatic dialect, which is the default.
static AUTO: OnceLock<Dialect> = OnceLock::new();

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
    pub(crate) fn or_auto(dialect: Option<&Self>) -> &Self {
        dialect.unwrap_or_else(|| {
            let auto = || Self::of(plaincall_syntax::Dialect::auto(), DialectOptions::default());
            AUTO.get_or_init(auto)
        })
    }

    fn of(inner: plaincall_syntax::Dialect, options: DialectOptions) -> Self {
        let (parser, reader) = (OnceLock::new(), OnceLock::new());
        Self {
            inner,
            options,
            parser,
            reader,
        }
    }

    /// Returns a parser of one text.
    pub(crate) fn parser(&self) -> PyResult<ByteParser> {
        compiled(&self.parser, || ByteParser::new(&self.inner)).cloned()
    }

    /// Returns a reader of texts, for cloning.
    pub(crate) fn reader(&self) -> PyResult<&DocumentReader<NoTools>> {
        compiled(&self.reader, || {
            let check = ReplyCheck::new(&self.inner, Unclosed::Reject)?;
            DocumentReader::new(&self.inner, NoTools, check, Limits::for_reading())
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
        Self::of(inner, options)
    }

    fn new(syntax: SyntaxOption, given: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        let mut options = DialectOptions::default();
        options.syntax = syntax;
        for (name, value) in given.into_iter().flatten() {
            set(&mut options, &name.extract::<String>()?, &value)?;
        }
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
        Ok(Self::of(inner, options))
    }

    /// Returns the name of the function that creates it.
    fn function(&self) -> &'static str {
        self.inner.syntax().map_or("auto", Syntax::name)
    }
}

/// Sets an option by its name.
fn set(options: &mut DialectOptions, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
    let is_emoji = options.syntax == SyntaxOption::Emoji;
    let is_block = options.syntax == SyntaxOption::Block;
    let text = || argument(name, "a str", value);
    let flag = || argument(name, "True or False", value);
    let markers = || {
        argument(
            name,
            "a tuple of two str: the open and the close marker",
            value,
        )
    };
    match name {
        "start" if !is_emoji => options.start = text()?,
        "end" if !is_emoji => options.end = text()?,
        "arg" if !is_emoji => options.arg = text()?,
        "markers_anywhere" if !is_emoji => options.markers_anywhere = flag()?,
        "strict" if !is_block => options.strict = flag()?,
        "self_closing" if !is_block => options.self_closing = flag()?,
        "escaped" => options.escaped = flag()?,
        "key" => options.key = text()?,
        "reasoning" => options.reasoning = markers()?,
        "leading_reasoning" => options.leading_reasoning = markers()?,
        "in_reasoning" => options.in_reasoning = flag()?,
        "no_reasoning" => options.no_reasoning = flag()?,
        _ => {
            let message =
                format!("unknown option `{name}` of this dialect; `help(Dialect)` lists them");
            return Err(PyTypeError::new_err(message));
        }
    }
    Ok(())
}

/// Returns what a cell has. If it is empty, it is created; two threads may do so.
fn compiled<T>(
    cell: &OnceLock<T>,
    create: impl FnOnce() -> Result<T, DialectError>,
) -> PyResult<&T> {
    if let Some(compiled) = cell.get() {
        return Ok(compiled);
    }
    let created = create().map_err(error::dialect)?;
    Ok(cell.get_or_init(|| created))
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
impl Dialect {
    /// The most common markers around reasoning.
    #[classattr]
    const THINK: (&'static str, &'static str) = (
        plaincall_syntax::Dialect::THINK[0],
        plaincall_syntax::Dialect::THINK[1],
    );

    /// Returns a dialect of the block syntax (`spec/block.md`).
    #[staticmethod]
    #[pyo3(signature = (**options), text_signature = "(*, start=None, end=None, arg=None, markers_anywhere=False, escaped=False, key=None, reasoning=None, leading_reasoning=None, in_reasoning=False, no_reasoning=False)")]
    fn block(options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(SyntaxOption::Block, options)
    }

    /// Returns a dialect of the emoji-bracket syntax (`spec/emoji.md`).
    #[staticmethod]
    #[pyo3(signature = (**options), text_signature = "(*, strict=False, self_closing=False, escaped=False, key=None, reasoning=None, leading_reasoning=None, in_reasoning=False, no_reasoning=False)")]
    fn emoji(options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(SyntaxOption::Emoji, options)
    }

    /// Returns a dialect that takes the syntax of the first call.
    #[staticmethod]
    #[pyo3(signature = (**options), text_signature = "(*, start=None, end=None, arg=None, markers_anywhere=False, strict=False, self_closing=False, escaped=False, key=None, reasoning=None, leading_reasoning=None, in_reasoning=False, no_reasoning=False)")]
    fn auto(options: Option<&Bound<'_, PyDict>>) -> PyResult<Self> {
        Self::new(SyntaxOption::Auto, options)
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

    /// It cannot change.
    fn __copy__(this: Bound<'_, Self>) -> Bound<'_, Self> {
        this
    }

    fn __deepcopy__<'py>(this: Bound<'py, Self>, _memo: &Bound<'py, PyAny>) -> Bound<'py, Self> {
        this
    }

    /// What pickles contain, also the key.
    fn __reduce__<'py>(&self, py: Python<'py>) -> PyResult<Reduced<'py>> {
        let restore = py
            .import("plaincall._plaincall")?
            .getattr("unpickled_dialect")?;
        Ok((restore, (self.function(), arguments(&self.options, py)?)))
    }
}
