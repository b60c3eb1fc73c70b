"""Transports for httpx and httpx2, which have the same interface."""

from __future__ import annotations

from collections.abc import AsyncIterator, Generator, Iterator
from typing import Any, NoReturn

from plaincall._gateway import READ_ON, STOP, USAGE_ONLY, Settings, new_adapter, translate
from plaincall._plaincall import USAGE_WAIT, ErrorResponse, TokenCount


def missing(library: str, other: str, error: ModuleNotFoundError) -> ModuleNotFoundError:
    """Returns the error of a transport whose library is not installed."""
    if error.name != library:
        return error
    return ModuleNotFoundError(
        f"`plaincall.{library}` needs {library}: `pip install 'plaincall[{library}]'`. If your client uses {other}, use "
        f"`plaincall.{other}`",
        name=library,
    )


class ForClients:
    """Refuses an asynchronous client, which needs the other transport."""

    async def __aenter__(self) -> NoReturn:
        raise TypeError(f"an asynchronous client needs `{type(self).__module__}.AsyncTransport()`")

    async def handle_async_request(self, request: object) -> NoReturn:
        await self.__aenter__()


class ForAsyncClients:
    """Refuses a client that is not asynchronous, which needs the other transport."""

    def __enter__(self) -> NoReturn:
        raise TypeError(f"a client that is not asynchronous needs `{type(self).__module__}.Transport()`")

    def handle_request(self, request: object) -> NoReturn:
        self.__enter__()


class Translation:
    """Translates the requests of one transport. `http` is the module, httpx or httpx2."""

    def __init__(self, http: Any, inner: Any, settings: Settings, base: str) -> None:
        self.http = http
        self.inner = inner
        if not isinstance(inner, getattr(http, base)):
            raise TypeError(
                f"`inner`: expected a transport of {self.library}, such as `{self.library}.{base.replace('Base', 'HTTP')}()`, "
                f"found {_name(inner)}{_advice(inner, self.library)}"
            )
        self.adapter = new_adapter(settings)

    @property
    def library(self) -> str:
        """The name of the library."""
        return str(self.http.__name__)

    def applies(self, request: Any) -> bool:
        """Returns whether the request may be translated. All others keep their streams.

        Raises `TypeError` for a request of another library.
        """
        if not isinstance(request, self.http.Request):
            raise TypeError(
                f"this transport is for clients of {self.library}, found {_name(request)}{_advice(request, self.library)}"
            )
        return self.adapter.translates(request.method, request.url.raw_path.decode())

    def ask(self, request: Any) -> Any:
        """Translates a request that was read: returns another request, a response, or an exchange."""
        asked = translate(self.adapter, request.url.raw_path.decode(), request.content)
        if asked is None:
            return request
        if isinstance(asked, bytes):
            return self.request_of(request, request.url, asked, is_translated=False)
        if isinstance(asked, ErrorResponse):
            return self.error_response(request, asked)
        return Exchange(self, request, asked)

    def request_of(self, request: Any, url: Any, body: bytes, *, is_translated: bool) -> Any:
        """Returns a request to the model server for that of the client."""
        headers = self.adapter.upstream_headers(request.headers.multi_items(), is_translated)
        return self.http.Request(request.method, url, headers=headers, content=body, extensions=request.extensions)

    def error_response(self, request: Any, error: ErrorResponse) -> Any:
        """Returns a response that no model wrote."""
        return self.http.Response(error.status, headers=error.headers, content=error.body, request=request)


def _name(value: object) -> str:
    """Returns the name of the type of an object, with its library."""
    library = type(value).__module__.partition(".")[0]
    return type(value).__qualname__ if library == "builtins" else f"{library}.{type(value).__qualname__}"


def _advice(value: object, library: str) -> str:
    """Returns which module is for an object of the other library."""
    own = type(value).__module__.partition(".")[0]
    return f"; with {own}, use `plaincall.{own}`" if own in ("httpx", "httpx2") and own != library else ""


class Exchange:
    """A translated request: what is sent for it, and what the client gets."""

    def __init__(self, translation: Translation, request: Any, asked: Any) -> None:
        self.translation = translation
        self.request = request
        self.asked = asked
        self.upstream: Any = None

    def steps(self) -> Generator[Any, Any, None]:
        """Yields what to do: send a request, read the next chunk in a flow, close the answer (`None`), or pass a piece to the client.

        It gets the answer, the chunk or `None` at the end, and the errors of the connection.
        """
        asked = self.asked
        if isinstance(asked, TokenCount):
            return (yield from self._count(asked))
        more: object = True
        while more is True:
            try:
                upstream = yield self._request(asked.target, asked.body)
                asked.begin_answer(upstream.status_code, upstream.headers.multi_items())
                flow = READ_ON
                while flow != STOP and (chunk := (yield flow)) is not None:
                    piece, flow = asked.feed(chunk)
                    if piece:
                        yield piece
                ended = asked.end()
            except self.translation.http.RequestError as error:
                failed = asked.connection_error(str(error))
                if failed is None:
                    raise
                ended = failed
            yield None
            piece, more = ended
            if piece:
                yield piece
        if more is not None:
            yield more

    def _count(self, count: TokenCount) -> Generator[Any, Any, None]:
        """Asks the model server for a number of tokens. If it cannot count them, the number is an estimate."""
        while (asked := count.request) is not None:
            try:
                upstream = yield self._request(*asked)
                if not upstream.is_success:
                    break
                while (chunk := (yield READ_ON)) is not None and count.feed(chunk):
                    pass
            except self.translation.http.RequestError:
                break
            count.end()
        yield None
        yield count.response

    def _request(self, target: str, body: bytes) -> Any:
        url = self.request.url.copy_with(raw_path=target.encode())
        return self.translation.request_of(self.request, url, body, is_translated=True)

    def pieces(self) -> Iterator[bytes | ErrorResponse]:
        """Performs the steps, and yields the pieces for the client. Closing it closes the model server's answer."""
        http, inner = self.translation.http, self.translation.inner
        steps = self.steps()
        chunks: Iterator[bytes] = iter(())
        try:
            step = next(steps)
            while True:
                result = None
                try:
                    if isinstance(step, (bytes, ErrorResponse)):
                        yield step
                    elif isinstance(step, int):
                        result = next(chunks, None)
                    else:
                        if self.upstream is not None:
                            self.upstream.close()
                        if step is not None:
                            result = self.upstream = inner.handle_request(step)
                            chunks = self.upstream.iter_bytes()
                except http.RequestError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration:
            pass
        finally:
            if self.upstream is not None:
                self.upstream.close()

    async def async_pieces(self) -> AsyncIterator[bytes | ErrorResponse]:
        """The same with coroutines."""
        # It comes with httpx and httpx2: without them, only their own error has advice.
        import anyio

        http, inner = self.translation.http, self.translation.inner
        steps = self.steps()
        chunks: Any = None
        wait = USAGE_WAIT
        try:
            step = next(steps)
            while True:
                result = None
                try:
                    if isinstance(step, (bytes, ErrorResponse)):
                        yield step
                    elif step == USAGE_ONLY:
                        # A deadline for each chunk of a reply would take more time than its translation.
                        begun = anyio.current_time()
                        with anyio.move_on_after(max(wait, 0)):
                            result = await anext(chunks, None)
                        wait -= anyio.current_time() - begun
                    elif isinstance(step, int):
                        result = await anext(chunks, None)
                    else:
                        if self.upstream is not None:
                            await self.upstream.aclose()
                        if step is not None:
                            result = self.upstream = await inner.handle_async_request(step)
                            chunks, wait = self.upstream.aiter_bytes(), USAGE_WAIT
                except http.RequestError as error:
                    step = steps.throw(error)
                else:
                    step = steps.send(result)
        except StopIteration:
            pass
        finally:
            if self.upstream is not None:
                await self.upstream.aclose()

    def response(self, body: Any) -> Any:
        """Returns the response to the client: bytes, or a stream."""
        content = {"content" if isinstance(body, bytes) else "stream": body}
        return self.translation.http.Response(
            200,
            headers=self.asked.headers,
            request=self.request,
            extensions=self.upstream.extensions,
            **content,
        )


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
        super().__init__(http, inner, settings, "BaseTransport")
        self.stream = stream_of(http)

    def handle(self, request: Any) -> Any:
        """Returns the response to a client's request."""
        if not self.applies(request):
            return self.inner.handle_request(request)
        request.read()
        asked = self.ask(request)
        if isinstance(asked, self.http.Request):
            return self.inner.handle_request(asked)
        if not isinstance(asked, Exchange):
            return asked
        body = []
        for piece in (pieces := asked.pieces()):
            if not isinstance(piece, bytes):
                return self.error_response(request, piece)
            if asked.asked.is_streamed:
                return asked.response(self.stream(piece, pieces))
            body.append(piece)
        return asked.response(b"".join(body))


class AsyncTranslation(Translation):
    """Translates requests, and sends them with coroutines."""

    def __init__(self, http: Any, inner: Any, settings: Settings) -> None:
        super().__init__(http, inner, settings, "AsyncBaseTransport")
        self.stream = async_stream_of(http)

    async def handle(self, request: Any) -> Any:
        """Returns the response to a client's request."""
        if not self.applies(request):
            return await self.inner.handle_async_request(request)
        await request.aread()
        asked = self.ask(request)
        if isinstance(asked, self.http.Request):
            return await self.inner.handle_async_request(asked)
        if not isinstance(asked, Exchange):
            return asked
        body = []
        async for piece in (pieces := asked.async_pieces()):
            if not isinstance(piece, bytes):
                return self.error_response(request, piece)
            if asked.asked.is_streamed:
                return asked.response(self.stream(piece, pieces))
            body.append(piece)
        return asked.response(b"".join(body))
