"""A tool parser for vLLM: calls that a model writes as text become native tool calls.

    vllm serve MODEL --enable-auto-tool-choice --tool-parser-plugin plaincall_vllm.py --tool-call-parser plaincall

It only reads replies. The chat template, or the client, has to put `plaincall.Toolbox(tools).prompt()` into the system
prompt. `vllm serve MODEL --middleware plaincall.asgi.Middleware` does everything, with repair rounds.
"""

from __future__ import annotations

import json
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
from vllm.tool_parsers.abstract_tool_parser import ToolParser, ToolParserManager

import plaincall as pc


def is_sent(call: pc.Call) -> bool:
    """Returns whether a client gets a call. The API has no dependencies between calls, so a call with some stays text."""
    return call.may_run and not call.dependencies


@ToolParserManager.register_module("plaincall")
class PlaincallToolParser(ToolParser):
    """Sends valid calls, each when it is complete. Invalid and truncated calls stay text, so no client runs them."""

    # The model writes its own format for `tool_choice: "required"` too.
    supports_required_and_named = False
    # vLLM calls `finish_streaming` at the end of a reply.
    engine_based_streaming = True

    def __init__(self, tokenizer: Any, tools: Any = None) -> None:
        super().__init__(tokenizer, tools)
        definitions = [one.model_dump(exclude_none=True) for one in self.tools]
        self._tools = pc.Toolbox(definitions) if definitions else None
        self._reader = None if self._tools is None else self._tools.reader()
        self._sent = 0

    def extract_tool_calls(self, model_output: str, request: Any) -> ExtractedToolCallInformation:
        """Reads a complete reply."""
        if self._tools is None:
            return ExtractedToolCallInformation(tools_called=False, tool_calls=[], content=model_output)
        text: list[str] = []
        calls: list[ToolCall] = []
        for part in self._tools.parse(model_output).segments:
            if not isinstance(part, pc.Call):
                text.append(part.text)
            elif is_sent(part):
                arguments = json.dumps(part.arguments, ensure_ascii=False)
                calls.append(ToolCall(function=FunctionCall(name=part.name, arguments=arguments)))
            else:
                text.append(part.source or "")
        return ExtractedToolCallInformation(tools_called=bool(calls), tool_calls=calls, content="".join(text) or None)

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
        if self._reader is None:
            return DeltaMessage(content=delta_text) if delta_text else None
        return self._delta(self._reader.feed(delta_text))

    def finish_streaming(self) -> DeltaMessage | None:
        """Ends the reply. A call without an end marker may be truncated, so it stays text."""
        if self._reader is None:
            return None
        reader, self._reader = self._reader, None
        return self._delta(reader.finish())

    def _delta(self, events: Sequence[pc.Event | pc.Call]) -> DeltaMessage | None:
        text = ""
        calls: list[DeltaToolCall] = []
        for event in events:
            if isinstance(event, pc.Text):
                text += event.text
            elif isinstance(event, pc.Call) and is_sent(event):
                arguments = json.dumps(event.arguments, ensure_ascii=False)
                calls.append(
                    DeltaToolCall(
                        index=self._sent,
                        id=make_tool_call_id(),
                        type="function",
                        function=DeltaFunctionCall(name=event.name, arguments=arguments),
                    )
                )
                self._sent += 1
            elif isinstance(event, pc.Call):
                text += event.source or ""
        if not text and not calls:
            return None
        # vLLM sends only the fields that are set.
        fields: dict[str, Any] = {"tool_calls": calls} if calls else {}
        return DeltaMessage(content=text, **fields) if text else DeltaMessage(**fields)
