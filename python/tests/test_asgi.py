"""The middleware in front of a scripted model."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx2
import openai
import pytest
from scripted import CALL, INVALID, QUESTION, WEATHER, Model
from test_transport import joined

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
        with pytest.raises(openai.RateLimitError, match="too many requests"):
            await client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER], stream=stream)
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
