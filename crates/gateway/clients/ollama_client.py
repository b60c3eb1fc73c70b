"""The Python client of Ollama, whole answers and streams."""

from ollama import Client, ResponseError

from task import ANSWER, CITIES, TOOLS, addresses, check

right, wrong, unchecked, repaired = (address.removesuffix("/v1") for address in addresses())


def whole(client, messages):
    response = client.chat(model="m", messages=messages, tools=TOOLS, options={"temperature": 0})
    check(response.done, True)
    check(response.total_duration > 0 and response.eval_count is not None, True)
    return response.message, response.done_reason


def streamed(client, messages):
    content, calls = "", []
    for part in client.chat(model="m", messages=messages, tools=TOOLS, stream=True):
        content += part.message.content
        calls += part.message.tool_calls or []
    check(part.done and part.eval_count is not None, True)
    return type(part.message)(role="assistant", content=content, tool_calls=calls or None), part.done_reason


for ask in (whole, streamed):
    # The last gateway asks the model to repair the first reply, and repeats its calls once.
    for url, turns in ((right, 1), (repaired, 2)):
        client = Client(host=url)
        messages = [{"role": "user", "content": "What is the weather?"}]
        for _ in range(turns):
            message, reason = ask(client, messages)
            check(reason, "stop")
            check(url == repaired or message.content == "I look it up.\n", True)
            calls = message.tool_calls
            check([call.function.arguments["city"] for call in calls], CITIES)
            messages.append(message)
            for call in calls:
                messages.append({"role": "tool", "tool_name": call.function.name, "content": "mild"})
        message, reason = ask(client, messages)
        check((reason, message.content, message.tool_calls), ("stop", ANSWER, None))
    # The third gateway streams arguments, which are objects here, so it checks them too.
    for url in (wrong, unchecked):
        message, reason = ask(Client(host=url), messages[:1])
        check((reason, message.content, message.tool_calls), ("stop", "I cannot.", None))

client = Client(host=right)
check([model.model for model in client.list().models], ["replay"])
check("tools" in client.show("replay").capabilities, True)
for request in (lambda: client.show("other"), lambda: client.pull("other"), lambda: client.embed("m", "text")):
    try:
        request()
    except ResponseError as error:
        check((error.status_code, bool(error.error)), (404, True))
    else:
        raise SystemExit("a request that is not supported is accepted")
