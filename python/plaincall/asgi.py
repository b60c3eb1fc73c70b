"""Native tool calls in a model server in Python: `vllm serve MODEL --middleware plaincall.asgi.Middleware`."""

from __future__ import annotations

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable, MutableMapping
from typing import TYPE_CHECKING, Any
from urllib.parse import quote, unquote

from plaincall._gateway import (
    STOP,
    USAGE_ONLY,
    Settings,
    new_adapter,
    translate,
)
from plaincall._plaincall import USAGE_WAIT, Asked, ErrorResponse, TokenCount

if TYPE_CHECKING:
    from typing_extensions import Unpack

Scope = MutableMapping[str, Any]
Message = MutableMapping[str, Any]
Receive = Callable[[], Awaitable[Message]]
Send = Callable[[Message], Awaitable[None]]
App = Callable[[Scope, Receive, Send], Awaitable[None]]

__all__ = ["Middleware", "Settings"]

KEEP_ALIVE = 15.0
"""A stream without output gets something that keeps it open after this time, in seconds."""
STOP_WAIT = 1.0
"""An app whose answer is not needed any more is cancelled after this time, in seconds."""


class Middleware:
    """Translates requests with tools to plain text, and replies back while they arrive. It passes on all others.

    The app needs `/chat/completions` only. To change settings where a server takes only a name, make a subclass. It needs
    asyncio.

    Raises `ValueError` for invalid settings.
    """

    def __init__(self, app: App, **settings: Unpack[Settings]) -> None:
        self.app = app
        self._adapter = new_adapter(settings)

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Handles a request. Servers call it."""
        if scope["type"] != "http":
            return await self.app(scope, receive, send)
        headers = _decoded(scope.get("headers", []))
        target = _target(scope)
        if not self._adapter.translates(scope["method"], target):
            return await self.app(scope, receive, send)
        body = await _body(receive)
        if body is None:
            return None
        asked = translate(self._adapter, target, body)
        if asked is None or isinstance(asked, bytes):
            body = body if asked is None else asked
            scope = {**scope, "headers": _encoded([*self._adapter.upstream_headers(headers, False), _length(body)])}
            return await self.app(scope, _passed_on(body, receive), send)
        if isinstance(asked, ErrorResponse):
            return await _send_response(send, asked)
        headers = self._adapter.upstream_headers(headers, True)
        client = _Client(receive)
        tasks = [asyncio.create_task(client.watch())]
        try:
            if isinstance(asked, TokenCount):
                return await self._count(scope, headers, client, send, asked)
            exchange = _Exchange(self.app, asked, client, send)
            if asked.is_streamed:
                tasks.append(asyncio.create_task(exchange.keep_alive()))
            return await exchange.run(scope, headers)
        finally:
            for task in tasks:
                task.cancel()
            await asyncio.wait(tasks)

    async def _count(
        self, scope: Scope, headers: list[tuple[str, str]], client: _Client, send: Send, count: TokenCount
    ) -> None:
        """Asks the app for a number of tokens. If it cannot count them, the number is an estimate."""
        while not client.gone.is_set() and (asked := count.request) is not None:
            answer = _Answer(asked[1], client)
            await self.app(_app_scope(scope, headers, *asked), answer.input, answer.take)
            if not (answer.is_complete and 200 <= answer.status < 300):
                break
            count.feed(b"".join(answer.body))
            count.end()
        await _send_response(send, count.response)


class _Client:
    """Watches whether the client has disconnected."""

    def __init__(self, receive: Receive) -> None:
        self.receive = receive
        self.gone = asyncio.Event()

    async def watch(self) -> None:
        """Reads the messages after the body of the request, of which there should be one."""
        with contextlib.suppress(Exception):
            while (await self.receive())["type"] != "http.disconnect":
                await asyncio.sleep(0)
        self.gone.set()


class _Input:
    """The messages for the app: the body, then a disconnect once the client has gone or the app's answer is not needed any more."""

    def __init__(self, body: bytes, client: _Client) -> None:
        self.body: bytes | None = body
        self.client = client
        self.stopped = asyncio.Event()

    async def __call__(self) -> Message:
        if self.body is not None:
            body, self.body = self.body, None
            return {"type": "http.request", "body": body, "more_body": False}
        waiting = [asyncio.ensure_future(one.wait()) for one in (self.client.gone, self.stopped)]
        try:
            await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for one in waiting:
                one.cancel()
        return {"type": "http.disconnect"}


class _Answer:
    """An answer of the app that is read as a whole."""

    def __init__(self, request: bytes, client: _Client) -> None:
        self.input = _Input(request, client)
        self.status = 0
        self.body: list[bytes] = []
        self.is_complete = False

    async def take(self, message: Message) -> None:
        """Takes a message of the app."""
        if message["type"] == "http.response.start":
            self.status = message["status"]
        elif message["type"] == "http.response.body":
            self.body.append(message.get("body", b""))
            if not message.get("more_body", False):
                self.is_complete = True
                self.input.stopped.set()


class _Exchange:
    """A translated request, and its repair rounds."""

    def __init__(self, app: App, asked: Asked, client: _Client, send: Send) -> None:
        self.app = app
        self.asked = asked
        self.client = client
        self.send = send
        self.started = False
        self.is_complete = False
        # The time of the last output.
        self.last = time.monotonic()
        # Nothing that keeps the stream open comes between reading a chunk and sending its piece.
        self.lock = asyncio.Lock()
        # The pieces of a response that is not streamed.
        self.body: list[bytes] = []
        self.next: object = None

    async def run(self, scope: Scope, headers: list[tuple[str, str]]) -> None:
        asked = self.asked
        # From version 2.4 on, apps expect this instead of a message.
        self.raises = _spec_version(scope) >= (2, 4)
        while True:
            self.has_ended = False
            self.was_stopped = False
            self.is_answered = False
            self.flow = 0
            # The answer has ended, or its usage does not come in time.
            self.over = asyncio.Event()
            self.timer: asyncio.TimerHandle | None = None
            self.input = _Input(asked.body, self.client)
            await self._round(_app_scope(scope, headers, asked.target, asked.body))
            if self.is_complete or self.client.gone.is_set():
                return

    async def _round(self, scope: Scope) -> None:
        """Sends a request to the app. If no other follows, the client gets the rest of the response."""
        running = asyncio.ensure_future(self.app(scope, self.input, self._take))
        over = asyncio.ensure_future(self.over.wait())
        is_cancelled = False
        try:
            await asyncio.wait([running, over], return_when=asyncio.FIRST_COMPLETED)
            async with self.lock:
                if not self.has_ended:
                    reason = "the model server's answer is incomplete"
                    ended = self.asked.connection_error(reason)
                    # An app that is stopped may raise an exception of its own.
                    if ended is None and running.done() and not self.was_stopped:
                        running.result()
                    await self._end(*(ended or self.asked.end(reason)))
                if self.next is not True and not self.client.gone.is_set():
                    self.is_complete = True
                    await self._finish()
            if not self.is_answered:
                await asyncio.wait([running], timeout=STOP_WAIT)
            # After its answer, an app may have more to do.
            if self.is_answered:
                await asyncio.wait([running])
            is_cancelled = not running.done()
        finally:
            for one in (over, running, self.timer):
                if one is not None:
                    one.cancel()
            await asyncio.wait([over, running])
        if not is_cancelled and not self.was_stopped:
            running.result()

    async def _finish(self) -> None:
        if isinstance(self.next, ErrorResponse):
            if not self.started:
                return await _send_response(self.send, self.next)
        elif not self.asked.is_streamed:
            await self._start()
            await self.send({"type": "http.response.body", "body": b"".join(self.body), "more_body": False})
            return None
        await self.send({"type": "http.response.body", "body": b"", "more_body": False})

    async def keep_alive(self) -> None:
        """Keeps a stream open while it has no output: the API's own event, or a comment. It ends with the client."""
        # If the client has gone, the exchange gets the same exception.
        with contextlib.suppress(Exception):
            while not self.is_complete:
                await asyncio.sleep(max(self.last + KEEP_ALIVE - time.monotonic(), KEEP_ALIVE / 100))
                async with self.lock:
                    is_idle = time.monotonic() - self.last >= KEEP_ALIVE
                    if is_idle and not self.is_complete and (piece := self.asked.keep_alive()):
                        await self._emit(piece)

    async def _take(self, message: Message) -> None:
        """Takes a message of the app."""
        async with self.lock:
            await self._taken(message)

    async def _taken(self, message: Message) -> None:
        if self.has_ended or self.client.gone.is_set():
            if message["type"] == "http.response.body":
                self.is_answered = not message.get("more_body", False)
                if self.raises and not self.is_answered:
                    self.was_stopped = True
                    raise OSError("the answer is not needed any more")
            return
        if message["type"] == "http.response.start":
            self.asked.begin_answer(message["status"], _decoded(message.get("headers", [])))
            return
        if message["type"] != "http.response.body":
            return
        chunk, is_last = message.get("body", b""), not message.get("more_body", False)
        self.is_answered = is_last
        was_usage_only = self.flow == USAGE_ONLY
        piece, self.flow = self.asked.feed(bytes(chunk))
        await self._emit(piece)
        if is_last or self.flow == STOP:
            await self._end(*self.asked.end())
        elif self.flow == USAGE_ONLY and not was_usage_only:
            self.timer = asyncio.get_running_loop().call_later(USAGE_WAIT, self.over.set)

    async def _end(self, piece: bytes, next: object) -> None:
        self.has_ended = True
        self.input.stopped.set()
        self.next = next
        await self._emit(piece)
        self.over.set()

    async def _emit(self, piece: bytes) -> None:
        if not piece or self.client.gone.is_set():
            return
        if not self.asked.is_streamed:
            self.body.append(piece)
            return
        await self._start()
        await self.send({"type": "http.response.body", "body": piece, "more_body": True})
        self.last = time.monotonic()

    async def _start(self) -> None:
        if self.started:
            return
        self.started = True
        await self.send({"type": "http.response.start", "status": 200, "headers": _encoded(self.asked.headers)})


def _passed_on(body: bytes, receive: Receive) -> Receive:
    """Returns the messages for an app that gets a request with this body, and answers the client itself."""
    left = [body]

    async def messages() -> Message:
        return {"type": "http.request", "body": left.pop(), "more_body": False} if left else await receive()

    return messages


async def _body(receive: Receive) -> bytes | None:
    """Returns the body of a request, or `None` if the client disconnects."""
    chunks = []
    while True:
        message = await receive()
        if message["type"] == "http.disconnect":
            return None
        chunks.append(message.get("body", b""))
        if not message.get("more_body", False):
            return b"".join(chunks)


def _target(scope: Scope) -> str:
    """Returns the encoded path of a request with its query. Apps use the decoded path, which others may have changed."""
    path, raw_path = scope["path"], (scope.get("raw_path") or b"").decode("latin-1")
    query = scope.get("query_string", b"").decode("latin-1")
    encoded: str = raw_path if unquote(raw_path) == path else quote(path)
    return f"{encoded}?{query}" if query else encoded


def _app_scope(scope: Scope, headers: list[tuple[str, str]], target: str, body: bytes) -> Scope:
    """Returns the scope of a request to the app with this target and body."""
    raw_path, _, query = target.partition("?")
    return {
        **scope,
        "path": unquote(raw_path),
        "raw_path": raw_path.encode("latin-1"),
        "query_string": query.encode("latin-1"),
        "headers": _encoded([*headers, _length(body)]),
    }


async def _send_response(send: Send, error: ErrorResponse) -> None:
    headers = _encoded([*error.headers, _length(error.body)])
    await send({"type": "http.response.start", "status": error.status, "headers": headers})
    await send({"type": "http.response.body", "body": error.body, "more_body": False})


def _spec_version(scope: Scope) -> tuple[int, ...]:
    version: str = scope.get("asgi", {}).get("spec_version", "2.0")
    return tuple(int(part) for part in version.split(".") if part.isdecimal())


def _length(body: bytes) -> tuple[str, str]:
    return "content-length", str(len(body))


def _decoded(headers: Any) -> list[tuple[str, str]]:
    return [(name.decode("latin-1"), value.decode("latin-1")) for name, value in headers]


def _encoded(headers: list[tuple[str, str]]) -> list[tuple[bytes, bytes]]:
    return [(name.lower().encode("latin-1"), value.encode("latin-1")) for name, value in headers]
