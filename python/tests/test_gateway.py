"""The translation as bytes."""

from __future__ import annotations

import json
from typing import Any

from scripted import CALL, INVALID, QUESTION, WEATHER, completion_of

from plaincall import gateway

REQUEST = {"model": "m", "messages": QUESTION, "tools": [WEATHER]}


def asked_of(path: str, **more: Any) -> Any:
    adapter = gateway.Adapter(b"s" * 32)
    return adapter.ask(path, json.dumps({**REQUEST, **more}).encode(), b"r" * 32, 1)


def test_a_correction() -> None:
    asked = asked_of("/v1/chat/completions")
    assert isinstance(asked, gateway.Asked)
    assert (asked.target, asked.is_streamed) == ("/v1/chat/completions", False)
    replies, reply, more = [INVALID, CALL], b"", object()
    bodies: list[Any] = []
    while replies:
        bodies.append(json.loads(asked.body))
        asked.begin_answer(200, [("content-type", "application/json")])
        piece, flow = asked.feed(completion_of(replies.pop(0)))
        assert (piece, flow) == (b"", gateway.READ_ON)
        piece, more = asked.end()
        assert (more is True) == bool(replies)
        reply += piece
    assert json.loads(reply)["choices"][0]["finish_reason"] == "tool_calls"
    assert len(bodies[1]["messages"]) > len(bodies[0]["messages"])


def test_other_requests() -> None:
    assert gateway.Adapter.translates("POST", "/v1/messages") and not gateway.Adapter.translates("GET", "/v1/messages")
    # Nothing about tools is sent, and the answer is forwarded.
    sent = asked_of("/v1/chat/completions", tools=[])
    assert isinstance(sent, bytes) and "tools" not in json.loads(sent)
    rejected = asked_of("/v1/chat/completions", tools=5)
    assert isinstance(rejected, gateway.ErrorResponse) and rejected.status == 400
    assert repr(rejected) == f"ErrorResponse(status=400, body={rejected.body!r})"
    assert repr(gateway.Adapter(b"s" * 32, model="m", temperature=0.5)) == "Adapter(model, temperature)"
    assert isinstance(asked_of("/v1/messages/count_tokens", tools=[]), gateway.TokenCount)
    for one in (gateway.Adapter, gateway.Asked, gateway.TokenCount, gateway.ErrorResponse):
        assert one.__module__ == "plaincall.gateway" and one.__doc__
