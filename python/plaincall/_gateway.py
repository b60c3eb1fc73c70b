"""The settings of the transports and the middleware, and the translation of a request."""

from __future__ import annotations

import logging
import os
import time
from typing import Any, Literal, TypedDict

from plaincall._plaincall import Adapter, Asked, ErrorResponse, TokenCount

_LOG = logging.getLogger("plaincall")

READ_ON = 0
"""The flow of an answer whose reply has not ended."""
STOP = 2
"""The flow of an answer that need not be read on."""
USAGE_ONLY = 1
"""The flow of an answer whose reply has ended: only the usage may follow."""


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
    markers_anywhere: bool
    self_closing: bool
    reasoning: tuple[str, str] | list[str] | bool
    in_reasoning: bool
    unclosed: Literal["reject", "run"]
    keyed: bool
    mode: Literal["text", "native"]
    formats: list[str]
    constrain: Literal["never", "auto", "llama.cpp", "vllm", "sglang", "llguidance"]
    arguments: Literal["checked", "stream"]
    repair_rounds: int
    developer_role: bool
    system_anywhere: bool
    listed_tools: list[str]
    hidden_tools: list[str]
    description_length: int
    few_shot: int
    examples: list[dict[str, Any]]


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


def translate(adapter: Adapter, target: str, body: bytes) -> bytes | Asked | TokenCount | ErrorResponse | None:
    """Translates a request, as `Adapter.ask` does. Logs the tools that cannot be offered unchanged."""
    asked = adapter.ask(target, body, os.urandom(32), int(time.time()))
    if isinstance(asked, Asked):
        for sentence in asked.changed_tools:
            _LOG.warning("%s", sentence)
    return asked
