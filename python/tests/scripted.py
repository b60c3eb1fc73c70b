"""A scripted model, as a transport of httpx and httpx2 and as an ASGI app."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from typing import Any

WEATHER: Any = {
    "type": "function",
    "function": {
        "name": "get_weather",
        "description": "Gets the weather.",
        "parameters": {
            "type": "object",
            "properties": {"city": {"type": "string"}, "days": {"type": "integer"}},
            "required": ["city"],
        },
    },
}
CALL = "I look.\n!!!GADGET_START:get_weather\n!!!ARG:city\nParis\n!!!ARG:days\n2\n!!!GADGET_END\n"
INVALID = "!!!GADGET_START:get_weather\n!!!ARG:city\nParis\n!!!ARG:days\ntwo\n!!!GADGET_END\n"
OTHER_TEXTS = [INVALID, CALL[:-14], "No call, but !!!GADGET", f"<think>So:\n{CALL}</think>\nNo.\n", ""]
"""Replies without a call that runs."""
DONE = b"data: [DONE]\n\n"
QUESTION: Any = [{"role": "user", "content": "The weather in Paris?"}]


def pieces_of(text: str, size: int = 7) -> list[str]:
    return [text[at : at + size] for at in range(0, len(text), size)]


def event(data: dict[str, Any]) -> bytes:
    return f"data: {json.dumps(data)}\n\n".encode()


def stream_of(text: str, finish: str = "stop") -> Iterator[bytes]:
    """Yields the events of a streamed reply."""
    head = {"id": "1", "object": "chat.completion.chunk", "created": 1, "model": "m"}
    for piece in pieces_of(text):
        yield event(
            {**head, "choices": [{"index": 0, "delta": {"role": "assistant", "content": piece}, "finish_reason": None}]}
        )
    yield event({**head, "choices": [{"index": 0, "delta": {}, "finish_reason": finish}]})
    yield DONE


def completion_of(text: str, finish: str = "stop") -> bytes:
    """Returns a complete reply."""
    message = {"role": "assistant", "content": text}
    usage = {"prompt_tokens": 5, "completion_tokens": 7, "total_tokens": 12}
    choices = [{"index": 0, "message": message, "finish_reason": finish}]
    reply = {"id": "1", "object": "chat.completion", "created": 1, "model": "m", "choices": choices, "usage": usage}
    return json.dumps(reply).encode()


def headers_of(status: int, content_type: str) -> dict[str, str]:
    """Returns the headers of an answer. Errors have a retry delay and a limit."""
    headers = {"content-type": content_type, "x-request-id": "r1"}
    if status >= 400:
        headers.update({"retry-after": "7", "x-ratelimit-remaining-requests": "0", "content-length": "999"})
    return headers


class Model:
    """Answers each request with the next reply, and checks that it is plain text. A reply is a text, or a status and a body."""

    def __init__(self, *replies: str | tuple[int, bytes], native: bool = False, stall: float = 0.0) -> None:
        """`stall` is how long a coroutine waits after the end of a streamed reply, in seconds."""
        self.replies = list(replies)
        self.native = native
        self.stall = stall
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.headers: list[dict[str, str]] = []
        self.sent = 0
        self.closed = 0

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, Iterator[bytes]]:
        request = json.loads(body)
        assert path.endswith("/chat/completions"), path
        assert self.native or ("tools" not in request and "functions" not in request)
        self.requests.append(request)
        self.paths.append(path)
        self.headers.append(headers)
        reply = self.replies.pop(0)
        if isinstance(reply, tuple):
            return reply[0], "application/json", iter([reply[1]])
        if request.get("stream"):
            return 200, "text/event-stream", stream_of(reply)
        return 200, "application/json", iter([completion_of(reply)])

    def sync_transport(self, http: Any) -> Any:
        model = self

        class Stream(http.SyncByteStream):  # type: ignore[misc]
            def __init__(self, pieces: Iterator[bytes]) -> None:
                self.pieces = pieces

            def __iter__(self) -> Iterator[bytes]:
                for piece in self.pieces:
                    model.sent += 1
                    yield piece

            def close(self) -> None:
                model.closed += 1

        class Inner(http.BaseTransport):  # type: ignore[misc]
            def handle_request(self, request: Any) -> Any:
                headers = dict(request.headers)
                status, content_type, pieces = model.answer(request.url.path, headers, request.read())
                return http.Response(status, headers=headers_of(status, content_type), stream=Stream(pieces))

        return Inner()

    def async_transport(self, http: Any) -> Any:
        model = self

        class Stream(http.AsyncByteStream):  # type: ignore[misc]
            def __init__(self, pieces: Iterator[bytes]) -> None:
                self.pieces = pieces

            async def __aiter__(self) -> AsyncIterator[bytes]:
                for piece in self.pieces:
                    await asyncio.sleep(model.stall if piece == DONE else 0)
                    model.sent += 1
                    yield piece

            async def aclose(self) -> None:
                model.closed += 1

        class Inner(http.AsyncBaseTransport):  # type: ignore[misc]
            async def handle_async_request(self, request: Any) -> Any:
                headers = dict(request.headers)
                status, content_type, pieces = model.answer(request.url.path, headers, await request.aread())
                return http.Response(status, headers=headers_of(status, content_type), stream=Stream(pieces))

        return Inner()

    async def app(self, scope: Any, receive: Any, send: Any) -> None:
        """The model as an ASGI app."""
        body = b""
        while True:
            message = await receive()
            body += message["body"]
            if not message["more_body"]:
                break
        headers = {name.decode(): value.decode() for name, value in scope["headers"]}
        assert headers["content-length"] == str(len(body))
        status, content_type, pieces = self.answer(scope["path"], headers, body)
        sent = [(name.encode(), value.encode()) for name, value in headers_of(status, content_type).items()]
        await send({"type": "http.response.start", "status": status, "headers": sent})
        gone = asyncio.ensure_future(receive())
        try:
            for piece in pieces:
                await asyncio.sleep(0)
                if gone.done():
                    assert gone.result()["type"] == "http.disconnect"
                    self.closed += 1
                    return
                self.sent += 1
                await send({"type": "http.response.body", "body": piece, "more_body": True})
            await send({"type": "http.response.body", "body": b"", "more_body": False})
        finally:
            gone.cancel()
