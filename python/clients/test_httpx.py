"""Published clients that use httpx, unchanged: `httpx.txt` pins them."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import httpx
import instructor
import litellm
import openai
import pytest
from examples import run_examples
from llama_index.core.agent.workflow import FunctionAgent
from llama_index.core.tools import FunctionTool
from llama_index.llms.openai import OpenAI as LlamaOpenAI
from pydantic import BaseModel
from scripted import CALL, INVALID, QUESTION, WEATHER, Model
from smolagents import LogLevel, OpenAIServerModel, ToolCallingAgent
from smolagents import tool as smol_tool

import plaincall.httpx

BASE = "http://model.test/v1"
ANSWER = "It is mild."
FINAL = "!!!GADGET_START:final_answer\n!!!ARG:answer\nIt is mild.\n!!!GADGET_END\n"
REPAIRED = pytest.mark.parametrize("is_repaired", [False, True], ids=["valid", "repaired"])
STREAMED = pytest.mark.parametrize("is_streamed", [False, True], ids=["whole", "streamed"])


def scripted(is_repaired: bool, *replies: str) -> Model:
    return Model(*([INVALID] if is_repaired else []), CALL, *replies)


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

    @smol_tool
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
        [get_weather], server, stream_outputs=is_streamed, max_steps=3, verbosity_level=LogLevel.OFF
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


@REPAIRED
def test_instructor(is_repaired: bool) -> None:
    call = CALL.replace("get_weather", "Weather")
    model = Model(*([INVALID.replace("get_weather", "Weather")] if is_repaired else []), call)
    client = instructor.from_openai(openai_client(model), mode=instructor.Mode.TOOLS)
    completions: Any = client.chat.completions
    place = completions.create(model="m", messages=QUESTION, response_model=Weather, max_retries=0)
    assert (place.city, place.days) == ("Paris", 2)


@REPAIRED
@STREAMED
def test_litellm(is_repaired: bool, is_streamed: bool) -> None:
    client = openai_client(scripted(is_repaired))
    complete: Any = litellm.completion
    reply = complete(
        "openai/m", messages=QUESTION, tools=[WEATHER], api_base=BASE, api_key="k", client=client, stream=is_streamed
    )
    if is_streamed:
        reply = litellm.stream_chunk_builder(list(reply))
    [call] = reply.choices[0].message.tool_calls
    assert json.loads(call.function.arguments) == {"city": "Paris", "days": 2}


def test_a_client_that_disconnects() -> None:
    model = Model("word " * 5000)
    completions: Any = openai_client(model).chat.completions
    stream = completions.create(model="m", messages=QUESTION, tools=[WEATHER], stream=True)
    next(stream)
    stream.close()
    assert model.closed == 1
    assert model.sent < 100


def test_the_examples_of_the_page() -> None:
    assert run_examples("docs/python-clients.md", "python httpx") >= 1
