"""The package decides about the calls of replies as a run does.

`replies.json` has the replies, what a run does with their calls, and what the package does otherwise.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import plaincall as pc

FILE: dict[str, Any] = json.loads((Path(__file__).parents[2] / "testing/decisions/replies.json").read_text("utf-8"))
#: What a way of reading does with the calls of a reply: decision, reason and arguments.
Decisions = list[tuple[str, "str | None", Any]]


def function(**arguments: Any) -> str:
    """A tool that returns its arguments."""
    return json.dumps(arguments)


def toolbox(syntax: str) -> pc.Toolbox:
    """Returns the tools of the replies."""
    functions = [one["function"] for one in FILE["tools"]]
    tools = [pc.Tool(one["name"], "", one["parameters"], function=function) for one in functions]
    dialect = getattr(pc.Dialect, syntax)(escaped=True)
    return pc.Toolbox(tools, dialect=dialect, effects=FILE["effects"])


BOXES = {syntax: toolbox(syntax) for syntax in ("block", "emoji")}


def of_calls(calls: Any) -> Decisions:
    """Returns the decisions about calls that were read."""

    def of_call(call: pc.Call) -> tuple[str, str | None, Any]:
        if call.rejection is not None:
            return "rejected", call.rejection, None
        assert call.may_run == (call.held is None)
        return ("runs" if call.may_run else "held"), call.held, call.arguments

    return [of_call(call) for call in calls]


def document(reply: dict[str, Any]) -> Decisions:
    """Reads a complete reply."""
    return of_calls(BOXES[reply["syntax"]].parse(reply["text"], stop=reply["stop"]).calls)


def reader(reply: dict[str, Any]) -> Decisions:
    """Reads a reply in pieces."""
    reader = BOXES[reply["syntax"]].reader()
    text = reply["text"]
    items = [item for at in range(0, len(text), 5) for item in reader.feed(text[at : at + 5])]
    items += reader.finish(stop=reply["stop"])
    return of_calls(item for item in items if isinstance(item, pc.Call))


async def executed(reply: dict[str, Any], approve: Callable[[pc.Call], bool] | None) -> Decisions:
    """Calls the functions of a complete reply."""
    box = BOXES[reply["syntax"]]
    calls = box.parse(reply["text"], stop=reply["stop"]).calls
    results = await pc.execute(box, calls, approve=approve)
    decisions: Decisions = []
    for call, result in zip(calls, results, strict=True):
        arguments = None if result.output is None else json.loads(result.output)
        if result.status == "ok":
            decisions.append(("runs" if call.held is None else "held", call.held, arguments))
        else:
            decisions.append((str(result.status), result.error, arguments))
    return decisions


def expected(reply: dict[str, Any]) -> Decisions:
    """Returns what a run does."""
    return [(call["decision"], call["reason"], call["arguments"]) for call in reply["calls"]]


def check(by: str, found: list[Decisions]) -> None:
    """Compares decisions with those of a run. Each difference is known, and each known difference is found."""
    known = {one["rule"] for one in FILE["differences"] if one["by"] == by}
    different = set()
    for reply, decisions in zip(FILE["replies"], found, strict=True):
        assert len(decisions) == len(reply["calls"]), reply
        for call, one, other in zip(reply["calls"], expected(reply), decisions, strict=True):
            if one != other:
                assert call["rule"] in known, f"{reply['text']}\na run: {one}\n{by}: {other}"
                different.add(call["rule"])
    assert different == known, f"{by} agrees by now about {known - different}"


def test_documents_decide_as_a_run() -> None:
    check("document", [document(reply) for reply in FILE["replies"]])


def test_readers_decide_as_a_run() -> None:
    check("reader", [reader(reply) for reply in FILE["replies"]])


async def test_execute_decides_as_a_run() -> None:
    check("planned", [await executed(reply, lambda _: True) for reply in FILE["replies"]])


async def test_execute_runs_no_held_call_without_approval() -> None:
    held = 0
    for reply in FILE["replies"]:
        box = BOXES[reply["syntax"]]
        calls = box.parse(reply["text"], stop=reply["stop"]).calls
        for call, result in zip(calls, await pc.execute(box, calls), strict=True):
            assert (result.status == "ok") == call.may_run
            held += call.held is not None
    assert held > 0


@pytest.mark.parametrize("decision", ["runs", "held", "rejected"])
def test_the_replies_have_each_decision(decision: str) -> None:
    assert any(call["decision"] == decision for reply in FILE["replies"] for call in reply["calls"])
