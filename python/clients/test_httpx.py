"""Published clients that use httpx, unchanged: `httpx.txt` pins them."""

from __future__ import annotations

import asyncio
import gc
import json
from typing import Any

import httpx
import instructor
import litellm
import openai
import pytest
from examples import run_examples
from llama_index.core.agent.workflow import AgentStream, FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI as LlamaOpenAI
from pydantic import BaseModel
from scripted import CALL, INVALID, QUESTION, WEATHER, Model
from smolagents import ChatMessage, FinalAnswerTool, LogLevel, MessageRole, OpenAIServerModel, ToolCallingAgent
from smolagents import tool as smol_tool

import plaincall.httpx

BASE = "http://model.test/v1"
ANSWER = "It is mild."
FINAL = "!!!GADGET_START:final_answer\n!!!ARG:answer\nIt is mild.\n!!!GADGET_END\n"
REPAIRED = pytest.mark.parametrize("is_repaired", [False, True], ids=["valid", "repaired"])
ASYNCHRONOUS = pytest.mark.parametrize("is_async", [False, True], ids=["sync", "async"])
STREAMED = pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])


def scripted(is_repaired: bool, *replies: str) -> Model:
    return Model(*([INVALID] if is_repaired else []), CALL, *replies)


def weather(city: str, days: int) -> str:
    """Gets the weather."""
    return "mild"


def sync_http(model: Model) -> httpx.Client:
    return httpx.Client(transport=plaincall.httpx.Transport(model.sync_transport(httpx)))


def async_http(model: Model) -> httpx.AsyncClient:
    return httpx.AsyncClient(transport=plaincall.httpx.AsyncTransport(model.async_transport(httpx)))


def openai_client(model: Model) -> openai.OpenAI:
    return openai.OpenAI(base_url=BASE, api_key="k", http_client=sync_http(model), max_retries=0)


@REPAIRED
@STREAMED
def test_openai(is_repaired: bool, is_streamed: bool) -> None:
    completions: Any = openai_client(scripted(is_repaired)).chat.completions
    reply = completions.create(model="m", messages=QUESTION, tools=[WEATHER], stream=is_streamed)
    if is_streamed:
        deltas = [chunk.choices[0].delta for chunk in reply if chunk.choices]
        calls = [call for delta in deltas for call in delta.tool_calls or []]
        arguments = "".join(call.function.arguments or "" for call in calls)
    else:
        arguments = reply.choices[0].message.tool_calls[0].function.arguments
    assert json.loads(arguments) == {"city": "Paris", "days": 2}


@REPAIRED
@STREAMED
def test_smolagents(is_repaired: bool, is_streamed: bool) -> None:
    model = scripted(is_repaired, FINAL)
    asked: list[tuple[str, int]] = []

    def get_weather(city: str, days: int) -> str:
        """Gets the weather.

        Args:
            city: The city.
            days: The days.
        """
        asked.append((city, days))
        return "mild"

    server = OpenAIServerModel("m", api_base=BASE, api_key="k", client_kwargs={"http_client": sync_http(model)})
    agent = ToolCallingAgent(
        [smol_tool(get_weather)], server, stream_outputs=is_streamed, max_steps=3, verbosity_level=LogLevel.OFF
    )
    assert agent.run("The weather?") == ANSWER
    assert asked == [("Paris", 2)]


@REPAIRED
@STREAMED
def test_llama_index(is_repaired: bool, is_streamed: bool) -> None:
    model = scripted(is_repaired, ANSWER)
    asked: list[tuple[str, int]] = []

    def get_weather(city: str, days: int) -> str:
        """Gets the weather."""
        asked.append((city, days))
        return "mild"

    async def run() -> str:
        server = LlamaOpenAI(
            "gpt-4o-mini", api_base=BASE, api_key="k", async_http_client=async_http(model), max_retries=0
        )
        tool = FunctionTool.from_defaults(get_weather)
        agent = FunctionAgent(tools=[tool], llm=server, streaming=is_streamed)
        return str(await agent.run("The weather?"))

    assert asyncio.run(run()) == ANSWER
    assert asked == [("Paris", 2)]


class Weather(BaseModel):
    """The place."""

    city: str
    days: int


def async_openai_client(model: Model) -> openai.AsyncOpenAI:
    return openai.AsyncOpenAI(base_url=BASE, api_key="k", http_client=async_http(model), max_retries=0)


@REPAIRED
@STREAMED
@ASYNCHRONOUS
def test_instructor(is_repaired: bool, is_streamed: bool, is_async: bool) -> None:
    name = "PartialWeather" if is_streamed else "Weather"
    replies = [INVALID, CALL] if is_repaired else [CALL]
    model = Model(*(reply.replace("get_weather", name) for reply in replies))
    asked: Any = {"model": "m", "messages": QUESTION, "response_model": Weather, "max_retries": 0}

    async def run() -> Any:
        client = instructor.from_openai(async_openai_client(model), mode=instructor.Mode.TOOLS)
        if is_streamed:
            return [place async for place in client.chat.completions.create_partial(**asked)][-1]
        return await client.chat.completions.create(**asked)

    client = instructor.from_openai(openai_client(model), mode=instructor.Mode.TOOLS)
    completions: Any = client.chat.completions
    if is_async:
        place = asyncio.run(run())
    elif is_streamed:
        place = list(completions.create_partial(**asked))[-1]
    else:
        place = completions.create(**asked)
    assert (place.city, place.days) == ("Paris", 2)
    assert len(model.requests) == 1 + is_repaired


@REPAIRED
@STREAMED
@ASYNCHRONOUS
def test_litellm(is_repaired: bool, is_streamed: bool, is_async: bool) -> None:
    model = scripted(is_repaired)
    asked: Any = {"messages": QUESTION, "tools": [WEATHER], "api_base": BASE, "api_key": "k", "stream": is_streamed}

    async def run() -> Any:
        reply: Any = await litellm.acompletion("openai/m", client=async_openai_client(model), **asked)
        return [chunk async for chunk in reply] if is_streamed else reply

    complete: Any = litellm.completion
    reply: Any = asyncio.run(run()) if is_async else complete("openai/m", client=openai_client(model), **asked)
    if is_streamed:
        joined: Any = litellm.stream_chunk_builder
        reply = joined(list(reply))
    [call] = reply.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Paris", "days": 2}
    assert len(model.requests) == 1 + is_repaired


def endless() -> Model:
    """A model whose reply no client reads to the end."""
    return Model("word " * 5000)


def check_disconnected(model: Model) -> None:
    assert model.closed == 1
    assert model.sent < 100


def test_openai_that_disconnects() -> None:
    model = endless()
    completions: Any = openai_client(model).chat.completions
    stream = completions.create(model="m", messages=QUESTION, tools=[WEATHER], stream=True)
    next(stream)
    stream.close()
    check_disconnected(model)


def test_smolagents_that_disconnects() -> None:
    # A run that is closed raises an exception; its model has a stream.
    model = endless()
    server = OpenAIServerModel("m", api_base=BASE, api_key="k", client_kwargs={"http_client": sync_http(model)})
    messages: Any = [ChatMessage(role=MessageRole.USER, content="The weather?")]
    pieces = server.generate_stream(messages, tools_to_call_from=[FinalAnswerTool()])
    next(pieces)
    pieces.close()
    del pieces
    # It closes nothing: the stream is closed when it is freed.
    gc.collect()
    check_disconnected(model)


def test_llama_index_that_disconnects() -> None:
    model = endless()

    async def run() -> None:
        server = LlamaOpenAI(
            "gpt-4o-mini", api_base=BASE, api_key="k", async_http_client=async_http(model), max_retries=0
        )
        handler = FunctionAgent(tools=[FunctionTool.from_defaults(weather)], llm=server, streaming=True).run("Hi.")
        async for event in handler.stream_events():
            if isinstance(event, AgentStream):
                break
        await handler.cancel_run()

    asyncio.run(run())
    check_disconnected(model)


def test_instructor_that_disconnects() -> None:
    # Without coroutines, it reads the stream to the end before it returns the parts.
    model = Model("!!!GADGET_START:PartialWeather\n!!!ARG:city\n" + "word " * 5000)

    async def run() -> None:
        transport = plaincall.httpx.AsyncTransport(model.async_transport(httpx), arguments="stream")
        http = httpx.AsyncClient(transport=transport)
        client = instructor.from_openai(openai.AsyncOpenAI(base_url=BASE, api_key="k", http_client=http, max_retries=0))
        completions: Any = client.chat.completions
        places = completions.create_partial(model="m", messages=QUESTION, response_model=Weather, max_retries=0)
        await anext(places)
        await places.aclose()
        del places
        # As above.
        gc.collect()

    asyncio.run(run())
    check_disconnected(model)


def test_litellm_that_disconnects() -> None:
    model = endless()

    async def run() -> None:
        reply: Any = await litellm.acompletion(
            "openai/m",
            messages=QUESTION,
            tools=[WEATHER],
            api_base=BASE,
            api_key="k",
            client=async_openai_client(model),
            stream=True,
        )
        await anext(reply)
        await reply.aclose()

    asyncio.run(run())
    check_disconnected(model)


def test_the_examples_of_the_page() -> None:
    assert run_examples("docs/python-clients.md", "python httpx") >= 1
