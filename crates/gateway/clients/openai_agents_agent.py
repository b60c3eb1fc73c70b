"""The agent of OpenAI's Agents SDK in its default mode, the Responses API, whole and streamed."""

import asyncio

from agents import Agent, Runner, function_tool, set_default_openai_client, set_tracing_disabled
from openai import AsyncOpenAI

from task import ANSWER, CITIES, addresses, check

right, wrong, unchecked, repaired = addresses()
set_tracing_disabled(True)


async def ask(url, is_streamed):
    """The answer, and the cities that the tool was asked about."""
    asked = []

    @function_tool
    def get_weather(city: str) -> str:
        """Tells the weather."""
        asked.append(city)
        return "mild"

    set_default_openai_client(AsyncOpenAI(base_url=url, api_key="none"))
    agent = Agent(name="weather", model="m", tools=[get_weather])
    if not is_streamed:
        return (await Runner.run(agent, "What is the weather?")).final_output, asked
    run = Runner.run_streamed(agent, "What is the weather?")
    kinds = {event.type async for event in run.stream_events()}
    check("raw_response_event" in kinds, True)
    return run.final_output, asked


async def main():
    for is_streamed in (False, True):
        check(await ask(right, is_streamed), (ANSWER, CITIES))
        check(await ask(wrong, is_streamed), ("I cannot.", []))
        # The recorded reply to the repair is also the reply to the results.
        check(await ask(repaired, is_streamed), (ANSWER, CITIES * 2))
    # It sends the reason of the invalid call back, and the model answers.
    check(await ask(unchecked, True), ("I cannot.", []))


asyncio.run(main())
