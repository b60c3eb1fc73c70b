"""What the parsers for vLLM and SGLang share, and the entry point of vLLM."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterable

from plaincall._events import Event
from plaincall._plaincall import Call, CallStart, Diagnostic, Reader, Text
from plaincall.tools import Toolbox


def register_vllm() -> None:
    """Names the parser. vLLM calls this in each of its processes, and imports the parser when a server uses it."""
    try:
        from vllm.tool_parsers import ToolParserManager

        ToolParserManager.register_lazy_module("plaincall", "plaincall.vllm", "PlaincallToolParser")
    except (ImportError, AttributeError) as error:
        # vLLM does not start if this fails, also for those who do not use the parser.
        logging.getLogger("plaincall").warning("this version of vLLM has another interface for tool parsers: %s", error)


def arguments_of(call: Call) -> str:
    """Returns the arguments of a call as JSON."""
    return json.dumps(call.arguments, ensure_ascii=False)


class Splitter:
    """Splits a reply into text for the client and calls that it gets: the valid ones, each when it is complete.

    The API has no dependencies between calls, so a call with some stays text, as invalid and truncated calls do. Reasoning stays
    text with its markers: the servers have parsers for it.
    """

    def __init__(self, tools: Toolbox) -> None:
        self._tools = tools
        self._reader: Reader | None = None
        self._is_in_call = False

    def whole(self, text: str) -> tuple[str, list[Call]]:
        """Splits a complete reply."""
        return self._split(self._tools.parse(text).segments)

    def feed(self, chunk: str) -> tuple[str, list[Call]]:
        """Splits the next piece of a reply."""
        if self._reader is None:
            self._reader = self._tools.reader()
        return self._split(self._reader.feed(chunk))

    def finish(self) -> tuple[str, list[Call]]:
        """Ends the reply. A call without an end marker may be truncated, so it stays text."""
        reader, self._reader = self._reader, None
        return ("", []) if reader is None else self._split(reader.finish())

    def _split(self, parts: Iterable[Event | Call]) -> tuple[str, list[Call]]:
        text: list[str] = []
        calls: list[Call] = []
        for part in parts:
            if isinstance(part, Call):
                self._is_in_call = False
                if part.may_run and not part.dependencies:
                    calls.append(part)
                else:
                    text.append(part.source or "")
            elif isinstance(part, CallStart):
                self._is_in_call = True
            elif isinstance(part, Text):
                text.append(part.text)
            elif not self._is_in_call and not isinstance(part, Diagnostic):
                text.append(part.source)
        return "".join(text), calls
