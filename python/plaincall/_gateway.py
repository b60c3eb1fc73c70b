"""The settings of the transports and the middleware, and the translation of a request."""

from __future__ import annotations

import logging
import os
import time
from collections.abc import Mapping
from typing import Any, Literal, TypedDict
from urllib.parse import quote, urlsplit, urlunsplit

from plaincall._plaincall import Adapter, Asked, ErrorResponse, TokenCount

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

JSON = "application/json"
EVENT_STREAM = "text/event-stream"


class ModelSettings(TypedDict, total=False):
    """The settings of a model: the keys of a table `[models.NAME]` of a configuration file, where `docs/configuration.md` describes
    them. The defaults work for unknown models. Those of the model server's place and key have no effect here.
    """

    url: str
    replay: str
    kind: str
    model: str
    key_env: str
    key_file: str
    headers: dict[str, str]
    temperature: float
    max_tokens: int
    extra: dict[str, Any]
    syntax: Literal["block", "emoji"]
    start_prefix: str
    end_prefix: str
    arg_prefix: str
    self_closing: bool
    reasoning: tuple[str, str] | list[str] | bool
    in_reasoning: bool
    unclosed: Literal["reject", "run"]
    keyed: bool
    mode: Literal["text", "native"]
    constrain: Literal["never", "auto", "llama.cpp", "vllm", "sglang", "llguidance"]
    arguments: Literal["checked", "stream"]
    repair_rounds: int
    developer_role: bool
    listed_tools: list[str]
    hidden_tools: list[str]
    description_length: int


class Settings(ModelSettings, total=False):
    """The settings of a transport or middleware."""

    secret: bytes | None
    """32 random bytes (at least 16), the same in all processes that serve one conversation. Default: new ones."""


def new_adapter(settings: Settings) -> Adapter:
    """Creates the adapter for these settings.

    Raises `ValueError` for invalid ones.
    """
    others = dict(settings)
    secret = settings.get("secret")
    others.pop("secret", None)
    return Adapter(os.urandom(32) if secret is None else secret, **others)  # type: ignore[arg-type]


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
