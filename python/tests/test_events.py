"""The events are those of the specification and of the command, for every split and every entry point."""

from __future__ import annotations

import asyncio
import copy
import json
import pickle
import subprocess
from collections.abc import AsyncIterator, Iterable
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from specification import ROOT, dialect_of, examples

import plaincall as pc

DELTAS = (pc.Text, pc.Reasoning, pc.ValueDelta, pc.Ignored)
# Longer texts are split at some positions only.
EVERY_SPLIT = 300


def merged(events: Iterable[pc.Event]) -> list[tuple[Any, ...]]:
    """Returns the events as tuples, with adjacent deltas joined."""
    merged: list[tuple[Any, ...]] = []
    for event in events:
        names = [name for name in type(event).__match_args__ if name not in ("start", "end", "source")]
        if isinstance(event, DELTAS):
            if merged and merged[-1][0] is type(event) and merged[-1][2] == event.start:
                _, start, _, text = merged[-1]
                merged[-1] = (type(event), start, event.end, text + event.text)
            else:
                merged.append((type(event), event.start, event.end, event.text))
        else:
            merged.append(
                (type(event), event.start, event.end, *(getattr(event, name) for name in names), event.source)
            )
    return merged


def read(chunks: Iterable[str | bytes], dialect: pc.Dialect) -> list[pc.Event]:
    return list(pc.events(chunks, dialect))


async def read_async(chunks: Iterable[str | bytes], dialect: pc.Dialect) -> list[pc.Event]:
    async def arriving() -> AsyncIterator[str | bytes]:
        for chunk in chunks:
            yield chunk

    return [event async for event in pc.aevents(arriving(), dialect)]


def check_splits(text: str, dialect: pc.Dialect) -> list[pc.Event]:
    whole = read([text], dialect)
    expected = merged(whole)
    data = text.encode()
    step = max(1, len(data) // EVERY_SPLIT)
    for at in range(0, len(data) + 1, step):
        assert merged(read([data[:at], data[at:]], dialect)) == expected, at
    single = [data[at : at + 1] for at in range(len(data))]
    assert merged(read(single, dialect)) == expected
    assert merged(asyncio.run(read_async(list(text), dialect))) == expected
    return whole


def check_spans(text: str, events: Iterable[pc.Event]) -> None:
    """The spans cover the text without gaps, and each event has the source of its span."""
    data = text.encode()
    at = 0
    for event in events:
        if isinstance(event, pc.Diagnostic):
            assert (event.end, event.source) == (at, "")
            continue
        assert event.start == at
        assert event.source == data[event.start : event.end].decode()
        at = event.end
    assert at == len(data)


def in_conformance(text: str, events: Iterable[pc.Event]) -> list[dict[str, Any]]:
    """Returns the events in the form of the examples."""
    data = text.encode()
    found: list[dict[str, Any]] = []

    def text_event(kind: str, text: str) -> None:
        if found and found[-1]["type"] == kind:
            found[-1]["text"] += text
        elif text:
            found.append({"type": kind, "text": text})

    for event in events:
        match event:
            case pc.Text(text):
                text_event("text", text)
            case pc.Reasoning(text):
                text_event("reasoning", text)
            case pc.ValueDelta(text):
                text_event("value", text)
            case pc.Ignored(text):
                text_event("ignored", text)
            case pc.CallStart(name, id, dependencies, syntax, raw_args):
                call: dict[str, Any] = {"type": "call", "name": name}
                if syntax == "emoji":
                    call["raw_args"] = raw_args
                if id is not None:
                    call["id"] = id
                if dependencies:
                    call["dependencies"] = list(dependencies)
                found.append(call)
            case pc.ValueStart(None):
                found.append({"type": "body"})
            case pc.ValueStart(pointer):
                found.append({"type": "argument", "pointer": pointer})
            case pc.CallEnd(termination):
                found.append({"type": "end", "termination": termination})
            case pc.Diagnostic(code, start=start, end=end):
                found.append({"type": "diagnostic", "code": code, "text": data[start:end].decode()})
    return found


def in_lines(events: Iterable[pc.Event]) -> list[dict[str, Any]]:
    """Returns the events in the form of `plaincall parse --events`."""
    names = {
        pc.Text: "text",
        pc.Reasoning: "reasoning",
        pc.ValueDelta: "value_delta",
        pc.Ignored: "ignored",
        pc.CallStart: "call_start",
        pc.ValueStart: "value_start",
        pc.ValueEnd: "value_end",
        pc.CallEnd: "call_end",
        pc.Diagnostic: "diagnostic",
    }
    lines: list[dict[str, Any]] = []
    for event in events:
        line: dict[str, Any] = {"type": names[type(event)], "span": [event.start, event.end]}
        match event:
            case pc.Text(text) | pc.Reasoning(text) | pc.ValueDelta(text) | pc.Ignored(text):
                line["text"] = text
            case pc.CallStart(name, id, dependencies, "block"):
                line |= {"syntax": "block", "name": name, "id": id, "dependencies": list(dependencies)}
            case pc.CallStart(name, raw_args=raw_args):
                line |= {"syntax": "emoji", "name": name, "raw_args": raw_args}
            case pc.ValueStart(pointer) if pointer is not None:
                line["pointer"] = pointer
            case pc.CallEnd(termination):
                line["termination"] = termination
            case pc.Diagnostic(code, severity, message):
                line |= {"code": code, "severity": severity, "message": message}
        if line["type"] in ("call_start", "value_start", "value_end", "call_end"):
            line["source"] = event.source
        lines.append(line)
    return lines


def options_of(dialect: dict[str, Any]) -> list[str] | None:
    """Returns the options of the command for the dialect of an example, or `None` if it has none."""
    options = ["--syntax", dialect["syntax"]]
    for name, value in dialect.items():
        match name:
            case "syntax":
                pass
            case "start" | "end" | "arg":
                options.append(f"--{name}-prefix={value}")
            case "key":
                options.append(f"--key={value}")
            case "escaped" | "strict" | "self_closing" | "in_reasoning":
                options.append("--" + name.replace("_", "-"))
            case "anywhere":
                options.append("--markers=anywhere")
            case "reasoning":
                options += ["--reasoning", *value]
            case _:
                return None
    return options


@pytest.mark.parametrize("case", examples("read"))
def test_examples_of_the_specification(case: dict[str, Any]) -> None:
    text, dialect = case["input"], dialect_of(case["dialect"])
    events = check_splits(text, dialect)
    check_spans(text, events)
    if "events" in case:
        wanted = {event["type"] for event in case["events"]}
        found = in_conformance(text, events)
        if "ignored" not in wanted:
            found = [event for event in found if event["type"] != "ignored"]
        assert found == case["events"]


@pytest.mark.parametrize("case", examples("read"))
def test_events_are_those_of_the_command(case: dict[str, Any], command: str) -> None:
    options = options_of(case["dialect"])
    if options is None:
        pytest.skip("the command has no option for this dialect")
    text, dialect = case["input"], dialect_of(case["dialect"])

    def run(*more: str) -> str:
        arguments = [command, "parse", *options, *more]
        output: bytes = subprocess.run(arguments, input=text.encode(), capture_output=True, check=True).stdout
        return output.decode()

    events = [json.loads(line) for line in run("--events").splitlines()]
    assert in_lines(read([text], dialect)) == events
    assert json.loads(pc.parse(text, dialect).to_json()) == json.loads(run("--format=json"))


def transcripts() -> list[Any]:
    files = sorted((ROOT / "examples/transcripts").rglob("*.txt"))
    return [pytest.param(file.read_text("utf-8"), id=file.stem) for file in files]


@pytest.mark.parametrize("text", transcripts())
def test_transcripts(text: str) -> None:
    for dialect in (pc.Dialect.auto(), pc.Dialect.block(escaped=True), pc.Dialect.emoji()):
        check_spans(text, check_splits(text, dialect))


PIECES = st.sampled_from(
    [
        "!!!GADGET_START:",
        "!!!GADGET_END",
        "!!!ARG:",
        "🛠️[",
        "🛠️[/end]",
        "]",
        "\n",
        "\r\n",
        " ",
        "\\",
        "a:b",
        "<think>",
        "</think>",
    ]
)
TEXTS = st.lists(st.one_of(PIECES, st.text(max_size=6)), max_size=20).map("".join)
DIALECTS = st.sampled_from(
    [
        pc.Dialect.auto(),
        pc.Dialect.block(),
        pc.Dialect.block(escaped=True, reasoning=pc.Dialect.THINK),
        pc.Dialect.emoji(self_closing=True),
        pc.Dialect.auto(leading_reasoning=pc.Dialect.THINK),
    ]
)


@settings(deadline=None)
@given(text=TEXTS, dialect=DIALECTS, cuts=st.lists(st.integers(0, 400), max_size=8))
def test_random_texts_and_splits(text: str, dialect: pc.Dialect, cuts: list[int]) -> None:
    data = text.encode()
    ends = sorted({min(cut, len(data)) for cut in cuts} | {len(data)})
    chunks = [data[start:end] for start, end in zip([0, *ends], ends, strict=False)]
    whole = read([text], dialect)
    assert merged(read(chunks, dialect)) == merged(whole)
    check_spans(text, whole)
    document = pc.parse(text, dialect)
    assert "".join(segment.source or "" for segment in document.segments) == text
    assert len(document.calls) == sum(isinstance(event, pc.CallStart) for event in whole)


@given(data=st.binary(max_size=60), cut=st.integers(0, 60))
def test_bytes_that_are_not_utf_8(data: bytes, cut: int) -> None:
    dialect = pc.Dialect.auto()
    whole = read([data], dialect)
    assert merged(read([data[:cut], data[cut:]], dialect)) == merged(whole)
    assert "".join(event.source for event in whole) == data.decode("utf-8", "replace")
    assert pc.parse(data).segments[-1].end == len(data) if data else not pc.parse(data).segments


def test_lone_surrogates_are_replaced() -> None:
    document = pc.parse("a\ud800b")
    assert document.text == "a\ufffd\ufffd\ufffdb"
    assert document.segments[0].end == 5


def test_long_texts_are_read_without_the_lock() -> None:
    call = "!!!GADGET_START:a\n!!!ARG:x\n1\n!!!GADGET_END\n"
    text = call * 3000
    assert len(text) > 64 << 10
    assert len(pc.parse(text).calls) == 3000
    assert sum(isinstance(event, pc.CallEnd) for event in read([text], pc.Dialect.block())) == 3000


def test_a_finished_parser_says_so() -> None:
    parser = pc.Parser()
    parser.finish()
    with pytest.raises(ValueError, match="create another one"):
        parser.feed("x")
    with pytest.raises(ValueError, match="create another one"):
        parser.finish()
    with pytest.raises(TypeError, match="expected str or bytes, found int"):
        pc.Parser().feed(5)  # type: ignore[arg-type]


def test_events_are_values() -> None:
    one, other = (pc.Parser().feed("text")[0] for _ in range(2))
    assert one == other and hash(one) == hash(other) and one is not other
    assert one != "text"
    assert repr(one) == "Text(text='text', start=0, end=4, source='text')"
    with pytest.raises(AttributeError):
        one.text = "other"  # type: ignore[misc, union-attr]


def test_errors_of_dialects() -> None:
    with pytest.raises(pc.DialectError, match="not both"):
        pc.Dialect.block(reasoning=pc.Dialect.THINK, leading_reasoning=pc.Dialect.THINK)
    with pytest.raises(pc.DialectError, match="not both"):
        pc.Dialect.block(reasoning=pc.Dialect.THINK, no_reasoning=True)
    with pytest.raises(pc.DialectError):
        pc.Dialect.block(start="")


@pytest.mark.parametrize("case", examples("near"))
def test_near_misses_of_the_specification(case: dict[str, Any]) -> None:
    found = pc.near_misses(case["input"], dialect_of(case["dialect"]))
    written = [{"written": one.source, "suggestion": one.suggestion} for one in found]
    data = case["input"].encode()
    assert [one.source for one in found] == [data[one.start : one.end].decode() for one in found]
    assert written == case["near"]


@pytest.mark.parametrize(
    ("dialect", "shown"),
    [
        (pc.Dialect.auto(), "Dialect.auto()"),
        (pc.Dialect.emoji(strict=True, no_reasoning=True), "Dialect.emoji(strict=True, no_reasoning=True)"),
        (
            pc.Dialect.block(
                start="<<<S:", key="k1", escaped=True, leading_reasoning=pc.Dialect.THINK, in_reasoning=True
            ),
            "Dialect.block(start='<<<S:', key=..., escaped=True, in_reasoning=True,"
            " leading_reasoning=('<think>', '</think>'))",
        ),
        (
            pc.Dialect.auto(
                end="<<<E", arg="<<<A:", markers_anywhere=True, self_closing=True, reasoning=("<a>", "</a>")
            ),
            "Dialect.auto(end='<<<E', arg='<<<A:', markers_anywhere=True, self_closing=True, reasoning=('<a>', '</a>'))",
        ),
    ],
)
def test_dialects_are_shown_and_pickled(dialect: pc.Dialect, shown: str) -> None:
    assert repr(dialect) == shown
    other = pickle.loads(pickle.dumps(dialect))
    assert other == dialect and repr(other) == shown
    assert copy.deepcopy(dialect) == dialect != pc.Dialect.block()
    if dialect.syntax is not None:
        assert repr(pc.Toolbox(dialect=dialect).dialect) == shown


def test_a_pickled_dialect_has_its_key() -> None:
    dialect = pickle.loads(pickle.dumps(pc.Dialect.block(key="k1")))
    text = "!!!GADGET_STARTk1:a\n!!!GADGET_ENDk1"
    assert pc.parse(text, dialect).calls[0].name == "a"
    assert not pc.parse(text, pc.Dialect.block()).calls
