"""SGLang's own loader of plugins and parser of calls with the plugin. Packages that need a GPU are empty (`stubs`)."""

from __future__ import annotations

import json
from importlib.metadata import version
from typing import Any

import pytest
import stubs
from scripted import CALL, OTHER_TEXTS, WEATHER, pieces_of

stubs.install()

from sglang.srt.entrypoints.openai.protocol import Tool  # noqa: E402
from sglang.srt.function_call.function_call_parser import FunctionCallParser  # noqa: E402
from sglang.srt.function_call.parser_names import TOOL_CALL_PARSER_NAMES  # noqa: E402
from sglang.srt.plugins import load_plugins  # noqa: E402

TOOLS = [Tool.model_validate(WEATHER)]
EXPECTED = ("get_weather", {"city": "Paris", "days": 2})


@pytest.fixture(scope="module", autouse=True)
def plugin() -> None:
    """Does what each process of a server does first."""
    load_plugins()


def streamed(text: str, size: int) -> tuple[str, list[tuple[int, str, Any]]]:
    parser = FunctionCallParser(TOOLS, "plaincall")
    content, calls = "", []
    for piece in [*pieces_of(text, size), None]:
        normal, made = parser.parse_stream_end() if piece is None else parser.parse_stream_chunk(piece)
        content += normal
        calls += [(one.tool_index, one.name, json.loads(one.parameters)) for one in made]
    return content, calls


def test_is_registered() -> None:
    assert version("sglang") == "0.5.23"
    assert "plaincall" in TOOL_CALL_PARSER_NAMES
    assert FunctionCallParser(TOOLS, "plaincall").detector.parses_required_natively()


def test_a_complete_reply() -> None:
    text, calls = FunctionCallParser(TOOLS, "plaincall").parse_non_stream(CALL + "Then:\n" + CALL)
    assert [(one.tool_index, one.name, json.loads(one.parameters)) for one in calls] == [
        (0, *EXPECTED),
        (1, *EXPECTED),
    ]
    assert text.split() == ["I", "look.", "Then:", "I", "look."]


@pytest.mark.parametrize("size", range(1, len(CALL) + 1))
def test_every_split(size: int) -> None:
    text, calls = streamed(CALL * 2, size)
    assert calls == [(0, *EXPECTED), (1, *EXPECTED)]
    assert text.split() == ["I", "look."] * 2


@pytest.mark.parametrize("reply", OTHER_TEXTS)
def test_other_text_stays(reply: str) -> None:
    assert FunctionCallParser(TOOLS, "plaincall").parse_non_stream(reply) == (reply, [])
    assert streamed(reply, 7) == (reply, [])
