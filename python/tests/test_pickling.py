"""Objects that leave their process."""

from __future__ import annotations

import copy
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
    assert len(names) == 18
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


def test_a_document_states_what_to_pickle() -> None:
    with pytest.raises(TypeError, match="pickle its `calls`, `segments` or `diagnostics`, or `to_json\\(\\)`"):
        pickle.dumps(pc.parse(TEXT))
