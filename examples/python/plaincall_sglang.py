"""A plugin for SGLang: calls that a model writes as text become native tool calls.

    pip install ./examples/python && python -m sglang.launch_server --model-path MODEL --tool-call-parser plaincall

It only reads replies. The chat template, or the client, has to put `plaincall.Toolbox(tools).prompt()` into the system
prompt.
"""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult, ToolCallItem
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.function_call.parser_names import TOOL_CALL_PARSER_NAMES

import plaincall as pc


def is_sent(call: pc.Call) -> bool:
    """Returns whether a client gets a call. The API has no dependencies between calls, so a call with some stays text."""
    return call.may_run and not call.dependencies


class PlaincallDetector(BaseFormatDetector):  # type: ignore[misc]
    """Sends valid calls, each when it is complete. Invalid and truncated calls stay text, so no client runs them."""

    def __init__(self) -> None:
        super().__init__()
        self.bot_token = "!!!GADGET_START:"
        self.eot_token = "!!!GADGET_END"
        self._reader: pc.Reader | None = None
        self._sent = 0

    def has_tool_call(self, text: str) -> bool:
        """Returns whether a text may have a call."""
        return self.bot_token in text

    def supports_structural_tag(self) -> bool:
        """Returns whether SGLang can make a grammar: not this plugin."""
        return False

    def parses_required_natively(self) -> bool:
        """Returns whether the model writes its own format for `tool_choice: "required"` too."""
        return True

    def structure_info(self) -> Any:
        """There is no structural tag."""
        raise NotImplementedError

    def detect_and_parse(self, text: str, tools: Sequence[Any]) -> StreamingParseResult:
        """Reads a complete reply."""
        content: list[str] = []
        calls: list[ToolCallItem] = []
        for part in _toolbox(tools).parse(text).segments:
            if not isinstance(part, pc.Call):
                content.append(part.text)
            elif is_sent(part):
                calls.append(_item(part, len(calls)))
            else:
                content.append(part.source or "")
        return StreamingParseResult(normal_text="".join(content), calls=calls)

    def parse_streaming_increment(self, new_text: str, tools: Sequence[Any]) -> StreamingParseResult:
        """Reads the next piece of a reply."""
        if self._reader is None:
            self._reader = _toolbox(tools).reader()
        return self._result(self._reader.feed(new_text))

    def finish(self, tools: Sequence[Any]) -> StreamingParseResult:
        """Ends the reply. A call without an end marker may be truncated, so it stays text."""
        if self._reader is None:
            return StreamingParseResult()
        reader, self._reader = self._reader, None
        return self._result(reader.finish())

    def _result(self, events: Sequence[pc.Event | pc.Call]) -> StreamingParseResult:
        text = ""
        calls: list[ToolCallItem] = []
        for event in events:
            if isinstance(event, pc.Text):
                text += event.text
            elif isinstance(event, pc.Call) and is_sent(event):
                calls.append(_item(event, self._sent))
                # SGLang sends what is in the first list and not in the second at the end of a reply.
                self.prev_tool_call_arr.append({"name": event.name, "arguments": event.arguments})
                self.streamed_args_for_tool.append(calls[-1].parameters)
                self.current_tool_id = self._sent
                self._sent += 1
            elif isinstance(event, pc.Call):
                text += event.source or ""
        return StreamingParseResult(normal_text=text, calls=calls)


def _toolbox(tools: Sequence[Any]) -> pc.Toolbox:
    return pc.Toolbox([one.model_dump(exclude_none=True) for one in tools])


def _item(call: pc.Call, index: int) -> ToolCallItem:
    arguments = json.dumps(call.arguments, ensure_ascii=False)
    return ToolCallItem(tool_index=index, name=call.name, parameters=arguments)


def register() -> None:
    """Adds the parser. SGLang calls this in each of its processes: the entry point is in `pyproject.toml`."""
    FunctionCallParser.ToolCallParserEnum["plaincall"] = PlaincallDetector
    if "plaincall" not in TOOL_CALL_PARSER_NAMES:
        TOOL_CALL_PARSER_NAMES.append("plaincall")
