"""Transports for httpx and httpx2, which have the same interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Iterator
from typing import Any

import anyio

from plaincall._gateway import (
    EVENT_STREAM,
    JSON,
    MOST_USAGE,
    MOST_WAIT,
    STOP,
    USAGE_ONLY,
    Settings,
    client_headers,
    error_headers,
    new_adapter,
    redirect_location,
    translate,
    upstream_target,
)
from plaincall._plaincall import Asked, ErrorResponse, TokenCount


class Translation:
    """Translates the requests of one transport. `http` is the module, httpx or httpx2."""

    def __init__(self, http: Any, inner: Any, settings: Settings) -> None:
        self.http = http
        self.inner = inner
        self.adapter = new_adapter(settings)

    def applies(self, request: Any) -> bool:
        """Returns whether the request may be translated. All others keep their streams."""
        return self.adapter.translates(request.method, request.url.path)

    def ask(self, request: Any) -> Any:
        """Translates a request that was read: returns another request, a response, or what is asked."""
        asked = translate(self.adapter, request.url.path, request.content, request.headers)
        if asked is None:
            return request
        if isinstance(asked, bytes):
            return self._request(request, request.url, asked, is_translated=False)
        if isinstance(asked, ErrorResponse):
            return self.error_response(request, asked)
        return asked

    def next_request(self, request: Any, base: str, path: str, body: bytes) -> Any:
        """Returns the next request to the model server. Its path and that of the client's are below `base`."""
        url = request.url
        if url.path != path:
            raw_path, mark, query = url.raw_path.partition(b"?")
            raw_path, keeps_query = upstream_target(url.path, raw_path, base, path)
            url = url.copy_with(raw_path=raw_path + mark + query if keeps_query else raw_path)
        return self._request(request, url, body, is_translated=True)

    def _request(self, request: Any, url: Any, body: bytes, *, is_translated: bool) -> Any:
        headers = self.adapter.upstream_headers(request.headers.multi_items(), is_translated)
        return self.http.Request(request.method, url, headers=headers, content=body, extensions=request.extensions)

    def error_response(self, request: Any, error: ErrorResponse, upstream: Any = None) -> Any:
        headers = error.headers if upstream is None else error_headers(upstream.headers.multi_items(), error)
        return self.http.Response(error.status, headers=headers, content=error.body, request=request)

    def redirect(self, request: Any, asked: Asked, upstream: Any) -> Redirect | None:
        """Returns the redirect of an answer that was read, if the client can follow it."""
        if not upstream.has_redirect_location:
            return None
        sent = asked.path.removeprefix(asked.base)
        own = request.url.path.rstrip("/").removeprefix(asked.base)
        location = redirect_location(upstream.headers["location"], sent, own)
        return None if location is None else Redirect(location, upstream.content)

    def other_response(self, request: Any, answer: ErrorResponse | Redirect, upstream: Any) -> Any:
        """Returns the response to the client instead of a reply."""
        if isinstance(answer, ErrorResponse):
            return self.error_response(request, answer, upstream)
        headers = client_headers(upstream.headers.multi_items(), upstream.headers.get("content-type", JSON))
        headers.append(("location", answer.location))
        return self.http.Response(upstream.status_code, headers=headers, content=answer.body, request=request)

    def count_response(self, request: Any, count: TokenCount) -> Any:
        """Returns the response to a client that asked for a number of tokens."""
        headers, body = count.response
        return self.http.Response(200, headers=headers, content=body, request=request)

    def response(self, request: Any, upstream: Any, asked: Asked, body: Any) -> Any:
        """Returns the response to the client: bytes, or a stream."""
        content_type = EVENT_STREAM if asked.is_streamed else JSON
        headers = client_headers(upstream.headers.multi_items(), content_type)
        content = {"stream": body} if asked.is_streamed else {"content": body}
        return self.http.Response(200, headers=headers, request=request, extensions=upstream.extensions, **content)


class Redirect:
    """A redirect of the model server, which the client follows itself: its next request is translated again."""

    def __init__(self, location: str, body: bytes) -> None:
        self.location, self.body = location, body


class Usage:
    """Limits what is read after the end of a reply."""

    def __init__(self) -> None:
        self.left = MOST_USAGE
        self.seconds = MOST_WAIT

    def is_over(self, flow: int, length: int) -> bool:
        """Returns whether to stop reading."""
        if flow == USAGE_ONLY:
            self.left -= length
        return flow == STOP or self.left <= 0

    async def next(self, chunks: AsyncIterator[bytes]) -> bytes | None:
        """Returns the next chunk after the end of the reply, or `None` if none comes in time."""
        chunk = None
        begun = anyio.current_time()
        with anyio.move_on_after(max(self.seconds, 0)):
            chunk = await anext(chunks, None)
        self.seconds -= anyio.current_time() - begun
        return chunk


class _Pending:
    """A translated request, and the last answer of the model server to it."""

    def __init__(self, translation: Translation, request: Any, asked: Asked) -> None:
        self.translation = translation
        self.request = request
        self.asked = asked
        self.upstream: Any = None
        self.rounds = 0

    def redirect(self) -> Redirect | None:
        """Returns the redirect of the first answer, if the client can follow it."""
        return self.translation.redirect(self.request, self.asked, self.upstream) if self.rounds == 1 else None


class Exchange(_Pending):
    """Sends a translated request, and repair rounds, and yields the bytes for the client."""

    def pieces(self) -> Iterator[bytes | ErrorResponse | Redirect]:
        """Yields pieces as soon as there are any. Closing it closes the model server's answer."""
        asked = self.asked
        more: object = True
        while more is True:
            self.rounds += 1
            request = self.translation.next_request(self.request, asked.base, asked.path, asked.body)
            self.upstream = upstream = self.translation.inner.handle_request(request)
            try:
                if upstream.is_success:
                    asked.begin_answer(upstream.headers.get("content-type", ""))
                    usage = Usage()
                    flow = 0
                    try:
                        for chunk in upstream.iter_bytes():
                            piece, flow = asked.feed(chunk)
                            if piece:
                                yield piece
                            if usage.is_over(flow, len(chunk)):
                                break
                    except self.translation.http.TransportError:
                        # The reply is complete, and has no usage.
                        if flow != USAGE_ONLY:
                            raise
                    piece, more = asked.end()
                else:
                    answer = upstream.read()
                    redirect = self.redirect()
                    piece, more = asked.fail(upstream.status_code, answer) if redirect is None else (b"", redirect)
            finally:
                upstream.close()
            if piece:
                yield piece
        if isinstance(more, (ErrorResponse, Redirect)):
            yield more


class AsyncExchange(_Pending):
    """The same with coroutines."""

    async def pieces(self) -> AsyncIterator[bytes | ErrorResponse | Redirect]:
        """Yields pieces as soon as there are any. Closing it closes the model server's answer."""
        asked = self.asked
        more: object = True
        while more is True:
            self.rounds += 1
            request = self.translation.next_request(self.request, asked.base, asked.path, asked.body)
            self.upstream = upstream = await self.translation.inner.handle_async_request(request)
            try:
                if upstream.is_success:
                    asked.begin_answer(upstream.headers.get("content-type", ""))
                    usage = Usage()
                    chunks = upstream.aiter_bytes()
                    flow = 0
                    # A deadline for each chunk would take more time than its translation.
                    try:
                        while (
                            chunk := await (usage.next(chunks) if flow == USAGE_ONLY else anext(chunks, None))
                        ) is not None:
                            piece, flow = asked.feed(chunk)
                            if piece:
                                yield piece
                            if usage.is_over(flow, len(chunk)):
                                break
                    except self.translation.http.TransportError:
                        if flow != USAGE_ONLY:
                            raise
                    piece, more = asked.end()
                else:
                    answer = await upstream.aread()
                    redirect = self.redirect()
                    piece, more = asked.fail(upstream.status_code, answer) if redirect is None else (b"", redirect)
            finally:
                await upstream.aclose()
            if piece:
                yield piece
        if isinstance(more, (ErrorResponse, Redirect)):
            yield more


def stream_of(http: Any) -> Any:
    """Returns the class of a response's stream."""

    class Stream(http.SyncByteStream):  # type: ignore[misc]
        def __init__(self, first: bytes, pieces: Any) -> None:
            self.first, self.pieces = first, pieces

        def __iter__(self) -> Iterator[bytes]:
            yield self.first
            for piece in self.pieces:
                # The bytes before it have the error.
                if isinstance(piece, bytes):
                    yield piece

        def close(self) -> None:
            self.pieces.close()

    return Stream


def async_stream_of(http: Any) -> Any:
    """Returns the class of an asynchronous response's stream."""

    class AsyncStream(http.AsyncByteStream):  # type: ignore[misc]
        def __init__(self, first: bytes, pieces: Any) -> None:
            self.first, self.pieces = first, pieces

        async def __aiter__(self) -> AsyncIterator[bytes]:
            yield self.first
            async for piece in self.pieces:
                # The bytes before it have the error.
                if isinstance(piece, bytes):
                    yield piece

        async def aclose(self) -> None:
            await self.pieces.aclose()

    return AsyncStream


class SyncTranslation(Translation):
    """Translates requests, and sends them."""

    def __init__(self, http: Any, inner: Any, settings: Settings) -> None:
        super().__init__(http, inner, settings)
        self.stream = stream_of(http)

    def handle(self, request: Any) -> Any:
        """Returns the response to a client's request."""
        if not self.applies(request):
            return self.inner.handle_request(request)
        request.read()
        asked = self.ask(request)
        if isinstance(asked, self.http.Request):
            return self.inner.handle_request(asked)
        if isinstance(asked, TokenCount):
            return self.count(request, asked)
        if not isinstance(asked, Asked):
            return asked
        exchange = Exchange(self, request, asked)
        pieces = exchange.pieces()
        first = next(pieces, b"")
        if not isinstance(first, bytes):
            return self.other_response(request, first, exchange.upstream)
        if asked.is_streamed:
            return self.response(request, exchange.upstream, asked, self.stream(first, pieces))
        body = [first]
        for piece in pieces:
            if not isinstance(piece, bytes):
                return self.other_response(request, piece, exchange.upstream)
            body.append(piece)
        return self.response(request, exchange.upstream, asked, b"".join(body))

    def count(self, request: Any, count: TokenCount) -> Any:
        """Asks the model server for a number of tokens. If it cannot count them, the number is an estimate."""
        while (asked := count.request) is not None:
            upstream = self.inner.handle_request(self.next_request(request, count.base, *asked))
            try:
                if not upstream.is_success:
                    break
                count.answer(upstream.read())
            finally:
                upstream.close()
        return self.count_response(request, count)


class AsyncTranslation(Translation):
    """Translates requests, and sends them with coroutines."""

    def __init__(self, http: Any, inner: Any, settings: Settings) -> None:
        super().__init__(http, inner, settings)
        self.stream = async_stream_of(http)

    async def handle(self, request: Any) -> Any:
        """Returns the response to a client's request."""
        if not self.applies(request):
            return await self.inner.handle_async_request(request)
        await request.aread()
        asked = self.ask(request)
        if isinstance(asked, self.http.Request):
            return await self.inner.handle_async_request(asked)
        if isinstance(asked, TokenCount):
            return await self.count(request, asked)
        if not isinstance(asked, Asked):
            return asked
        exchange = AsyncExchange(self, request, asked)
        pieces = exchange.pieces()
        first = await anext(pieces, b"")
        if not isinstance(first, bytes):
            return self.other_response(request, first, exchange.upstream)
        if asked.is_streamed:
            return self.response(request, exchange.upstream, asked, self.stream(first, pieces))
        body = [first]
        async for piece in pieces:
            if not isinstance(piece, bytes):
                return self.other_response(request, piece, exchange.upstream)
            body.append(piece)
        return self.response(request, exchange.upstream, asked, b"".join(body))

    async def count(self, request: Any, count: TokenCount) -> Any:
        """Asks the model server for a number of tokens. If it cannot count them, the number is an estimate."""
        while (asked := count.request) is not None:
            upstream = await self.inner.handle_async_request(self.next_request(request, count.base, *asked))
            try:
                if not upstream.is_success:
                    break
                count.answer(await upstream.aread())
            finally:
                await upstream.aclose()
        return self.count_response(request, count)
