"""The Python client of Anthropic, whole messages and its helper for streams."""

from anthropic import Anthropic, BadRequestError

from task import ANSWER, CITIES, TOOLS, addresses, check

right, wrong, unchecked, _ = (address.removesuffix("/v1") for address in addresses())
functions = [tool["function"] for tool in TOOLS]
tools = [
    {
        "name": function["name"],
        "description": function["description"],
        "input_schema": function["parameters"],
    }
    for function in functions
]


def whole(client, messages):
    return client.messages.create(model="m", max_tokens=1000, messages=messages, tools=tools)


def streamed(client, messages):
    request = {"model": "m", "max_tokens": 1000, "messages": messages, "tools": tools}
    with client.messages.stream(**request) as stream:
        kinds = [event.type for event in stream]
        message = stream.get_final_message()
    check((kinds[0], kinds[-1]), ("message_start", "message_stop"))
    check("input_json" in kinds, message.stop_reason == "tool_use")
    return message


for ask in (whole, streamed):
    client = Anthropic(base_url=right, api_key="none")
    messages = [{"role": "user", "content": "What is the weather?"}]
    message = ask(client, messages)
    check((message.stop_reason, message.content[0].text), ("tool_use", "I look it up.\n"))
    calls = [block for block in message.content if block.type == "tool_use"]
    check([call.input["city"] for call in calls], CITIES)
    messages.append({"role": "assistant", "content": message.content})
    # In another order than the calls.
    results = [
        {"type": "tool_result", "tool_use_id": call.id, "content": "mild"} for call in calls[::-1]
    ]
    messages.append({"role": "user", "content": results})
    message = ask(client, messages)
    check((message.stop_reason, message.content[-1].text), ("end_turn", ANSWER))

    # The model writes an invalid call, which is repaired.
    client = Anthropic(base_url=wrong, api_key="none")
    message = ask(client, messages[:1])
    check(message.stop_reason, "end_turn")
    check([block.text for block in message.content], ["I cannot."])

client = Anthropic(base_url=unchecked, api_key="none")
with client.messages.stream(
    model="m", max_tokens=1000, messages=messages[:1], tools=tools
) as stream:
    pieces = [event.partial_json for event in stream if event.type == "input_json"]
check(bool(pieces), True)

client = Anthropic(base_url=right, api_key="none")
check([model.id for model in client.models.list()], ["replay"])
try:
    choice = {"type": "tool", "name": "nothing"}
    client.messages.create(
        model="m", max_tokens=10, messages=messages[:1], tools=tools, tool_choice=choice
    )
except BadRequestError as error:
    check(error.body["error"]["type"], "invalid_request_error")
else:
    raise SystemExit("a choice of an unknown tool is accepted")
