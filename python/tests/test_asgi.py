"""The middleware in front of a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
import json
from typing import Any

import httpx2
import openai
import pytest
from scripted import CALL, DONE, INVALID, QUESTION, WEATHER, Model, stream_of
from test_transport import assert_headers, joined

from plaincall import asgi
from plaincall.asgi import Middleware

URL = "http://model.test/v1"


def client_of(app: Any) -> Any:
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app))
    return openai.AsyncOpenAI(base_url=URL, api_key="k", http_client=http, max_retries=0)


@pytest.mark.parametrize("replies", [[CALL], [INVALID, CALL]])
@pytest.mark.parametrize("stream", [False, True])
async def test_calls(replies: list[str], stream: bool) -> None:
    model = Model(*replies)
    client = client_of(Middleware(model.app))
    reply: Any = await client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER], stream=stream)
    if stream:
        _, name, arguments, finish = joined([chunk async for chunk in reply])
    else:
        [call] = reply.choices[0].message.tool_calls
        name, arguments, finish = call.function.name, call.function.arguments, reply.choices[0].finish_reason
    assert (name, json.loads(arguments), finish) == ("get_weather", {"city": "Paris", "days": 2}, "tool_calls")
    assert len(model.requests) == len(replies)


async def test_responses() -> None:
    model = Model(CALL)
    tool = {"type": "function", "strict": False, **WEATHER["function"]}
    reply = await client_of(Middleware(model.app)).responses.create(model="m", input="Hi", tools=[tool])
    assert any(item.type == "function_call" for item in reply.output)
    assert model.paths == ["/v1/chat/completions"]


async def test_errors() -> None:
    body = json.dumps({"error": {"message": "too many requests"}}).encode()
    client = client_of(Middleware(Model((429, body), (429, body)).app))
    for stream in (False, True):
        with pytest.raises(openai.RateLimitError, match="too many requests") as caught:
            await client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER], stream=stream)
        assert_headers(caught.value)
    with pytest.raises(openai.BadRequestError):
        await client.responses.create(model="m", input=5, tools=[])


async def test_requests_without_tools_are_unchanged() -> None:
    model = Model(CALL)
    reply = await client_of(Middleware(model.app)).chat.completions.create(model="m", messages=QUESTION)
    assert reply.choices[0].message.content == CALL


async def test_other_requests_are_passed_on() -> None:
    passed: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        passed.append(scope["type"])

    async def none(*_: Any) -> Any:
        return {}

    middleware = Middleware(app)
    await middleware({"type": "lifespan"}, none, none)
    await middleware({"type": "http", "method": "GET", "path": "/v1/models"}, none, none)
    assert passed == ["lifespan", "http"]


async def test_a_client_that_disconnects() -> None:
    model = Model("word " * 2000)
    request = json.dumps({"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": True}).encode()
    inputs: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    inputs.put_nowait({"type": "http.request", "body": request, "more_body": False})
    sent: list[dict[str, Any]] = []

    async def send(message: Any) -> None:
        sent.append(message)
        if len(sent) == 3:
            inputs.put_nowait({"type": "http.disconnect"})

    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    await Middleware(model.app)(scope, inputs.get, send)
    assert model.closed == 1
    assert model.sent < 20


def request_of(**more: Any) -> tuple[dict[str, Any], asyncio.Queue[dict[str, Any]]]:
    """Returns a scope, and the messages of the client."""
    request = json.dumps({"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": True}).encode()
    inputs: asyncio.Queue[dict[str, Any]] = asyncio.Queue()
    inputs.put_nowait({"type": "http.request", "body": request, "more_body": False})
    scope = {"type": "http", "method": "POST", "path": "/v1/chat/completions", "headers": []}
    return {**scope, **more}, inputs


@pytest.mark.parametrize("version, raises", [("2.3", False), ("2.4", True), ("2.10", True)])
async def test_an_app_that_writes_too_much(version: str, raises: bool) -> None:
    # An answer that cannot be read ends the reply, and the rest is not needed.
    raised: list[str] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        await send({"type": "http.response.body", "body": b"data: {not JSON}\n\n", "more_body": True})
        try:
            for _ in range(100):
                await send({"type": "http.response.body", "body": b"data: [DONE]\n\n", "more_body": True})
        except OSError as error:
            raised.append(str(error))
            raise RuntimeError("the client has gone") from error

    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope, inputs = request_of(asgi={"version": "3.0", "spec_version": version})
    await Middleware(app)(scope, inputs.get, send)
    assert raised == (["the answer is not needed any more"] if raises else [])
    assert sent[0]["status"] == 502


START: Any = {
    "type": "http.response.start",
    "status": 200,
    "headers": [(b"content-type", b"text/event-stream")],
}


def body_of(piece: bytes, more: bool = True) -> dict[str, Any]:
    return {"type": "http.response.body", "body": piece, "more_body": more}


async def response_of(app: Any, version: str = "2.4") -> list[Any]:
    """Returns the messages for a client of this app, which must end in time."""
    sent: list[Any] = []

    async def send(message: Any) -> None:
        sent.append(message)

    scope, inputs = request_of(asgi={"version": "3.0", "spec_version": version})
    await asyncio.wait_for(Middleware(app)(scope, inputs.get, send), 10)
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
    return sent


@pytest.mark.parametrize("version", ["2.3", "2.4"])
@pytest.mark.parametrize("piece", [b": ping" + b" " * 1000 + b"\n\n", b""], ids=["too much", "nothing"])
async def test_an_app_that_goes_on_after_the_end_of_a_reply(
    version: str, piece: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(asgi, "USAGE_WAIT", 60 if piece else 0.1)
    monkeypatch.setattr(asgi, "STOP_WAIT", 0.1)
    ended: list[str] = []
    pieces = 0

    async def app(scope: Any, receive: Any, send: Any) -> None:
        nonlocal pieces
        await receive()
        await send(START)
        try:
            for one in stream_of(CALL):
                if one != DONE:
                    await send(body_of(one))
            while True:
                await asyncio.sleep(0 if piece else 60)
                await send(body_of(piece))
                pieces += 1
        except BaseException as error:
            ended.append(type(error).__name__)
            raise

    sent = await response_of(app, version)
    text = b"".join(message.get("body", b"") for message in sent)
    assert b"get_weather" in text and text.endswith(DONE) and b"error" not in text
    assert not sent[-1]["more_body"] and sum(not message.get("more_body", True) for message in sent) == 1
    assert ended == ["OSError" if piece and version == "2.4" else "CancelledError"]
    assert version == "2.3" or pieces < 100


async def test_what_an_app_does_after_its_answer(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(asgi, "STOP_WAIT", 0.05)
    done: list[bool] = []

    def app_of(is_marked: bool) -> Any:
        async def app(scope: Any, receive: Any, send: Any) -> None:
            await receive()
            await send(START)
            for piece in stream_of(CALL):
                if is_marked or piece != DONE:
                    await send(body_of(piece))
            await send(body_of(b"", more=False))
            await asyncio.sleep(0.2)
            done.append(True)

        return app

    for is_marked in (False, True):
        sent = await response_of(app_of(is_marked))
        assert not sent[-1]["more_body"]
    assert done == [True, True]


async def test_an_error_of_the_app_after_the_end_of_a_reply() -> None:
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send(START)
        for piece in stream_of(CALL):
            if piece != DONE:
                await send(body_of(piece))
        raise RuntimeError("no usage")

    async def send(message: Any) -> None:
        sent.append(message)

    scope, inputs = request_of()
    with pytest.raises(RuntimeError, match="no usage"):
        await Middleware(app)(scope, inputs.get, send)
    text = b"".join(message.get("body", b"") for message in sent)
    assert b"get_weather" in text and text.endswith(DONE) and not sent[-1]["more_body"]


@pytest.mark.parametrize("stops", [False, True], ids=["no answer", "part of an answer"])
async def test_an_app_that_fails_in_a_repair_round(stops: bool) -> None:
    model = Model("!!!gadget_start:get_weather\n!!!gadget_end\n")
    sent: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        if model.replies:
            await model.app(scope, receive, send)
            return
        await receive()
        if stops:
            await send(START)
            await send(body_of(b": ping\n\n"))
        else:
            raise RuntimeError("no memory")

    async def send(message: Any) -> None:
        sent.append(message)

    scope, inputs = request_of()
    with contextlib.nullcontext() if stops else pytest.raises(RuntimeError, match="no memory"):
        await asyncio.wait_for(Middleware(app)(scope, inputs.get, send), 10)
    # The first reply is the answer.
    events = b"".join(message.get("body", b"") for message in sent).decode().split("\n\n")
    assert events[-2:] == ["data: [DONE]", ""] and not sent[-1]["more_body"]
    deltas = [json.loads(event[6:])["choices"][0]["delta"] for event in events[:-2]]
    assert "".join(delta.get("content") or "" for delta in deltas).startswith("!!!gadget_start:get_weather")


@pytest.mark.parametrize("stream", [False, True])
async def test_no_further_round_after_the_client_has_gone(stream: bool) -> None:
    model = Model(INVALID, CALL)
    request = json.dumps({"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": stream}).encode()
    _, inputs = request_of()
    inputs.get_nowait()
    inputs.put_nowait({"type": "http.request", "body": request, "more_body": False})

    async def app(scope: Any, receive: Any, send: Any) -> None:
        # It does not ask whether the client has gone.
        left = [await receive()]

        async def only() -> Any:
            return left.pop() if left else await asyncio.Event().wait()

        await model.app(scope, only, send)
        inputs.put_nowait({"type": "http.disconnect"})
        await asyncio.sleep(0.01)

    async def send(message: Any) -> None:
        pass

    scope, _ = request_of()
    await asyncio.wait_for(Middleware(app)(scope, inputs.get, send), 10)
    assert len(model.requests) == 1


async def test_errors_of_the_app_are_raised() -> None:
    async def app(scope: Any, receive: Any, send: Any) -> None:
        raise RuntimeError("no model")

    async def send(message: Any) -> None:
        raise AssertionError

    scope, inputs = request_of(asgi={"version": "3.0", "spec_version": "2.4"})
    with pytest.raises(RuntimeError, match="no model"):
        await Middleware(app)(scope, inputs.get, send)


@pytest.mark.parametrize(
    "path, raw_path, query, target",
    [
        ("/a/b/v1/chat/completions/", b"/a%2Fb/v1/chat/completions/", b"x=1", (b"/a%2Fb/v1/chat/completions", b"x=1")),
        ("/a b/v1/chat/completions/", None, b"x=1", (b"/a%20b/v1/chat/completions", b"x=1")),
    ],
)
async def test_the_path_keeps_its_encoding(path: str, raw_path: bytes | None, query: bytes, target: Any) -> None:
    seen: list[Any] = []

    async def app(scope: Any, receive: Any, send: Any) -> None:
        seen.append((scope["raw_path"], scope["query_string"]))

    async def send(message: Any) -> None:
        pass

    more = {} if raw_path is None else {"raw_path": raw_path}
    scope, inputs = request_of(path=path, query_string=query, **more)
    await Middleware(app)(scope, inputs.get, send)
    assert seen == [target]


@pytest.mark.parametrize("path", ["/v1/chat/completions", "/v1/messages"])
async def test_a_stream_without_output_is_kept_open(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("plaincall.asgi.KEEP_ALIVE", 0.02)

    async def app(scope: Any, receive: Any, send: Any) -> None:
        await receive()
        await send({"type": "http.response.start", "status": 200, "headers": [(b"content-type", b"text/event-stream")]})
        for piece in stream_of(CALL):
            # The text before the call is output; a call is held back until it is complete.
            await asyncio.sleep(0.005)
            await send({"type": "http.response.body", "body": piece, "more_body": True})
        await send({"type": "http.response.body", "body": b"", "more_body": False})

    tool = {"name": "get_weather", "input_schema": WEATHER["function"]["parameters"]}
    tools = [tool] if path == "/v1/messages" else [WEATHER]
    request = {"model": "m", "messages": QUESTION, "tools": tools, "stream": True, "max_tokens": 9}
    client = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=Middleware(app)))
    response = await client.post(f"http://model.test{path}", json=request)
    events = response.text.split("\n\n")
    assert events[-1] == "" and "get_weather" in response.text
    if path == "/v1/messages":
        # The first one follows the start of the message.
        assert sum(event.startswith("event: ping") for event in events) > 1
    else:
        chunks = [json.loads(event[6:]) for event in events if event.startswith("data: {")]
        assert any(chunk["choices"] and chunk["choices"][0]["delta"] == {} for chunk in chunks[:-2])
    assert not [task for task in asyncio.all_tasks() if task is not asyncio.current_task()]
