"""The Python client of OpenAI, whole answers and its helper for streams."""

import json

from openai import OpenAI

from task import ANSWER, CITIES, TOOLS, addresses, check

right, wrong, unchecked, _ = addresses()


def whole(client, messages):
    answer = client.chat.completions.create(model="m", messages=messages, tools=TOOLS)
    return answer.choices[0]


def streamed(client, messages):
    options = {"include_usage": True}
    with client.chat.completions.stream(
        model="m", messages=messages, tools=TOOLS, stream_options=options
    ) as stream:
        kinds = {event.type for event in stream}
        answer = stream.get_final_completion()
    check(answer.usage is not None, True)
    if answer.choices[0].finish_reason == "tool_calls":
        check("tool_calls.function.arguments.delta" in kinds, True)
    return answer.choices[0]


for ask in (whole, streamed):
    client = OpenAI(base_url=right, api_key="none")
    messages = [{"role": "user", "content": "What is the weather?"}]
    choice = ask(client, messages)
    check(choice.finish_reason, "tool_calls")
    check(choice.message.content, "I look it up.\n")
    calls = choice.message.tool_calls
    check([json.loads(call.function.arguments)["city"] for call in calls], CITIES)
    messages.append(choice.message.model_dump(exclude_none=True))
    for call in calls:
        messages.append({"role": "tool", "tool_call_id": call.id, "content": "mild"})
    choice = ask(client, messages)
    check((choice.finish_reason, choice.message.content), ("stop", ANSWER))

    client = OpenAI(base_url=wrong, api_key="none")
    choice = ask(client, messages[:1])
    check((choice.finish_reason, choice.message.content, choice.message.tool_calls), ("stop", "I cannot.", None))

client = OpenAI(base_url=unchecked, api_key="none")
choice = streamed(client, messages[:1])
try:
    json.loads(choice.message.tool_calls[0].function.arguments)
except json.JSONDecodeError:
    pass
else:
    raise SystemExit("an invalid call can be read")
