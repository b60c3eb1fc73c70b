"""Calls of many texts as a table, in any library that uses Arrow: pyarrow, Polars, DuckDB, pandas, datasets, Spark.

`table` adds the calls of a column of text. `render_many` is the inverse, and `error_rates` counts. Each takes an object that
implements the Arrow PyCapsule interface, and `table` and `render_many` return one.
"""

from __future__ import annotations

import importlib
import inspect
import sys
from collections.abc import Iterable, Iterator
from typing import Any, TypedDict

from plaincall._plaincall import Dialect, Table, ToolSet
from plaincall._plaincall import error_rates as _error_rates
from plaincall._plaincall import extract_table as _extract_table
from plaincall._plaincall import render_table as _render_table
from plaincall.tools import Stop, Toolbox

_CALL = (
    "index bigint, name string, id string, dependencies array<string>, arguments string, syntax string, "
    "termination string, may_run boolean, error string, codes array<string>, start bigint, `end` bigint"
)
SPARK_STRUCT = f"content string, calls array<struct<{_CALL.replace(' ', ':').replace(',:', ', ')}>>, error string"
"""The columns that `map_in_arrow` adds, and the fields of `extract_array`, as a schema of Spark."""

_ROWS = 1000
"""The rows that are read at a time from a library without the Arrow PyCapsule interface."""


class ErrorRates(TypedDict):
    """Counts of rows and calls."""

    rows: int
    failed_rows: int
    """Rows without a result: the column `error` has the reason."""
    calls: int
    may_run: int
    """Calls that may run."""
    codes: dict[str, int]
    """The calls that have a diagnostic with this code."""


def table(
    data: Any,
    column: str = "text",
    *,
    tools: Toolbox | None = None,
    dialect: Dialect | None = None,
    stop: Stop | None = None,
    tool_calls: bool = False,
) -> Table:
    """Finds the calls in the texts of a column, and returns the table with the columns `content`, `calls` and `error`.

    `content` is the text outside calls and reasoning. `calls` is a list of structs: `index`, `name`, `id`, `dependencies`,
    `arguments` (the text of a JSON object, or null if they are invalid), `syntax`, `termination`, `may_run`, `error` (why it may
    not run), `codes` (of its diagnostics), `start` and `end` (in bytes of the text). `error` is null, or why a row has no
    result: its text is null, or the result has more than 1 GiB. With `tool_calls`, the column `tool_calls` has the calls that
    may run in the format of the OpenAI API. The other columns stay as they are. Columns with these names are replaced. Types of Polars
    that Arrow does not have, such as `Int128`, become text.

    `data` is a table of any library that uses Arrow: an object that implements the Arrow PyCapsule interface, or a `Dataset` of
    Hugging Face. So is the result, which is made while it is read, in batches of at most 8,192 rows: `pyarrow.table(result)`,
    `polars.DataFrame(result)`, `duckdb.from_arrow(result)`, `pandas.DataFrame.from_arrow(result)`. It can be read more than once
    if `data` can.

    With `tools`, each call is validated against its definition, in the dialect of the tools. `stop` states how the texts ended,
    as in `parse`. Default dialect: automatic. As in a `Toolbox`, reasoning at the beginning of a text has no calls.

    Reading raises `ValueError` if there is no such column, or if it has no text.
    """
    return _extract_table(_arrow(data), _name("column", column), _set(tools, dialect), dialect, stop, tool_calls)


def render_many(
    data: Any,
    *,
    calls: str = "calls",
    content: str = "content",
    tools: Toolbox | None = None,
    dialect: Dialect | None = None,
) -> Table:
    """Writes calls as text: the inverse of `table`. Returns the table with the columns `text` and `error`.

    `calls` names a column like that of `table`, or in the format of the OpenAI API (`tool_calls`). A text begins with the
    content of its row, if there is such a column. Each text is parsed again: if the same content and calls do not come back,
    `text` is null, and `error` has the reason. So it is for a row with a call that may not run. The other columns stay as they are. Columns with these names are replaced.

    Ids are written only if they are not those that parsing assigns. Default dialect: automatic, which writes the block syntax.

    Reading raises `ValueError` if there is no such column of calls.
    """
    calls, content = _name("calls", calls), _name("content", content)
    return _render_table(_arrow(data), calls, content, _set(tools, dialect), dialect)


def error_rates(data: Any, calls: str = "calls") -> ErrorRates:
    """Counts the rows and calls of a table that has a column of calls.

    Raises `ValueError` if there is no such column.
    """
    counts: ErrorRates = _error_rates(_arrow(data), _name("calls", calls))  # type: ignore[assignment]
    return counts


def map_in_arrow(batches: Iterable[Any], column: str = "text", **options: Any) -> Iterator[Any]:
    """Does the work of `table` for a function of Spark's `DataFrame.mapInArrow`, which takes and returns batches of pyarrow.

    `options` are those of `table`.
    """
    pyarrow = importlib.import_module("pyarrow")
    for batch in batches:
        yield from pyarrow.RecordBatchReader.from_stream(table(batch, column, **options))


def extract_array(texts: Any, **options: Any) -> Any:
    """Does the work of `table` for Spark's `arrow_udf`: takes an array of pyarrow with texts, and returns one with structs.

    `options` are those of `table`, for functions that call it.
    """
    pyarrow = importlib.import_module("pyarrow")
    batch = pyarrow.record_batch([texts], names=["text"])
    result = pyarrow.table(table(batch, "text", **options)).drop_columns("text")
    return result.to_struct_array().combine_chunks()


# Spark reads from its signature what kind of function it is; pyarrow is not imported before it is used.
_TEXTS = inspect.Parameter("texts", inspect.Parameter.POSITIONAL_OR_KEYWORD, annotation=Any)
for _attribute, _value in (
    ("__annotations__", {"texts": "__import__('pyarrow').Array", "return": "__import__('pyarrow').Array"}),
    ("__signature__", inspect.Signature([_TEXTS], return_annotation=Any)),
):
    setattr(extract_array, _attribute, _value)


def _name(argument: str, name: object) -> str:
    if not isinstance(name, str):
        raise TypeError(f"`{argument}`: expected the name of a column, found {type(name).__name__}")
    return name


def _set(tools: object, dialect: object) -> ToolSet | None:
    if tools is None:
        return None
    if dialect is not None:
        raise ValueError("use `tools` or `dialect`, not both: the tools have a dialect")
    if not isinstance(tools, Toolbox):
        raise TypeError(f"`tools`: expected a Toolbox, found {type(tools).__name__}")
    return tools._set


def _arrow(data: Any) -> Any:
    """Returns an object that implements the Arrow PyCapsule interface."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(data, pyarrow.RecordBatchReader):
        return _Reader(data)
    polars = sys.modules.get("polars")
    if polars is not None and isinstance(data, polars.DataFrame):
        return _Polars.of(polars, data)
    if (advice := _ADVICE.get(type(data).__name__)) is not None:
        raise TypeError(f"`data`: expected a table, found {type(data).__name__}; use {advice}")
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return data
    if hasattr(data, "with_format") and hasattr(data, "features"):
        return _Dataset(data)
    raise TypeError(
        f"`data`: expected a table that implements the Arrow PyCapsule interface, found {type(data).__name__}; "
        'make one, such as `pyarrow.table({"text": texts})`'
    )


_ADVICE = {
    "Array": '`pyarrow.table({"text": array})`',
    "ChunkedArray": '`pyarrow.table({"text": array})`',
    "LazyFrame": "`frame.collect()`",
    "Series": "`series.to_frame()`",
    "StringArray": '`pyarrow.table({"text": array})`',
}
"""What to use instead of objects of other libraries that are no tables."""


class _Polars:
    """A frame of Polars with columns that Rust's library of Arrow does not read. They are read with other types."""

    def __init__(self, frame: Any, typed: Any) -> None:
        self._frame = frame
        # An empty frame with the types that the result has: those of the frame, if they can be written.
        self._typed = typed

    @classmethod
    def of(cls, polars: Any, frame: Any) -> Any:
        read = {name: _read_as(polars, dtype, polars.Boolean) for name, dtype in frame.schema.items()}
        other = {name: dtype for name, dtype in read.items() if dtype != frame.schema[name]}
        if not other:
            return frame
        objects = [name for name in other if frame.schema[name] == polars.Object]
        texts = {name: [None if one is None else str(one) for one in frame[name]] for name in objects}
        frame_of_texts = frame.with_columns(polars.Series(name, texts[name], polars.String) for name in objects)
        typed = {name: _read_as(polars, dtype, polars.Null) for name, dtype in frame.schema.items()}
        return cls(frame_of_texts.cast(other), polars.DataFrame(schema=typed))

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._frame.__arrow_c_stream__(requested_schema)


def _read_as(polars: Any, dtype: Any, null: Any) -> Any:
    """Returns a type of Polars that Rust's library of Arrow reads: `null` for Null, and text for types that Arrow does not have."""
    if dtype == polars.Null:
        return null
    if any(dtype == getattr(polars, name, None) for name in ("Int128", "UInt128", "Object")):
        return polars.String
    if isinstance(dtype, polars.List):
        return polars.List(_read_as(polars, dtype.inner, null))
    if isinstance(dtype, polars.Array):
        return polars.Array(_read_as(polars, dtype.inner, null), dtype.size)
    if isinstance(dtype, polars.Struct):
        return polars.Struct({field.name: _read_as(polars, field.dtype, null) for field in dtype.fields})
    return dtype


class _Reader:
    """A reader of pyarrow, whose batches may come from Python code. In Arrow's C interface, batches have no types."""

    def __init__(self, data: Any) -> None:
        self._data = data

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        pyarrow = importlib.import_module("pyarrow")
        batches = self._batches(self._data.schema)
        return pyarrow.RecordBatchReader.from_batches(self._data.schema, batches).__arrow_c_stream__(requested_schema)

    def _batches(self, schema: Any) -> Iterator[Any]:
        for number, batch in enumerate(self._data, 1):
            found = batch.schema
            if found.names != schema.names or found.types != schema.types:
                columns = ", ".join(f"{field.name}: {field.type}" for field in found)
                raise ValueError(
                    f"the batch {number} does not match the schema of its table; its columns are {columns}"
                )
            yield batch


class _Dataset:
    """A `Dataset` of Hugging Face, which knows which rows it has and in which order."""

    def __init__(self, data: Any) -> None:
        self._data = data.with_format("arrow")

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        pyarrow = importlib.import_module("pyarrow")
        schema = self._data.features.arrow_schema
        tables = self._data.iter(batch_size=_ROWS)
        # An array of another type would be read as one of this type.
        cast = (table if table.schema.types == schema.types else table.cast(schema) for table in tables)
        batches = (batch for table in cast for batch in table.to_batches())
        return pyarrow.RecordBatchReader.from_batches(schema, batches).__arrow_c_stream__(requested_schema)
