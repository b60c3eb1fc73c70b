"""Published clients that use httpx2, unchanged: `httpx2.txt` pins them."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any

import httpx2
import llm
import openai
import pytest
from agents import Agent as SdkAgent
from agents import ModelSettings, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from examples import run_examples
from langchain_core.messages import HumanMessage, ToolMessage
from langchain_core.tools import tool as langchain_tool
from langchain_openai import ChatOpenAI
from llm.default_plugins import openai_models as llm_models
from pydantic_ai import Agent
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.openai import OpenAIProvider
from scripted import CALL, INVALID, Model

import plaincall.httpx2

BASE = "http://model.test/v1"
ANSWER = "It is mild."
REPLIES = pytest.mark.parametrize("replies", [[CALL, ANSWER], [INVALID, CALL, ANSWER]], ids=["valid", "repaired"])
STREAMED = pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])


def sync_http(model: Model) -> httpx2.Client:
    return httpx2.Client(transport=plaincall.httpx2.Transport(model.sync_transport(httpx2)))


def async_http(model: Model) -> httpx2.AsyncClient:
    return httpx2.AsyncClient(transport=plaincall.httpx2.AsyncTransport(model.async_transport(httpx2)))


def async_openai(model: Model) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=BASE, api_key="k", http_client=async_http(model), max_retries=0)


@REPLIES
@STREAMED
def test_openai_agents(replies: list[str], is_streamed: bool) -> None:
    model = Model(*replies)
    asked: list[tuple[str, int]] = []

    @function_tool
    def get_weather(city: str, days: int) -> str:
        """Gets the weather."""
        asked.append((city, days))
        return "mild"

    async def run() -> str:
        set_tracing_disabled(True)
        set_default_openai_client(async_openai(model))
        agent = SdkAgent(name="weather", model="m", tools=[get_weather], model_settings=ModelSettings())
        if not is_streamed:
            return str((await Runner.run(agent, "The weather?")).final_output)
        streamed = Runner.run_streamed(agent, "The weather?")
        assert "raw_response_event" in {event.type async for event in streamed.stream_events()}
        return str(streamed.final_output)

    assert asyncio.run(run()) == ANSWER
    assert asked == [("Paris", 2)]
    assert model.paths == ["/v1/chat/completions"] * len(replies)


@REPLIES
@STREAMED
@pytest.mark.parametrize("kind", [OpenAIChatModel, OpenAIResponsesModel])
def test_pydantic_ai(replies: list[str], is_streamed: bool, kind: Any) -> None:
    model = Model(*replies)
    asked: list[tuple[str, int]] = []
    agent = Agent(kind("m", provider=OpenAIProvider(openai_client=async_openai(model))))

    @agent.tool_plain
    def get_weather(city: str, days: int) -> str:
        """Gets the weather."""
        asked.append((city, days))
        return "mild"

    async def run() -> str:
        if not is_streamed:
            return str((await agent.run("The weather?")).output)
        async with agent.iter("The weather?") as steps:
            async for node in steps:
                if Agent.is_model_request_node(node):
                    async with node.stream(steps.ctx) as stream:
                        async for _ in stream:
                            pass
        assert steps.result is not None
        return str(steps.result.output)

    assert asyncio.run(run()) == ANSWER
    assert asked == [("Paris", 2)]


@REPLIES
@STREAMED
def test_langchain(replies: list[str], is_streamed: bool) -> None:
    model = Model(*replies)

    @langchain_tool
    def get_weather(city: str, days: int) -> str:
        """Gets the weather."""
        return f"mild in {city} for {days} days"

    chat = ChatOpenAI(model="m", base_url=BASE, api_key="k", http_client=sync_http(model), max_retries=0)  # type: ignore[arg-type]
    bound = chat.bind_tools([get_weather])
    messages: list[Any] = [HumanMessage("The weather?")]
    if is_streamed:
        chunks = list(bound.stream(messages))
        reply: Any = chunks[0]
        for chunk in chunks[1:]:
            reply += chunk
    else:
        reply = bound.invoke(messages)
    [call] = reply.tool_calls
    assert (call["name"], call["args"]) == ("get_weather", {"city": "Paris", "days": 2})
    result = get_weather.invoke(call["args"])
    messages += [reply, ToolMessage(result, tool_call_id=call["id"])]
    assert bound.invoke(messages).content == ANSWER
    assert "mild in Paris for 2 days" in json.dumps(model.requests[-1]["messages"])


class Plain(llm_models.Chat):
    """The model of a plugin for llm, with its own client."""

    http: Any = None

    def get_client(self, key: str | None, *, async_: bool = False) -> Any:
        return openai.OpenAI(base_url=BASE, api_key="k", http_client=self.http)


class AsyncPlain(llm_models.AsyncChat):
    """The same with coroutines."""

    http: Any = None

    def get_client(self, key: str | None, *, async_: bool = False) -> Any:
        return openai.AsyncOpenAI(base_url=BASE, api_key="k", http_client=self.http)


def llm_model(kind: Any, http: Any) -> Any:
    chat = kind("m", key=None, api_base=BASE, supports_tools=True, can_stream=True)
    chat.http, chat.needs_key = http, None
    return chat


@REPLIES
@STREAMED
@pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
def test_llm(replies: list[str], is_streamed: bool, is_async: bool) -> None:
    model = Model(*replies)
    asked: list[tuple[str, int]] = []

    def get_weather(city: str, days: int) -> str:
        """Gets the weather."""
        asked.append((city, days))
        return "mild"

    tools = [llm_tool(get_weather)]

    async def run() -> str:
        chat = llm_model(AsyncPlain, async_http(model))
        return str(await chat.chain("The weather?", tools=tools, stream=is_streamed).text())

    if is_async:
        text = asyncio.run(run())
    else:
        chat = llm_model(Plain, sync_http(model))
        text = chat.chain("The weather?", tools=tools, stream=is_streamed).text()
    assert text.endswith(ANSWER)
    assert asked == [("Paris", 2)]
    assert len(model.requests) == len(replies)


def endless() -> Model:
    """A model whose reply no client reads to the end."""
    return Model("word " * 5000)


def weather(city: str, days: int) -> str:
    """Gets the weather."""
    return "mild"


def llm_tool(function: Any) -> Any:
    make: Any = llm.Tool.function
    return make(function)


def test_openai_agents_that_disconnects() -> None:
    model = endless()

    async def run() -> None:
        set_tracing_disabled(True)
        set_default_openai_client(async_openai(model))
        agent = SdkAgent(name="weather", model="m", tools=[function_tool(weather)])
        streamed = Runner.run_streamed(agent, "The weather?")
        async for event in streamed.stream_events():
            if event.type == "raw_response_event":
                streamed.cancel()

    asyncio.run(run())
    assert model.closed == 1
    assert model.sent < 3000


def test_langchain_that_disconnects() -> None:
    model = endless()
    chat = ChatOpenAI(model="m", base_url=BASE, api_key="k", http_client=sync_http(model), max_retries=0)  # type: ignore[arg-type]
    chunks: Any = chat.bind_tools([langchain_tool(weather)]).stream("The weather?")
    next(chunks)
    chunks.close()
    assert model.closed == 1
    assert model.sent < 100


def test_langchain_with_coroutines_that_disconnects() -> None:
    model = endless()

    async def run() -> None:
        chat = ChatOpenAI(
            model="m",
            base_url=BASE,
            api_key="k",  # type: ignore[arg-type]
            http_async_client=async_http(model),
            max_retries=0,
        )
        chunks: Any = chat.bind_tools([langchain_tool(weather)]).astream("The weather?")
        await anext(chunks)
        await chunks.aclose()

    asyncio.run(run())
    assert model.closed == 1
    assert model.sent < 100


def test_llm_that_disconnects() -> None:
    model = endless()
    reply = llm_model(Plain, sync_http(model)).prompt("The weather?", tools=[llm_tool(weather)])
    pieces = iter(reply)
    next(pieces)
    del pieces
    # It has nothing to close: the stream is closed when it is freed.
    gc.collect()
    assert model.closed == 1
    assert model.sent < 100


def test_llm_with_coroutines_that_disconnects() -> None:
    model = endless()

    async def run() -> None:
        reply = llm_model(AsyncPlain, async_http(model)).prompt("The weather?", tools=[llm_tool(weather)])
        async for _ in reply:
            break

    asyncio.run(run())
    gc.collect()
    assert model.closed == 1
    assert model.sent < 100


def test_pydantic_ai_that_disconnects() -> None:
    model = endless()
    agent = Agent(OpenAIChatModel("m", provider=OpenAIProvider(openai_client=async_openai(model))))

    @agent.tool_plain
    def get_weather(city: str, days: int) -> str:
        """Gets the weather."""
        return "mild"

    async def run() -> None:
        async with agent.run_stream("The weather?") as reply:
            async for _ in reply.stream_text():
                break

    asyncio.run(run())
    assert model.closed == 1
    assert model.sent < 3000


def test_the_examples_of_the_page() -> None:
    assert run_examples("docs/python-clients.md", "python") >= 6
