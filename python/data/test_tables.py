"""Tables: the same calls as `parse`, and the same table in every library."""

from __future__ import annotations

import functools
import inspect
import json
import re
import threading
import typing
from collections.abc import Iterator
from typing import Any

import datasets
import duckdb
import pandas
import polars
import pyarrow
import pytest
from examples import run_examples
from hypothesis import given
from hypothesis import strategies as some
from interrupts import check_interrupts
from specification import dialect_of, examples

import plaincall as pc
from plaincall.data import extract_array

CALL = "Look.\n!!!GADGET_START:read:a\n!!!ARG:path\na.txt\n!!!GADGET_END\n"
TRUNCATED = "!!!GADGET_START:read\n!!!ARG:path\na.txt"
INVALID = "!!!GADGET_START:add\n!!!ARG:a\n1\n!!!ARG:a\n2\n!!!GADGET_END\n"
THREE = "".join(CALL.replace(":a\n", f":{name}\n") for name in "abc")
TEXTS = [CALL, None, TRUNCATED, INVALID, "", "🛠️[search cats]\nbody\n🛠️[/end]\n", THREE]
INPUT = pyarrow.table({"id": list(range(len(TEXTS))), "text": TEXTS})


def rows_of(data: Any) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = pyarrow.table(data).to_pylist()
    return rows


def expected(text: str | bytes, dialect: pc.Dialect | None = None, stop: Any = "broken") -> dict[str, Any]:
    """Returns the row of a text, from `parse`."""
    # A table reads reasoning as a toolbox does.
    dialect = pc.Toolbox(dialect=dialect or pc.Dialect.auto()).dialect
    document = pc.parse(text, dialect, stop=stop)
    calls = [
        {
            "index": call.index,
            "name": call.name,
            "id": call.id,
            "dependencies": list(call.dependencies),
            "arguments": {"raw_args": call.raw_args, "body": call.body} if call.syntax == "emoji" else call.arguments,
            "syntax": call.syntax,
            "termination": call.termination,
            "may_run": call.may_run,
            "error": call.rejection or call.held,
            "codes": list(dict.fromkeys(diagnostic.code for diagnostic in call.diagnostics)),
            "start": call.start,
            "end": call.end,
        }
        for call in document.calls
    ]
    return {"content": document.text, "calls": calls, "error": None}


def without_text(row: dict[str, Any]) -> dict[str, Any]:
    """Returns the columns that were added, with the arguments as values."""
    row = {name: row[name] for name in ("content", "calls", "error")}
    for call in row["calls"]:
        call["arguments"] = None if call["arguments"] is None else json.loads(call["arguments"])
    return row


@pytest.mark.parametrize("case", examples("read"))
def test_rows_have_the_calls_of_parse(case: dict[str, Any]) -> None:
    text, dialect = case["input"], dialect_of(case["dialect"])
    for stop in ("broken", "natural"):
        row = rows_of(pc.table(pyarrow.table({"text": [text]}), dialect=dialect, stop=stop))[0]
        assert without_text(row) == expected(text, dialect, stop)


@given(some.lists(some.text() | some.sampled_from([CALL, TRUNCATED, INVALID]), min_size=1, max_size=6))
def test_random_texts(pieces: list[str]) -> None:
    text = "\n".join(pieces).encode("utf-8", "surrogatepass")
    row = rows_of(pc.table(pyarrow.table({"text": [text]})))[0]
    assert without_text(row) == expected(text)


def test_tools() -> None:
    @pc.tool(effect="read")
    def read(path: str, lines: int = 5) -> str:
        return path

    tools = pc.Toolbox([read])
    texts = [CALL, CALL.replace("path", "file"), CALL.replace("read", "write"), TRUNCATED]
    rows = rows_of(pc.table(pyarrow.table({"text": texts}), tools=tools, stop="natural"))
    for text, row in zip(texts, rows, strict=True):
        (call,), (parsed,) = row["calls"], tools.parse(text, stop="natural").calls
        assert call["may_run"] == parsed.may_run
        assert call["error"] == parsed.rejection
        assert call["codes"] == [problem.code for problem in parsed.problems]
        assert (call["arguments"] and json.loads(call["arguments"])) == parsed.arguments
    with pytest.raises(ValueError, match="not both"):
        pc.table(INPUT, tools=tools, dialect=pc.Dialect.block())


def test_calls_in_reasoning_are_not_counted() -> None:
    @pc.tool
    def read(path: str) -> str:
        return path

    other = CALL.replace(":a\n", ":b\n")
    data = pyarrow.table({"text": [f"<think>{CALL}</think>{other}"]})
    plain, without = pc.Toolbox([read]), pc.Dialect.block(no_reasoning=True)
    options: list[tuple[dict[str, Any], int]] = [({}, 1), ({"tools": plain}, 1), ({"dialect": without}, 2)]
    for chosen, count in options:
        assert pc.error_rates(pc.table(data, **chosen))["may_run"] == count, chosen


def test_a_row_without_a_text_has_an_error() -> None:
    rows = rows_of(pc.table(INPUT, tool_calls=True))
    nothing = {"content": None, "calls": None, "tool_calls": None, "error": "the text is null"}
    assert rows[1] == {"id": 1, "text": None, **nothing}
    assert [row["error"] for row in rows if row["id"] != 1] == [None] * 6
    assert rows_of(pc.table(pyarrow.table({"text": [None, None]})))[1]["error"] == "the text is null"
    assert rows_of(pc.table(INPUT.slice(0, 0))) == []


def test_libraries_give_equal_tables() -> None:
    reference = pyarrow.table(pc.table(INPUT, tool_calls=True))
    dataset = datasets.Dataset.from_dict(INPUT.to_pydict())
    inputs = {
        "batch": INPUT.to_batches()[0],
        "chunks": pyarrow.concat_tables([INPUT.slice(0, 2), INPUT.slice(2)]),
        "polars": polars.DataFrame(INPUT),
        "pandas": pandas.DataFrame.from_arrow(INPUT),
        "duckdb": duckdb.connect().from_arrow(INPUT),
        "datasets": dataset,
        "large": INPUT.cast(pyarrow.schema([("id", "int64"), ("text", "large_string")])),
        "view": INPUT.cast(pyarrow.schema([("id", "int64"), ("text", pyarrow.string_view())])),
        "bytes": INPUT.cast(pyarrow.schema([("id", "int64"), ("text", "binary")])),
        "dictionary": INPUT.set_column(1, "text", INPUT["text"].dictionary_encode()),
    }
    names = ["content", "calls", "tool_calls", "error"]
    for name, data in inputs.items():
        result = pc.table(data, tool_calls=True)
        found = pyarrow.table(result).select(names).combine_chunks()
        assert found.equals(reference.select(names).combine_chunks()), name
        # It can be read again, and by every library.
        assert polars.DataFrame(result).select(names).equals(polars.DataFrame(reference).select(names)), name
        connection = duckdb.connect()
        listed = connection.from_arrow(pyarrow.table(result)).select(*names).fetchall()
        assert listed == connection.from_arrow(reference).select(*names).fetchall(), name
    shuffled = pyarrow.table(pc.table(dataset.select([6, 0])))
    assert shuffled["id"].to_pylist() == [6, 0]
    frame: Any = pandas.DataFrame.from_arrow(pc.table(INPUT))
    assert frame["content"][0] == "Look.\n\n"


class Batch:
    """A library whose tables are single arrays."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        return self.array.__arrow_c_array__(requested_schema)


class Swapped:
    """A library that swaps both parts of an array."""

    def __arrow_c_array__(self, requested_schema: object = None) -> object:
        schema, array = INPUT.to_batches()[0].__arrow_c_array__(requested_schema)
        return array, schema


def test_a_batch_without_a_stream() -> None:
    batch = INPUT.to_batches()[0].replace_schema_metadata({"a": "b"})
    made = pyarrow.table(pc.table(Batch(batch)))
    assert made.schema.metadata == {b"a": b"b"}
    assert made.to_pylist() == rows_of(pc.table(INPUT))
    structs = pyarrow.array([{"text": "x"}, None])
    assert rows_of(pc.table(Batch(structs[:1])))[0]["content"] == "x"
    for wrong, message in [
        (structs, "rows that are null as a whole"),
        (pyarrow.array([1]), "^`data`: expected a table or a batch, found an array of the type Int64"),
        (Swapped(), "incorrect name"),
    ]:
        with pytest.raises(ValueError, match=message):
            pyarrow.table(pc.table(Batch(wrong)))


def test_duckdb_reads_it_in_a_query() -> None:
    result = pc.table(INPUT)
    query = "select sum(len(calls)) from result"
    assert duckdb.connect().sql(query).fetchall() == [(7,)]
    assert result is not None


def test_columns_stay_and_are_replaced() -> None:
    data = pyarrow.table({"role": ["assistant"], "content": [CALL], "n": [1]})
    result = pyarrow.table(pc.table(data, "content"))
    assert result.column_names == ["role", "n", "content", "calls", "error"]
    assert result["content"].to_pylist() == ["Look.\n\n"]
    # The same memory.
    address = [buffer and buffer.address for buffer in data["n"].chunk(0).buffers()]
    assert [buffer and buffer.address for buffer in result["n"].chunk(0).buffers()] == address


def test_mistakes() -> None:
    with pytest.raises(ValueError, match="no column `txt`; its columns are `id`, `text`; name a column of the table"):
        pyarrow.table(pc.table(INPUT, "txt"))
    with pytest.raises(ValueError, match="the column `id` has the type Int64"):
        pyarrow.table(pc.table(INPUT, "id"))
    with pytest.raises(TypeError, match=r'found list; make one, such as `pyarrow\.table\({"text": texts}\)`'):
        pc.table([CALL])
    with pytest.raises(ValueError, match="no column `calls`"):
        pc.error_rates(INPUT)
    with pytest.raises(ValueError, match="`tool_calls` have no field `may_run`; count the column `calls` of"):
        pc.error_rates(pc.table(INPUT, tool_calls=True), "tool_calls")
    with pytest.raises(ValueError, match="no column `calls`"):
        pyarrow.table(pc.render_many(INPUT))
    for stop in (5, ["stop"]):
        with pytest.raises(TypeError, match=r"^`stop`: expected a str"):
            pc.table(INPUT, stop=stop)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^`column`: expected the name of a column, found int"):
        pc.table(INPUT, 5)  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^`tools`: expected a Toolbox, found list"):
        pc.table(INPUT, tools=[print])  # type: ignore[arg-type]
    with pytest.raises(TypeError, match=r"^`dialect`: expected a Dialect"):
        pc.render_many(INPUT, dialect="block")  # type: ignore[arg-type]
    array = INPUT["text"].combine_chunks()
    for data, advice in [
        (polars.Series("text", TEXTS), "Series; use `series.to_frame()`"),
        (pandas.Series(TEXTS), "Series; use `series.to_frame()`"),
        (polars.LazyFrame({"text": TEXTS}), "LazyFrame; use `frame.collect()`"),
        (array, '; use `pyarrow.table({"text": array})`'),
        (INPUT["text"], 'ChunkedArray; use `pyarrow.table({"text": array})`'),
    ]:
        with pytest.raises(TypeError, match="^`data`: expected a table, found .*" + re.escape(advice)):
            pc.table(data)


def test_an_error_of_the_input_is_passed_on() -> None:
    def batches() -> Iterator[pyarrow.RecordBatch]:
        yield INPUT.to_batches()[0]
        raise RuntimeError("the disk is gone")

    reader = pyarrow.RecordBatchReader.from_batches(INPUT.schema, batches())
    result = pyarrow.RecordBatchReader.from_stream(pc.table(reader))
    assert result.read_next_batch().num_rows == len(TEXTS)
    with pytest.raises(Exception, match="the disk is gone"):
        result.read_next_batch()


def test_batches_that_do_not_match_their_schema() -> None:
    """Elsewhere, they are read as what the schema states."""
    schema = pyarrow.schema([("text", pyarrow.string())])
    for array in (pyarrow.array([1, 2]), pyarrow.array(["abc", "def"], pyarrow.large_string())):
        batch = pyarrow.record_batch([array], names=["text"])
        reader = pyarrow.RecordBatchReader.from_batches(schema, iter([batch]))
        with pytest.raises(
            Exception, match=r"the batch 1 does not match the schema of its table; its columns are text: "
        ):
            pyarrow.table(pc.table(reader))
    good = pyarrow.record_batch([pyarrow.array([CALL])], names=["text"])
    reader = pyarrow.RecordBatchReader.from_batches(schema, iter([good, good]))
    assert pyarrow.table(pc.table(reader)).num_rows == 2


class Wrong:
    """A library whose batches have numbers in a column of text."""

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        schema = pyarrow.schema([("text", pyarrow.string()), ("calls", pyarrow.list_(pyarrow.string()))])
        batch = pyarrow.record_batch([pyarrow.array([1, 2]), pyarrow.array([1, 2])], names=["text", "calls"])
        return pyarrow.RecordBatchReader.from_batches(schema, iter([batch])).__arrow_c_stream__(requested_schema)


def test_batches_that_cannot_be_read() -> None:
    for read in (lambda: pyarrow.table(pc.table(Wrong())), lambda: pc.error_rates(Wrong())):
        with pytest.raises(Exception, match="a batch cannot be read; does it match the schema of its table"):
            read()


def test_categories() -> None:
    texts = [CALL, None, "Look.", CALL]
    frame = polars.DataFrame({"text": polars.Series(texts, dtype=polars.Categorical)})
    pandas_frame = pandas.DataFrame({"text": pandas.Categorical(texts)})
    wanted = rows_of(pc.table(pyarrow.table({"text": texts})))
    types = [getattr(pyarrow, f"{sign}int{bits}")() for sign in ("", "u") for bits in (8, 16, 32, 64)]
    arrays = [pyarrow.array(texts).dictionary_encode().cast(pyarrow.dictionary(one, pyarrow.string())) for one in types]
    # Keys and values may be null.
    arrays.append(
        pyarrow.DictionaryArray.from_arrays(pyarrow.array([0, 1, 2, 0]), pyarrow.array([CALL, None, "Look."]))
    )
    for data in (frame, pandas_frame, *(pyarrow.table({"text": array}) for array in arrays)):
        assert rows_of(pc.table(data)) == wanted


def test_many_rows_of_few_categories() -> None:
    # The values of all rows have more bytes than an array of text holds, and the results fill many batches.
    text = CALL + "x" * (1 << 20)
    keys = pyarrow.array([0] * 2200, pyarrow.int32())
    array = pyarrow.DictionaryArray.from_arrays(keys, pyarrow.array([text]))
    result = pyarrow.RecordBatchReader.from_stream(pc.table(pyarrow.table({"text": array})))
    rows = 0
    for batch in result:
        rows += batch.num_rows
        assert batch["error"].null_count == batch.num_rows
    assert rows == 2200


def test_metadata_stays() -> None:
    data = INPUT.replace_schema_metadata({"a": "b"})
    for made in (pc.table(data), pc.render_many(pc.table(data))):
        assert pyarrow.table(made).schema.metadata == {b"a": b"b"}
    frame = pandas.DataFrame({"text": [CALL, "x"]}, index=["one", "two"])
    assert list(pyarrow.table(pc.table(frame)).to_pandas().index) == ["one", "two"]


def test_batches_are_read_one_at_a_time() -> None:
    read = 0

    def batches() -> Iterator[pyarrow.RecordBatch]:
        nonlocal read
        for _ in range(5):
            read += 1
            yield INPUT.to_batches()[0]

    source = pyarrow.RecordBatchReader.from_batches(INPUT.schema, batches())
    for number, _ in enumerate(pyarrow.RecordBatchReader.from_stream(pc.table(source)), 1):
        assert read == number


def test_large_results_end_a_batch() -> None:
    text = "word " * 4_000_000
    data = pyarrow.table({"text": [text] * 8})
    sizes = [batch.num_rows for batch in pyarrow.RecordBatchReader.from_stream(pc.table(data))]
    assert sizes == [1] * 8


def test_one_chunk_becomes_batches_of_bounded_size() -> None:
    data = pyarrow.table({"id": range(30_000), "text": [CALL] * 30_000})
    for source in (data, polars.DataFrame(data), pandas.DataFrame.from_arrow(data), data.slice(1)):
        made = list(pyarrow.RecordBatchReader.from_stream(pc.table(source)))
        rows = [batch.num_rows for batch in made]
        assert len(rows) >= 4 and max(rows) <= 8192 and sum(rows) in (30_000, 29_999), rows
        ids = pyarrow.Table.from_batches(made)["id"].to_pylist()
        assert ids == list(range(30_000 - len(ids), 30_000))
    written = pyarrow.RecordBatchReader.from_stream(pc.render_many(pyarrow.table(pc.table(data)).combine_chunks()))
    assert max(batch.num_rows for batch in written) <= 8192
    assert pc.error_rates(pc.table(data))["calls"] == 30_000


@pytest.mark.parametrize(
    "of",
    [
        pyarrow.large_list,
        pyarrow.list_view,
        pyarrow.large_list_view,
        lambda item: pyarrow.list_(item, 2),
    ],
    ids=["large_list", "list_view", "large_list_view", "fixed_size_list"],
)
def test_lists_in_each_representation(of: Any) -> None:
    texts = [
        "".join(f"!!!GADGET_START:add\n!!!ARG:a\n{at + row}\n!!!GADGET_END\n" for at in range(2)) for row in range(3)
    ]
    found = pyarrow.table(pc.table(pyarrow.table({"text": texts})))
    calls = found["calls"].combine_chunks()
    lists = [*calls.to_pylist(), None]
    made = pyarrow.array(lists, of(calls.type.value_type))
    # Lists of views may be in another order.
    for rows in (made, made.take(pyarrow.array([2, 0, 3]))):
        expected = pyarrow.table({"calls": pyarrow.array(rows.to_pylist(), calls.type)})
        given = pyarrow.table({"calls": rows})
        assert pc.error_rates(given) == pc.error_rates(expected)
        written = [pyarrow.table(pc.render_many(data))["text"].to_pylist() for data in (given, expected)]
        assert written[0] == written[1] and written[0][0] in texts
    null = pc.error_rates(pyarrow.table({"calls": pyarrow.nulls(2)}))
    assert null["calls"] == 0


def test_slices_of_nested_columns() -> None:
    """Arrow's Rust library adds the offset of a struct to the structs in it twice."""
    rows = [
        {
            "text": None if n % 3 else "x",
            "struct": {"a": {"b": {"c": n}, "d": str(n)}} if n % 4 else None,
            "lists": [{"a": {"b": n}}] * (n % 3),
            "pairs": [{"a": {"b": n}}, {"a": {"b": -n}}],
            "map": [(str(n), {"a": {"b": n}})],
        }
        for n in range(40)
    ]
    inner = pyarrow.struct([("a", pyarrow.struct([("b", pyarrow.int64())]))])
    types = {"pairs": pyarrow.list_(inner, 2), "map": pyarrow.map_(pyarrow.string(), inner)}
    columns = {name: pyarrow.array([row[name] for row in rows], types.get(name)) for name in rows[0]}
    numbers, structs = pyarrow.array(range(40)), pyarrow.array([{"a": {"b": n}} for n in range(40)])
    ids = pyarrow.array([n % 2 for n in range(40)], pyarrow.int8())
    columns["union"] = pyarrow.UnionArray.from_sparse(ids, [numbers, structs])
    columns["dictionary"] = pyarrow.DictionaryArray.from_arrays(numbers, structs)
    table = pyarrow.table(columns)
    parts = [table.slice(start, length) for start, length in [(0, 40), (1, 39), (7, 20), (39, 1), (5, 0)]]
    # A batch, and an array with an offset in one with another.
    parts.append(table.to_batches()[0].slice(5, 9))
    outer = pyarrow.StructArray.from_arrays([table["struct"].chunk(0).slice(3)], ["inner"])
    parts.append(pyarrow.table({"text": ["x"] * 30, "outer": outer.slice(2, 30)}))
    for part in parts:
        for data in (part, Batch(part)) if isinstance(part, pyarrow.RecordBatch) else (part,):
            assert pyarrow.table(pc.table(data)).select(part.schema.names).to_pylist() == part.to_pylist()
        assert pc.error_rates(pc.table(part))["rows"] == part.num_rows


def test_a_dataset_of_nested_columns() -> None:
    rows = [{"text": "x", "usage": {"details": {"cached": n}}} for n in range(3000)]
    dataset = datasets.Dataset.from_list(rows)
    for data in (dataset, dataset.select(range(5, 2500)), dataset.shuffle(seed=1)):
        assert pyarrow.table(pc.table(data)).select(["text", "usage"]).to_pylist() == data.to_list()


@pytest.mark.parametrize(
    "read",
    [
        lambda data: pyarrow.table(pc.table(data)),
        lambda data: polars.DataFrame(pc.table(polars.DataFrame(data))),
        lambda data: pyarrow.table(pc.render_many(data, calls="tool_calls")),
        lambda data: pc.error_rates(pc.table(data)),
    ],
    ids=["table", "polars", "render_many", "error_rates"],
)
def test_a_signal_ends_a_long_table(read: Any) -> None:
    data = pyarrow.table(pc.table(pyarrow.table({"text": [CALL] * 1000}), tool_calls=True))
    check_interrupts(lambda size: functools.partial(read, pyarrow.concat_tables([data] * size).combine_chunks()))


def test_a_signal_ends_the_work_on_one_row() -> None:
    texts = CALL.replace(":a\n", "\n") * 1000

    def text(size: int) -> Any:
        return pyarrow.table({"text": [texts * size]})

    check_interrupts(lambda size: functools.partial(pyarrow.table, pc.table(text(size))))
    check_interrupts(lambda size: functools.partial(pyarrow.table, pc.render_many(pyarrow.table(pc.table(text(size))))))


def test_a_signal_ends_the_counting_of_one_chunk() -> None:
    call = {"may_run": True, "codes": ["duplicate_argument"]}
    data = pyarrow.table({"calls": [[call] * 10] * 10_000})
    check_interrupts(
        lambda size: functools.partial(pc.error_rates, pyarrow.concat_tables([data] * size).combine_chunks())
    )


def test_columns_of_polars_without_values() -> None:
    frame = polars.DataFrame(
        {
            "text": [CALL, None],
            "null": [None, None],
            "struct": [{"a": None, "b": 1}, None],
            "list": [[None], []],
            "deep": [[{"a": [None]}], None],
            "array": polars.Series([[None, None], None], dtype=polars.Array(polars.Null, 2)),
            "large": polars.Series([2**100, None], dtype=polars.Int128),
            "object": polars.Series([{1}, None], dtype=polars.Object),
        }
    )
    others = [name for name in frame.columns if name not in ("large", "object")]
    found = polars.DataFrame(pc.table(frame))
    assert found.select(others).equals(frame.select(others), null_equal=True)
    assert found.select(others).schema == frame.select(others).schema
    assert (found["large"].to_list(), found["object"].to_list()) == ([str(2**100), None], ["{1}", None])
    assert found["calls"].equals(polars.DataFrame(pc.table(frame.select("text")))["calls"])
    assert pyarrow.table(pc.table(frame))["null"].type == pyarrow.null()
    assert duckdb.from_arrow(pyarrow.table(pc.table(frame.select(others)))).fetchall()[1][1] is None
    empty = polars.DataFrame({"text": [None, None], "calls": [None, None]})
    assert polars.DataFrame(pc.table(empty))["error"].to_list() == ["the text is null"] * 2
    assert polars.DataFrame(pc.render_many(empty))["error"].to_list() == ["the calls are null"] * 2
    assert pc.error_rates(empty)["failed_rows"] == 2


def test_spark_accepts_the_function_as_it_is() -> None:
    from pyspark.sql.pandas.functions import ArrowUDFType
    from pyspark.sql.pandas.typehints import infer_eval_type

    # As `arrow_udf` does, which needs a session.
    found = infer_eval_type(inspect.signature(extract_array), typing.get_type_hints(extract_array), "arrow")
    assert found == ArrowUDFType.SCALAR
    assert extract_array(INPUT["text"].combine_chunks()).type.names == ["content", "calls", "error"]


def test_threads_and_the_lock() -> None:
    data = pyarrow.table({"text": [CALL] * 20_000})
    reference = pyarrow.table(pc.table(data))
    found: list[bool] = []

    def work() -> None:
        found.append(pyarrow.table(pc.table(data)).equals(reference))

    threads = [threading.Thread(target=work) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert found == [True] * 4


def test_calls_come_back() -> None:
    first = pyarrow.table(pc.table(INPUT, tool_calls=True))
    rendered = rows_of(pc.render_many(first))
    errors = [None, "the calls are null", "call `read` may not run", "call `add` may not run"]
    assert [row["error"] for row in rendered] == [*errors, None, None, None]
    again = rows_of(pc.table(pc.render_many(first)))
    for row, other in zip(first.to_pylist(), again, strict=True):
        for call, back in zip(row["calls"] or [], other["calls"] or [], strict=False):
            names = ("name", "id", "dependencies", "arguments")
            assert [call[name] for name in names] == [back[name] for name in names]
    openai = rows_of(pc.render_many(polars.DataFrame(first), calls="tool_calls"))
    assert openai[0]["text"] == CALL.replace("Look.\n", "Look.\n\n")
    assert openai[6]["text"].count("!!!GADGET_START:read") == 3


@given(some.dictionaries(some.text(min_size=1), some.text() | some.integers() | some.booleans()), some.text())
def test_random_calls_come_back_or_have_an_error(arguments: dict[str, Any], content: str) -> None:
    arguments = json.loads(json.dumps(arguments).encode("utf-8", "replace"))
    call = {"name": "f", "arguments": json.dumps(arguments)}
    content = content.encode("utf-8", "replace").decode()
    (row,) = rows_of(pc.render_many(pyarrow.table({"content": [content], "calls": [[call]]})))
    assert (row["text"] is None) != (row["error"] is None)
    if row["text"] is not None:
        (parsed,) = pc.parse(row["text"]).calls
        assert parsed.arguments == arguments


def test_rendered_content_contains_no_call() -> None:
    data = pyarrow.table({"content": [CALL], "calls": [[{"name": "f", "arguments": "{}"}]]})
    (row,) = rows_of(pc.render_many(data))
    assert row["text"] is None and "parsed as a call" in row["error"]


def test_error_rates() -> None:
    table = pyarrow.table(pc.table(INPUT))
    rates = pc.error_rates(table)
    assert (rates["rows"], rates["failed_rows"], rates["calls"], rates["may_run"]) == (7, 1, 7, 5), rates
    assert list(rates["codes"].values()) and sum(rates["codes"].values()) >= 1
    assert pc.error_rates(polars.DataFrame(table)) == rates
    assert pc.error_rates(pc.table(INPUT)) == rates
    assert pc.error_rates(pyarrow.table({"calls": pyarrow.nulls(2)})) == {
        "rows": 2,
        "failed_rows": 2,
        "calls": 0,
        "may_run": 0,
        "codes": {},
    }


def test_examples_of_the_page_run() -> None:
    assert run_examples("docs/python-data.md") > 0


@pytest.mark.parametrize("read", [pyarrow.table, polars.DataFrame])
def test_the_lock_is_released(read: Any) -> None:
    """Another thread runs while a library reads a long batch, with the lock or without it."""
    result = pc.table(pyarrow.table({"text": [CALL * 100] * 2000}))
    turns, is_done = 0, threading.Event()

    def count() -> None:
        nonlocal turns
        while not is_done.wait(0.001):
            turns += 1

    counter = threading.Thread(target=count)
    counter.start()
    read(result)
    is_done.set()
    counter.join()
    assert turns > 10
