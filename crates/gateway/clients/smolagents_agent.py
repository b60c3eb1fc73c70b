"""The agent of smolagents, whole and streamed. It runs a tool with the text of arguments that are not JSON."""

from smolagents import LogLevel, OpenAIServerModel, ToolCallingAgent, tool

from task import ANSWER, CITIES, addresses, check

right, wrong, *_ = addresses()
asked = []


@tool
def get_weather(city: str = "nowhere") -> str:
    """Tells the weather.

    Args:
        city: The city.
    """
    asked.append(city)
    return "mild"


for is_streamed in (False, True):
    for url, expected, cities in ((right, ANSWER, CITIES), (wrong, "I cannot.", [])):
        asked.clear()
        model = OpenAIServerModel(model_id="m", api_base=url, api_key="none")
        agent = ToolCallingAgent(
            tools=[get_weather],
            model=model,
            stream_outputs=is_streamed,
            max_steps=3,
            verbosity_level=LogLevel.OFF,
        )
        answer = agent.run("What is the weather?")
        check((answer, sorted(asked)), (expected, sorted(cities)))
