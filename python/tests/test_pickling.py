"""Objects that leave their process."""

from __future__ import annotations

import asyncio
import copy
import datetime
import multiprocessing
import pickle
from typing import Any

import pytest
from scripted import CALL, INVALID, WEATHER

import plaincall as pc

EMOJI = "🛠️[save notes.md]\n# Notes\n🛠️[/end]"
TEXT = f"<think>!!!GADGET_START:no</think>Text.\n{CALL}{INVALID}!!!GADGET_START:a:b:c\n!!!ARG:x/1\n5\n!!!GADGET_END\n"
PROTOCOLS = range(2, pickle.HIGHEST_PROTOCOL + 1)
DIALECT = pc.Dialect.block(leading_reasoning=pc.Dialect.THINK)


def attributes(value: Any) -> Any:
    """Returns a call as its attributes, which can be compared."""
    if not isinstance(value, pc.Call):
        return value
    names = [name for name in dir(value) if not name.startswith("_")]
    assert len(names) == 19
    return [getattr(value, name) for name in names]


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_events(protocol: int) -> None:
    events = [*pc.events([TEXT], DIALECT), *pc.events([EMOJI]), *pc.events(["<think>"], DIALECT)]
    events.append(pc.Ignored("x", 1, 2, "x"))
    assert {type(event).__name__ for event in events} == {
        *("Text", "Reasoning", "CallStart", "ValueStart", "ValueDelta", "ValueEnd", "CallEnd", "Ignored", "Diagnostic")
    }
    copied = pickle.loads(pickle.dumps(events, protocol))
    assert copied == events
    assert [hash(event) for event in copied] == [hash(event) for event in events]
    assert copy.deepcopy(events) == events


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_calls(protocol: int) -> None:
    tools = pc.Toolbox([WEATHER], dialect=DIALECT)
    calls = [*tools.parse(TEXT, stop="natural").calls, *pc.parse(TEXT, DIALECT).calls, *pc.parse(EMOJI).calls]
    copied = pickle.loads(pickle.dumps(calls, protocol))
    assert [attributes(call) for call in copied] == [attributes(call) for call in calls]
    assert {call.may_run for call in copied} == {True, False}
    assert repr(copied) == repr(calls)


def parsed(text: str) -> Any:
    document = pc.parse(text, DIALECT)
    return document.segments, document.calls, document.diagnostics


def test_a_worker_process_returns_calls() -> None:
    with multiprocessing.get_context("spawn").Pool(1) as pool:
        found = pool.map(parsed, [TEXT])[0]
    for given, expected in zip(found, parsed(TEXT), strict=True):
        assert [attributes(one) for one in given] == [attributes(one) for one in expected]


@pc.tool(effect="read")
def decorated(path: str) -> str:
    """A tool that its module has instead of the function."""
    return path


def plain(day: datetime.date, city: str = "Paris") -> str:
    return f"{city} {day:%d}"


TOOLS = pc.Toolbox([decorated, plain, {"name": "defined"}], effects={"defined": "read"}, unclosed="run")


@pytest.mark.parametrize("protocol", PROTOCOLS)
def test_documents_and_toolboxes(protocol: int) -> None:
    text = (
        "Text.\n!!!GADGET_START:plain\n!!!ARG:day\n2026-11-29\n!!!GADGET_END\n!!!GADGET_START:decorated\n!!!ARG:path\na"
    )
    read = [
        pc.parse(text, DIALECT, stop="stop"),
        pc.parse(bytearray(TEXT.encode() + b"\xff")),
        TOOLS.parse(text, stop="end_turn"),
        TOOLS.parse("!!!GADGET_STRT:plain"),
    ]
    tools, copied = pickle.loads(pickle.dumps((TOOLS, read), protocol))
    assert copied == read and repr(copied) == repr(read)
    assert [hash(one) for one in copied] == [hash(one) for one in read]
    assert [one.to_json() for one in copied] == [one.to_json() for one in read]
    assert [tools.repair(one) for one in copied] == [TOOLS.repair(one) for one in read]
    assert tools.repair(copied[3]) is not None
    assert (dict(tools), tools.prompt()) == (dict(TOOLS), TOOLS.prompt())
    assert [one.effect for one in tools.values()] == ["read", "write", "read"]
    assert tools["decorated"] is decorated
    results = asyncio.run(pc.execute(tools, copied[2].calls))
    assert [one.output for one in results] == ["Paris 29", "a"]


def test_what_is_equal() -> None:
    one, other = pc.parse(TEXT), pc.parse(TEXT)
    assert (
        one == other
        and one.calls == other.calls
        and len({one, other}) == 1
        and len({*one.calls, *other.calls}) == len(one.calls)
    )
    assert one != pc.parse(TEXT + "x") and one.calls[0] != one.calls[1] and one != TEXT and one.calls[0] != "x"
    assert pc.parse(TEXT).calls[0] != pc.Toolbox([WEATHER]).parse(TEXT).calls[0]
    for value in (one, one.calls[0], pc.Dialect.auto(), TOOLS["plain"]):
        assert copy.copy(value) == value and copy.deepcopy(value) == value
    dialects = {pc.Dialect.block(): 1, pc.Dialect.block(start="!!!GADGET_START:"): 2, pc.Dialect.block(key="k"): 3}
    assert dialects == {pc.Dialect.block(): 2, pc.Dialect.block(key="k"): 3}
