"""Tool calls for any text model.

A model without native tool calls writes calls as text. This package finds them while the text arrives, validates them
against your tools, and writes what the model needs to know. It runs no model and keeps no state.

- `plaincall.httpx2` and `plaincall.httpx` add native tool calls to the clients of OpenAI and Anthropic, without a server;
  `plaincall.asgi` adds them to a model server in Python, and `plaincall.gateway` to any other HTTP library.
- `parse` and `Parser` convert a text to events and calls. `Dialect` selects the syntax.
- `Toolbox` has your tools: it writes the system prompt, reads replies, and writes results and repair messages.
- `table` finds the calls in a table of texts, of any library that uses Arrow. `render_many` is the inverse.
- `execute` calls the tools of a reply in dependency order.
Spans are byte offsets into the UTF-8 text.
"""

import importlib
import sys
from typing import TYPE_CHECKING

if "free-threading build" in sys.version:
    # Its work and its counters rely on the lock.
    raise ImportError("plaincall does not support free-threaded Python; use a build with the global interpreter lock")

from plaincall._events import Event, aevents, events
from plaincall._plaincall import (
    Call,
    CallEnd,
    CallStart,
    DefinitionError,
    Diagnostic,
    Dialect,
    DialectError,
    Document,
    Grammar,
    GrammarError,
    Ignored,
    NearMiss,
    Parser,
    Reader,
    Reasoning,
    RenderError,
    Table,
    Text,
    ValueDelta,
    ValueEnd,
    ValueStart,
    __version__,
    near_misses,
    parse,
)
from plaincall.data import error_rates, render_many, table
from plaincall.tools import Result, Stop, Tool, Toolbox, tool

if TYPE_CHECKING:
    # As they are written: names of this package that programs use.
    from plaincall import asgi as asgi
    from plaincall import gateway as gateway
    from plaincall import httpx as httpx
    from plaincall import httpx2 as httpx2
    from plaincall._execute import execute

_MODULES = ("asgi", "gateway", "httpx", "httpx2")


def __getattr__(name: str) -> object:
    """Imports what not every program needs when it is first used: most modules need another package, and `execute` needs asyncio."""
    if name in _MODULES:
        return importlib.import_module(f"plaincall.{name}")
    if name == "execute":
        return importlib.import_module("plaincall._execute").execute
    raise AttributeError(f"module 'plaincall' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_MODULES, "execute"})


__all__ = [
    "Call",
    "CallEnd",
    "CallStart",
    "DefinitionError",
    "Diagnostic",
    "Dialect",
    "DialectError",
    "Document",
    "Event",
    "Grammar",
    "GrammarError",
    "Ignored",
    "NearMiss",
    "Parser",
    "Reader",
    "Reasoning",
    "RenderError",
    "Result",
    "Stop",
    "Table",
    "Text",
    "Tool",
    "Toolbox",
    "ValueDelta",
    "ValueEnd",
    "ValueStart",
    "__version__",
    "aevents",
    "error_rates",
    "events",
    "execute",
    "near_misses",
    "parse",
    "render_many",
    "table",
    "tool",
]
