"""A parser of tool calls for SGLang: `sglang serve --model-path MODEL --tool-call-parser plaincall`.

SGLang finds it in the installed package. It only reads replies: the chat template, or the client, has to put
`plaincall.Toolbox(tools).prompt(without_dependencies=True)` into the system prompt.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from sglang.srt.function_call.base_format_detector import BaseFormatDetector
from sglang.srt.function_call.core_types import StreamingParseResult, ToolCallItem
from sglang.srt.function_call.function_call_parser import FunctionCallParser
from sglang.srt.function_call.parser_names import TOOL_CALL_PARSER_NAMES

from plaincall._engines import Splitter, arguments_of
from plaincall._plaincall import Call
from plaincall.tools import Toolbox

__all__ = ["PlaincallDetector", "register"]


class PlaincallDetector(BaseFormatDetector):
    """Sends valid calls, each when it is complete. Invalid and truncated calls stay text, so no client runs them."""

    def __init__(self) -> None:
        super().__init__()
        self.bot_token = "!!!GADGET_START:"
        self.eot_token = "!!!GADGET_END"
        self._splitter: Splitter | None = None
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
        text, calls = _splitter(tools).whole(text)
        items = [_item(call, index) for index, call in enumerate(calls)]
        return StreamingParseResult(normal_text=text, calls=items)

    def parse_streaming_increment(self, new_text: str, tools: Sequence[Any]) -> StreamingParseResult:
        """Reads the next piece of a reply."""
        if self._splitter is None:
            self._splitter = _splitter(tools)
        return self._result(*self._splitter.feed(new_text))

    def finish(self, tools: Sequence[Any]) -> StreamingParseResult:
        """Ends the reply."""
        return StreamingParseResult() if self._splitter is None else self._result(*self._splitter.finish())

    def _result(self, text: str, calls: list[Call]) -> StreamingParseResult:
        items = [_item(call, index) for index, call in enumerate(calls, self._sent)]
        self._sent += len(items)
        for call, item in zip(calls, items, strict=True):
            # SGLang sends what is in the first list and not in the second at the end of a reply.
            self.prev_tool_call_arr.append({"name": call.name, "arguments": call.arguments})
            self.streamed_args_for_tool.append(item.parameters)
            self.current_tool_id = item.tool_index
        return StreamingParseResult(normal_text=text, calls=items)


def _splitter(tools: Sequence[Any]) -> Splitter:
    return Splitter(Toolbox([one.model_dump(exclude_none=True) for one in tools]))


def _item(call: Call, index: int) -> ToolCallItem:
    return ToolCallItem(tool_index=index, name=call.name, parameters=arguments_of(call))


def register() -> None:
    """Adds the parser. SGLang calls this in each of its processes: the entry point is in `pyproject.toml`."""
    FunctionCallParser.ToolCallParserEnum["plaincall"] = PlaincallDetector
    if "plaincall" not in TOOL_CALL_PARSER_NAMES:
        TOOL_CALL_PARSER_NAMES.append("plaincall")
