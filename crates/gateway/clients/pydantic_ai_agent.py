"""The agent of pydantic-ai with each API, whole and streamed."""

import asyncio

from anthropic import AsyncAnthropic
from openai import AsyncOpenAI
from pydantic_ai import Agent
from pydantic_ai.models.anthropic import AnthropicModel
from pydantic_ai.models.openai import OpenAIChatModel, OpenAIResponsesModel
from pydantic_ai.providers.anthropic import AnthropicProvider
from pydantic_ai.providers.openai import OpenAIProvider

from task import ANSWER, CITIES, addresses, check

right, wrong, unchecked, repaired = addresses()


def openai(model):
    return lambda url: model(
        "m", provider=OpenAIProvider(openai_client=AsyncOpenAI(base_url=url, api_key="none"))
    )


def anthropic(url):
    client = AsyncAnthropic(base_url=url.removesuffix("/v1"), api_key="none")
    return AnthropicModel("m", provider=AnthropicProvider(anthropic_client=client))


async def ask(model, is_streamed):
    """The answer, and the cities that the tool was asked about."""
    asked = []
    agent = Agent(model)

    @agent.tool_plain
    def get_weather(city: str) -> str:
        """Tells the weather."""
        asked.append(city)
        return "mild"

    if not is_streamed:
        return (await agent.run("What is the weather?")).output, asked
    # It runs until the answer, and streams every reply.
    async with agent.iter("What is the weather?") as run:
        async for node in run:
            if Agent.is_model_request_node(node):
                async with node.stream(run.ctx) as stream:
                    async for _ in stream:
                        pass
    return run.result.output, asked


async def main():
    for model in (openai(OpenAIChatModel), openai(OpenAIResponsesModel), anthropic):
        for is_streamed in (False, True):
            answer, asked = await ask(model(right), is_streamed)
            check((answer, sorted(asked)), (ANSWER, sorted(CITIES)))
            check(await ask(model(wrong), is_streamed), ("I cannot.", []))
            # The recorded reply to the repair is also the reply to the results.
            answer, asked = await ask(model(repaired), is_streamed)
            check((answer, sorted(asked)), (ANSWER, sorted(CITIES * 2)))
        check(await ask(model(unchecked), True), ("I cannot.", []))


asyncio.run(main())
