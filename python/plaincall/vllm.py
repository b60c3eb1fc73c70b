"""A tool parser for vLLM: `vllm serve MODEL --enable-auto-tool-choice --tool-call-parser plaincall`.

vLLM finds it in the installed package. It only reads replies: the chat template, or the client, has to put
`plaincall.Toolbox(tools).prompt(without_dependencies=True)` into the system prompt. `plaincall.asgi.Middleware` does everything, with repair rounds.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from vllm.entrypoints.generate.base.protocol import (
    DeltaFunctionCall,
    DeltaMessage,
    DeltaToolCall,
    ExtractedToolCallInformation,
    FunctionCall,
    ToolCall,
)
from vllm.renderers.chat_utils import make_tool_call_id
from vllm.tool_parsers.abstract_tool_parser import ToolParser

from plaincall._engines import Splitter, arguments_of
from plaincall._plaincall import Call
from plaincall.tools import Toolbox

__all__ = ["PlaincallToolParser"]


class PlaincallToolParser(ToolParser):
    """Sends valid calls, each when it is complete. Invalid and truncated calls stay text, so no client runs them."""

    # The model writes its own format for `tool_choice: "required"` too.
    supports_required_and_named = False
    # vLLM calls `finish_streaming` at the end of a reply.
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        super().__init__(tokenizer, tools)
        definitions = [one.model_dump(exclude_none=True) for one in self.tools]
        self._splitter = Splitter(Toolbox(definitions)) if definitions else None
        self._sent = 0

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Reads a complete reply."""
        text, calls = (model_output, []) if self._splitter is None else self._splitter.whole(model_output)
        made = [ToolCall(function=FunctionCall(name=call.name, arguments=arguments_of(call))) for call in calls]
        return ExtractedToolCallInformation(tools_called=bool(made), tool_calls=made, content=text or None)

    def extract_tool_calls_streaming(
        self,
        previous_text: str,
        current_text: str,
        delta_text: str,
        previous_token_ids: Sequence[int],
        current_token_ids: Sequence[int],
        delta_token_ids: Sequence[int],
        request: Any,
    ) -> DeltaMessage | None:
        """Reads the next piece of a reply."""
        return self._delta(*((delta_text, []) if self._splitter is None else self._splitter.feed(delta_text)))

    def finish_streaming(self) -> DeltaMessage | None:
        """Ends the reply."""
        return None if self._splitter is None else self._delta(*self._splitter.finish())

    def _delta(self, text: str, calls: list[Call]) -> DeltaMessage | None:
        # vLLM sends only the fields that are set.
        fields: dict[str, Any] = {"content": text} if text else {}
        if calls:
            fields["tool_calls"] = [self._sent_call(call) for call in calls]
        return DeltaMessage(**fields) if fields else None

    def _sent_call(self, call: Call) -> DeltaToolCall:
        function = DeltaFunctionCall(name=call.name, arguments=arguments_of(call))
        self._sent += 1
        return DeltaToolCall(index=self._sent - 1, id=make_tool_call_id(), type="function", function=function)
