"""vLLM's own server code with the plugin and the middleware: routes, requests, parsers and responses are vLLM's.

Its engine, tokenizer and chat template are scripted here, and packages that need a GPU are empty (`stubs`).
"""

from __future__ import annotations

import json
import sys
from argparse import Namespace
from collections.abc import AsyncIterator
from importlib.metadata import version
from types import SimpleNamespace
from typing import Any

import httpx2
import openai
import pytest
import stubs
from scripted import CALL, INVALID, OTHER_TEXTS, QUESTION, WEATHER, pieces_of

stubs.install()

from vllm.entrypoints.common.cli_args import FrontendArgs  # noqa: E402
from vllm.entrypoints.launchers.app import build_app  # noqa: E402
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: E402
from vllm.entrypoints.openai.chat_completion.serving import OpenAIServingChat  # noqa: E402
from vllm.entrypoints.openai.models.protocol import BaseModelPath  # noqa: E402
from vllm.entrypoints.openai.models.serving import OpenAIServingModels  # noqa: E402
from vllm.outputs import CompletionOutput, RequestOutput  # noqa: E402
from vllm.parser.parser_manager import ParserManager  # noqa: E402
from vllm.plugins import load_general_plugins  # noqa: E402
from vllm.sampling_params import RequestOutputKind  # noqa: E402
from vllm.tool_parsers import ToolParserManager  # noqa: E402

MIDDLEWARE = "plaincall.asgi.Middleware"
STREAMED = pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])
EXPECTED = ("get_weather", {"city": "Paris", "days": 2})


class Engine:
    """Writes the replies, one after another, and keeps the requests."""

    errored = False
    input_processor = None
    vllm_config = None

    def __init__(self, *replies: str) -> None:
        self.replies = list(replies)
        self.requests: list[Any] = []
        self.renderer = SimpleNamespace(tokenizer=SimpleNamespace(get_vocab=dict))
        self.model_config = SimpleNamespace(
            model="m",
            max_model_len=10_000,
            generation_config="vllm",
            logits_processors=None,
            is_encoder_decoder=False,
            hf_config=SimpleNamespace(model_type="none"),
            hf_text_config=SimpleNamespace(model_type="none"),
            get_diff_sampling_param=dict,
        )

    def check_admission(self, count: int) -> None:
        pass

    async def is_tracing_enabled(self) -> bool:
        return False

    async def render_chat(self, request: Any, **options: Any) -> Any:
        """Stands in for the chat template and the tokenizer."""
        self.requests.append(request)
        return [], [{"type": "token", "prompt_token_ids": [1]}]

    async def generate(self, prompt: Any, params: Any, id: str, **options: Any) -> AsyncIterator[Any]:
        text = self.replies.pop(0)
        pieces = pieces_of(text) if params.output_kind == RequestOutputKind.DELTA and text else [text]
        for at, piece in enumerate(pieces, 1):
            is_last = at == len(pieces)
            output = CompletionOutput(
                index=0,
                text=piece,
                token_ids=[7],
                cumulative_logprob=None,
                logprobs=None,
                finish_reason="stop" if is_last else None,
            )
            yield RequestOutput(
                request_id=id,
                prompt=None,
                prompt_token_ids=[1],
                prompt_logprobs=None,
                outputs=[output],
                finished=is_last,
            )


def server(engine: Engine, *, middleware: list[str], parser: str | None) -> Any:
    """Returns vLLM's application, as `vllm serve` makes it with these options."""
    defaults = vars(FrontendArgs())
    arguments = Namespace(**{**defaults, "middleware": middleware, "root_path": None, "api_key": None})
    app = build_app(arguments, ("generate",), None)
    models = OpenAIServingModels(engine, [BaseModelPath(name="m", model_path="m")])
    app.state.openai_serving_chat = OpenAIServingChat(
        engine,
        models,
        "assistant",
        online_renderer=SimpleNamespace(render_chat=engine.render_chat, reasoning_effort_map={}),
        request_logger=None,
        chat_template=None,
        chat_template_content_format="auto",
        enable_auto_tools=parser is not None,
        tool_parser=parser,
    )
    app.state.enable_server_load_tracking = False
    return app


def client(app: Any) -> openai.AsyncOpenAI:
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=app))
    return openai.AsyncOpenAI(base_url="http://vllm.test/v1", api_key="k", http_client=http, max_retries=0)


async def ask(app: Any, is_streamed: bool) -> tuple[str, list[tuple[str, Any]], str | None]:
    """Returns the text, the calls and the finish reason of a reply."""
    completions = client(app).chat.completions
    if not is_streamed:
        reply = await completions.create(model="m", messages=QUESTION, tools=[WEATHER])
        [choice] = reply.choices
        made = choice.message.tool_calls or []
        calls: list[Any] = [(one.function.name, json.loads(one.function.arguments)) for one in made]
        return choice.message.content or "", calls, choice.finish_reason
    text, reason = "", None
    arguments: dict[int, list[str]] = {}
    async for chunk in await completions.create(model="m", messages=QUESTION, tools=[WEATHER], stream=True):
        for choice in chunk.choices:
            text += choice.delta.content or ""
            reason = choice.finish_reason or reason
            for call in choice.delta.tool_calls or []:
                if call.function.name:
                    arguments[call.index] = [call.function.name, ""]
                arguments[call.index][1] += call.function.arguments or ""
    return text, [(name, json.loads(written)) for name, written in arguments.values()], reason


@pytest.fixture(scope="module", autouse=True)
def plugin() -> None:
    """Does what each process of a server does first. Only what uses the parser imports it."""
    load_general_plugins()
    assert "plaincall" in ToolParserManager.list_registered()
    assert "plaincall.vllm" not in sys.modules


def test_version() -> None:
    assert version("vllm") == "0.33.0"


@STREAMED
async def test_middleware(is_streamed: bool) -> None:
    engine = Engine(CALL)
    text, calls, reason = await ask(server(engine, middleware=[MIDDLEWARE], parser=None), is_streamed)
    assert (text.strip(), calls, reason) == ("I look.", [EXPECTED], "tool_calls")
    [request] = engine.requests
    assert not request.tools and "## get_weather" in request.messages[0]["content"]


@STREAMED
async def test_middleware_repairs(is_streamed: bool) -> None:
    engine = Engine(INVALID, CALL)
    _, calls, reason = await ask(server(engine, middleware=[MIDDLEWARE], parser=None), is_streamed)
    assert (calls, reason) == ([EXPECTED], "tool_calls")
    assert len(engine.requests) == 2


@STREAMED
async def test_plugin(is_streamed: bool) -> None:
    engine = Engine(CALL + "Then:\n" + CALL)
    text, calls, reason = await ask(server(engine, middleware=[], parser="plaincall"), is_streamed)
    assert (text.split(), calls, reason) == (["I", "look.", "Then:", "I", "look."], [EXPECTED] * 2, "tool_calls")


@STREAMED
@pytest.mark.parametrize("reply", OTHER_TEXTS)
async def test_plugin_leaves_other_text(reply: str, is_streamed: bool) -> None:
    text, calls, reason = await ask(server(Engine(reply), middleware=[], parser="plaincall"), is_streamed)
    assert (text, calls, reason) == (reply, [], "stop")


@pytest.mark.parametrize("size", range(1, len(CALL) + 1))
def test_plugin_at_every_split(size: int) -> None:
    request = ChatCompletionRequest(model="m", messages=QUESTION, tools=[WEATHER])
    made = ParserManager.get_parser(tool_parser_name="plaincall", enable_auto_tools=True)
    assert made is not None
    parser = made(SimpleNamespace(get_vocab=dict), request.tools)
    text, calls = "", []
    pieces = pieces_of(CALL * 2, size)
    for at, piece in enumerate(pieces, 1):
        delta = parser.parse_delta(piece, [7], request, [1], finished=at == len(pieces))
        if delta is not None:
            text += delta.content or ""
            calls += [(one.index, one.function.name, json.loads(one.function.arguments)) for one in delta.tool_calls]
    assert calls == [(0, *EXPECTED), (1, *EXPECTED)]
    assert text.split() == ["I", "look."] * 2
