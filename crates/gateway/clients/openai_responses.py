"""The Python client of OpenAI with the Responses API, whole responses and its helper for streams."""

import json

from openai import APIError, OpenAI

from task import ANSWER, CITIES, TOOLS, addresses, check

right, wrong, unchecked, _ = addresses()
tools = [{"type": "function", "strict": False, **tool["function"]} for tool in TOOLS]


def whole(client, items):
    return client.responses.create(model="m", input=items, tools=tools, store=False)


def streamed(client, items):
    with client.responses.stream(model="m", input=items, tools=tools, store=False) as stream:
        events = list(stream)
        answer = stream.get_final_response()
    check([event.sequence_number for event in events], list(range(len(events))))
    kinds = {event.type for event in events}
    calls = [item for item in answer.output if item.type == "function_call"]
    check("response.function_call_arguments.delta" in kinds, bool(calls))
    check(answer.usage is not None, True)
    return answer


for ask in (whole, streamed):
    client = OpenAI(base_url=right, api_key="none")
    items = [{"role": "user", "content": "What is the weather?"}]
    answer = ask(client, items)
    check((answer.status, answer.output_text), ("completed", "I look it up.\n"))
    calls = [item for item in answer.output if item.type == "function_call"]
    check([json.loads(call.arguments)["city"] for call in calls], CITIES)
    items += [item.model_dump(exclude_none=True) for item in answer.output]
    for call in calls:
        items.append({"type": "function_call_output", "call_id": call.call_id, "output": "mild"})
    answer = ask(client, items)
    check((answer.status, answer.output_text), ("completed", ANSWER))

    # The model writes an invalid call, which is repaired.
    client = OpenAI(base_url=wrong, api_key="none")
    answer = ask(client, items[:1])
    check((answer.status, answer.output_text), ("completed", "I cannot."))
    check([item.type for item in answer.output], ["message"])

client = OpenAI(base_url=unchecked, api_key="none")
answer = streamed(client, items[:1])
try:
    json.loads([item for item in answer.output if item.type == "function_call"][0].arguments)
except json.JSONDecodeError:
    pass
else:
    raise SystemExit("an invalid call can be read")

try:
    client.responses.create(model="m", input="Go on.", previous_response_id="resp_1")
except APIError as error:
    check("send the whole conversation" in error.message, True)
else:
    raise SystemExit("nothing is stored")
