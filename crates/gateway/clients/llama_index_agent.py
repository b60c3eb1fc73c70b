"""The agent of LlamaIndex, whole and streamed. It reads parts of arguments that are not JSON, and runs the tool."""

import asyncio

from llama_index.core.agent.workflow import FunctionAgent
from llama_index.llms.openai_like import OpenAILike

from task import ANSWER, CITIES, addresses, check

right, wrong, *_ = addresses()


async def ask(url, is_streamed):
    """The answer, and the cities that the tool was asked about."""
    asked = []

    def get_weather(city: str = "nowhere") -> str:
        """Tells the weather."""
        asked.append(city)
        return "mild"

    llm = OpenAILike(
        model="m", api_base=url, api_key="none", is_chat_model=True, is_function_calling_model=True
    )
    agent = FunctionAgent(tools=[get_weather], llm=llm, streaming=is_streamed)
    answer = await agent.run("What is the weather?")
    return str(answer), asked


for is_streamed in (False, True):
    answer, asked = asyncio.run(ask(right, is_streamed))
    check((answer, sorted(asked)), (ANSWER, sorted(CITIES)))
    answer, asked = asyncio.run(ask(wrong, is_streamed))
    check((answer.strip(), asked), ("I cannot.", []))
