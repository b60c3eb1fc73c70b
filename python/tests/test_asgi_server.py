"""The middleware in a real server: Starlette on uvicorn."""

from __future__ import annotations

import asyncio
import json
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import httpx2
import uvicorn
from scripted import CALL, QUESTION, WEATHER, Model, stream_of
from starlette.applications import Starlette
from starlette.middleware import Middleware as Entry
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from plaincall.asgi import Middleware

REQUEST = {"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": True}


class Served:
    """A model that writes a word every few milliseconds, without an end, or its script."""

    def __init__(self, script: str | None) -> None:
        self.script = script
        self.written = 0
        self.is_closed = asyncio.Event()

    async def chat(self, request: Request) -> StreamingResponse:
        assert "tools" not in await request.json()
        return StreamingResponse(self.reply(), media_type="text/event-stream")

    async def reply(self) -> AsyncIterator[bytes]:
        pieces = stream_of(self.script or "word " * 100_000)
        try:
            for piece in pieces:
                await asyncio.sleep(0.002)
                self.written += 1
                yield piece
        finally:
            self.is_closed.set()


@asynccontextmanager
async def served(model: Served) -> AsyncIterator[str]:
    app = Starlette(
        routes=[Route("/v1/chat/completions", model.chat, methods=["POST"])],
        middleware=[Entry(Middleware)],
    )
    listening = socket.create_server(("127.0.0.1", 0))
    server = uvicorn.Server(uvicorn.Config(app, log_level="error", lifespan="off"))
    task = asyncio.create_task(server.serve(sockets=[listening]))
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/v1/chat/completions"
    finally:
        server.should_exit = True
        await task
        listening.close()


async def test_a_stream() -> None:
    model = Served(CALL)
    client = httpx2.AsyncClient()
    async with served(model) as url, client, client.stream("POST", url, json=REQUEST) as response:
        chunks = response.aiter_text()
        first = await anext(chunks)
        assert not model.is_closed.is_set()
        text = first + "".join([chunk async for chunk in chunks])
    assert response.headers["content-type"] == "text/event-stream"
    assert text.rstrip().endswith("[DONE]")
    events = [json.loads(line[6:]) for line in text.splitlines() if line.startswith("data: {")]
    deltas: list[Any] = [event["choices"][0]["delta"] for event in events if event["choices"]]
    calls = [call["function"] for delta in deltas for call in delta.get("tool_calls", [])]
    assert json.loads("".join(call.get("arguments", "") for call in calls)) == {"city": "Paris", "days": 2}


async def test_a_client_that_disconnects() -> None:
    model = Served(None)
    async with served(model) as url, httpx2.AsyncClient() as client:
        async with client.stream("POST", url, json=REQUEST) as response:
            await anext(response.aiter_bytes())
        await asyncio.wait_for(model.is_closed.wait(), 10)
    assert model.written < 2000


async def test_calls_after_one_another() -> None:
    model = Model(CALL, CALL)

    async def chat(request: Request) -> StreamingResponse:
        _, kind, pieces = model.answer(request.url.path, dict(request.headers), await request.body())
        return StreamingResponse(pieces, media_type=kind)

    served_model = Served(None)
    served_model.chat = chat  # type: ignore[method-assign]
    async with served(served_model) as url, httpx2.AsyncClient() as client:
        for _ in range(2):
            reply = (await client.post(url, json={**REQUEST, "stream": False})).json()
            assert reply["choices"][0]["message"]["tool_calls"][0]["function"]["name"] == "get_weather"
