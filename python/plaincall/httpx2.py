"""Native tool calls in any client that uses httpx2, without a server.

```python
client = OpenAI(base_url=…, http_client=httpx2.Client(transport=plaincall.httpx2.Transport()))
```
"""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from plaincall._gateway import Settings
from plaincall._transport import AsyncTranslation, ForAsyncClients, ForClients, SyncTranslation, missing

try:
    import httpx2
except ModuleNotFoundError as error:
    raise missing("httpx2", "httpx", error) from None

if TYPE_CHECKING:
    from typing_extensions import Unpack

__all__ = ["AsyncTransport", "Settings", "Transport"]


class Transport(ForClients, httpx2.BaseTransport):
    """Translates requests with tools to plain text, and replies back while they arrive. It passes on all others.

    It translates the chat completions and Responses API of OpenAI and the Messages API of Anthropic; the model server needs
    chat completions only. `inner` sends the requests. Default: `httpx2.HTTPTransport()`.

    A request that cannot be translated gets an error response in the format of its API; nothing is passed on untranslated. It can
    be used by several threads.

    Raises `ValueError` for invalid settings, and `TypeError` if `inner` is no transport of httpx2.
    """

    def __init__(self, inner: httpx2.BaseTransport | None = None, **settings: Unpack[Settings]) -> None:
        self._translation = SyncTranslation(httpx2, inner or httpx2.HTTPTransport(), settings)

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request. Clients call it."""
        return cast(httpx2.Response, self._translation.handle(request))

    def close(self) -> None:
        """Closes the inner transport."""
        self._translation.inner.close()


class AsyncTransport(ForAsyncClients, httpx2.AsyncBaseTransport):
    """The same for `httpx2.AsyncClient`. Default of `inner`: `httpx2.AsyncHTTPTransport()`."""

    def __init__(self, inner: httpx2.AsyncBaseTransport | None = None, **settings: Unpack[Settings]) -> None:
        self._translation = AsyncTranslation(httpx2, inner or httpx2.AsyncHTTPTransport(), settings)

    async def handle_async_request(self, request: httpx2.Request) -> httpx2.Response:
        """Sends a request. Clients call it."""
        return cast(httpx2.Response, await self._translation.handle(request))

    async def aclose(self) -> None:
        """Closes the inner transport."""
        await self._translation.inner.aclose()
