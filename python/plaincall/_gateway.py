"""The settings of the transports and the middleware, and the translation of a request."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import Literal, TypedDict
from urllib.parse import quote, urlsplit, urlunsplit

from plaincall._plaincall import Adapter, Asked, Dialect, ErrorResponse, TokenCount

_LOG = logging.getLogger("plaincall")

READ_ON = 0
"""The flow of an answer whose reply has not ended."""
STOP = 2
"""The flow of an answer that need not be read on."""
USAGE_ONLY = 1
"""The flow of an answer whose reply has ended: only the usage may follow."""
MOST_USAGE = 64 << 10
"""The maximum number of bytes that are read for the usage."""
MOST_WAIT = 5.0
"""The maximum time to wait for the usage, in seconds, without the time that the client needs to read."""

LEAST_SECRET = 16
"""The minimum length of a secret, in bytes."""

JSON = "application/json"
EVENT_STREAM = "text/event-stream"


class Settings(TypedDict, total=False):
    """The settings of a model. The defaults work for unknown models."""

    mode: Literal["text", "native"]
    """`"text"` puts tools into the prompt, and the model writes calls as text. `"native"` passes tools on, and calls that arrive as
    text in a known format become native ones. Default: `"text"`."""
    dialect: Dialect
    """The dialect, without reasoning markers. Escapes are added. Default: block."""
    keyed: bool
    """Whether markers contain a key, derived for each conversation from `secret` and the client's key. Default: `False`."""
    reasoning: tuple[str, str] | None
    """The markers around reasoning at the beginning of a reply. Default: `<think>` and `</think>`."""
    in_reasoning: bool
    """Whether a reply begins inside reasoning, because the model's template opens it. Default: `False`."""
    arguments: Literal["checked", "stream"]
    """`"checked"` sends a call when it is complete and valid, `"stream"` while the model writes it. Default: `"checked"`."""
    unclosed: Literal["reject", "run"]
    """How calls without an end marker are handled. Default: `"reject"`."""
    repair_rounds: int
    """The maximum number of hidden requests that ask the model to correct invalid calls. Default: 2."""
    upstream_model: str
    """The name of the model that is sent to the server. Default: the requested one."""
    listed_tools: list[str]
    """The names of the tools that the prompt lists; `*` matches any characters. Default: all."""
    hidden_tools: list[str]
    """The names of tools that are not listed. Default: none."""
    description_length: int
    """The maximum length of each description, in characters. Default: no limit."""
    engine: str
    """The engine of the server that gets a grammar of the tools: `vllm`, `sglang`, `llama.cpp`. Default: no grammar."""
    secret: bytes | None
    """32 random bytes (at least 16), the same in all processes that serve one conversation. Default: new ones."""


def new_adapter(settings: Settings) -> Adapter:
    """Creates the adapter for these settings.

    Raises `DialectError` or `ValueError` for invalid ones.
    """
    others = dict(settings)
    secret = settings.get("secret")
    others.pop("secret", None)
    if secret is None:
        secret = os.urandom(32)
    elif len(secret) < LEAST_SECRET:
        raise ValueError(f"`secret` has {len(secret)} bytes, and needs at least {LEAST_SECRET}; use 32 random bytes")
    return Adapter(secret, **others)  # type: ignore[arg-type]


def translate(
    adapter: Adapter, path: str, body: bytes, headers: Mapping[str, str]
) -> bytes | Asked | TokenCount | ErrorResponse | None:
    """Translates a request, as `Adapter.ask` does. Logs the tools that cannot be offered unchanged, without their content."""
    caller = headers.get("authorization") or headers.get("x-api-key") or ""
    asked = adapter.ask(path, body, caller, os.urandom(32), int(time.time()))
    if isinstance(asked, Asked):
        for at, is_dropped in asked.changed_tools:
            # The rest of the place has names of the definition.
            tool = "/".join(at.split("/")[:3])
            _LOG.warning("the tool at %s of the request was %s", tool, "dropped" if is_dropped else "loosened")
    return asked


def upstream_headers(headers: list[tuple[str, str]], is_translated: bool) -> list[tuple[str, str]]:
    """Returns the headers of the request to the model server, with another body."""
    kept = [(name, value) for name, value in headers if name.lower() not in ("content-length", "transfer-encoding")]
    if is_translated:
        # Encoded answers could not be read.
        kept = [(name, value) for name, value in kept if name.lower() not in ("accept-encoding", "content-type")]
        kept += [("accept-encoding", "identity"), ("content-type", JSON)]
        key = next((value for name, value in kept if name.lower() == "x-api-key"), None)
        if key is not None and not any(name.lower() == "authorization" for name, _ in kept):
            kept.append(("authorization", f"Bearer {key}"))
    return kept


def upstream_target(path: str, raw_path: bytes, base: str, target: str) -> tuple[bytes, bool]:
    """Returns the encoded path of a request to the model server, and whether the query stays: it belongs to the client's API.

    Both paths are below `base`, whose encoding is kept.
    """
    path, raw_path = path.rstrip("/"), raw_path.rstrip(b"/")
    suffix = path.removeprefix(base).encode()
    encoded = raw_path.removesuffix(suffix) if raw_path.endswith(suffix) else quote(base).encode()
    return encoded + target.removeprefix(base).encode(), path == target


def redirect_location(location: str, sent: str, asked: str) -> str | None:
    """Returns where a client finds what the model server has at `location`: `sent` is the end of the path there, `asked` that of the
    client. Returns `None` for another path, where the client's request might not be translated.
    """
    parts = urlsplit(location)
    path = parts.path.rstrip("/")
    return urlunsplit(parts._replace(path=path.removesuffix(sent) + asked)) if path.endswith(sent) else None


def client_headers(headers: list[tuple[str, str]], content_type: str) -> list[tuple[str, str]]:
    """Returns the model server's headers for the client, with another body."""
    kept = [(name, value) for name, value in headers if Adapter.keeps_header(name)]
    return [*kept, ("content-type", content_type)]


def error_headers(headers: list[tuple[str, str]], error: ErrorResponse) -> list[tuple[str, str]]:
    """Returns the headers of an error response: those of the model server, which may have a retry delay, and its own."""
    own = {name.lower() for name, _ in error.headers}
    return [
        *((name, value) for name, value in client_headers(headers, JSON) if name.lower() not in own),
        *error.headers,
    ]
