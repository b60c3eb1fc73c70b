"""Calls of many texts as a table, in any library that uses Arrow: pyarrow, Polars, DuckDB, pandas, datasets, Spark.

`table` adds the calls of a column of text. `render_many` is the inverse, and `error_rates` counts. Each takes an object that
implements the Arrow PyCapsule interface, and `table` and `render_many` return one.
"""

from __future__ import annotations

import importlib
import sys
from collections.abc import Iterable, Iterator
from typing import Any, Literal, TypedDict

from plaincall._plaincall import Dialect, Table, ToolSet
from plaincall._plaincall import error_rates as _error_rates
from plaincall._plaincall import extract_table as _extract_table
from plaincall._plaincall import render_table as _render_table
from plaincall.tools import Toolbox

_Stop = Literal["natural", "end_of_file", "length", "broken"]

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
    stop: _Stop = "broken",
    tool_calls: bool = False,
) -> Table:
    """Finds the calls in the texts of a column, and returns the table with the columns `content`, `calls` and `error`.

    `content` is the text outside calls and reasoning. `calls` is a list of structs: `index`, `name`, `id`, `dependencies`,
    `arguments` (the text of a JSON object, or null if they are invalid), `syntax`, `termination`, `may_run`, `error` (why it may
    not run), `codes` (of its diagnostics), `start` and `end` (in bytes of the text). `error` is null, or why a row has no
    result: its text is null, or the result has more than 1 GiB. With `tool_calls`, the column `tool_calls` has the calls that
    may run in the format of the OpenAI API. The other columns stay as they are. Columns with these names are replaced.

    `data` is a table of any library that uses Arrow: an object that implements the Arrow PyCapsule interface, or a `Dataset` of
    Hugging Face. So is the result, which is made while it is read, one batch after another: `pyarrow.table(result)`,
    `polars.DataFrame(result)`, `duckdb.from_arrow(result)`, `pandas.DataFrame.from_arrow(result)`. It can be read more than once
    if `data` can.

    With `tools`, each call is validated against its definition, in the dialect of the tools. `stop` states how the texts ended,
    as in `parse`. Default dialect: automatic. As in a `Toolbox`, reasoning at the beginning of a text has no calls.

    Reading raises `ValueError` if there is no such column, or if it has no text.
    """
    if tools is not None and dialect is not None:
        raise ValueError("use `tools` or `dialect`, not both: the tools have a dialect")
    return _extract_table(_arrow(data), column, _set(tools), dialect, stop, tool_calls)


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
    if tools is not None and dialect is not None:
        raise ValueError("use `tools` or `dialect`, not both: the tools have a dialect")
    return _render_table(_arrow(data), calls, content, _set(tools), dialect)


def error_rates(data: Any, calls: str = "calls") -> ErrorRates:
    """Counts the rows and calls of a table that has a column of calls.

    Raises `ValueError` if there is no such column.
    """
    counts: ErrorRates = _error_rates(_arrow(data), calls)  # type: ignore[assignment]
    return counts


def map_in_arrow(batches: Iterable[Any], column: str = "text", **options: Any) -> Iterator[Any]:
    """Does the work of `table` for a function of Spark's `DataFrame.mapInArrow`, which takes and returns batches of pyarrow.

    `options` are those of `table`.
    """
    pyarrow = importlib.import_module("pyarrow")
    for batch in batches:
        yield from pyarrow.RecordBatchReader.from_stream(table(batch, column, **options))


def extract_array(texts: Any, **options: Any) -> Any:
    """Does the work of `table` for a function of Spark's `arrow_udf`: takes an array of pyarrow with texts, and returns one with structs.

    `options` are those of `table`.
    """
    pyarrow = importlib.import_module("pyarrow")
    batch = pyarrow.record_batch([texts], names=["text"])
    result = pyarrow.table(table(batch, "text", **options)).drop_columns("text")
    return result.to_struct_array().combine_chunks()


def _set(tools: Toolbox | None) -> ToolSet | None:
    return None if tools is None else tools._set


def _arrow(data: Any) -> Any:
    """Returns an object that implements the Arrow PyCapsule interface."""
    pyarrow = sys.modules.get("pyarrow")
    if pyarrow is not None and isinstance(data, pyarrow.RecordBatchReader):
        return _Reader(data)
    if hasattr(data, "__arrow_c_stream__") or hasattr(data, "__arrow_c_array__"):
        return data
    if hasattr(data, "with_format") and hasattr(data, "features"):
        return _Dataset(data)
    raise TypeError(
        f"expected a table that implements the Arrow PyCapsule interface, found {type(data).__name__}; "
        "convert it with `pyarrow.table`"
    )


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
