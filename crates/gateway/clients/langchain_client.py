"""ChatOpenAI of LangChain, whole and streamed. It closes incomplete JSON automatically."""

from langchain_core.messages import HumanMessage, ToolMessage
from langchain_openai import ChatOpenAI

from task import ANSWER, CITIES, TOOLS, addresses, check

right, wrong, unchecked, _ = addresses()


def streamed(model, messages):
    whole = None
    for chunk in model.stream(messages):
        whole = chunk if whole is None else whole + chunk
    return whole


for ask in (lambda model, messages: model.invoke(messages), streamed):
    model = ChatOpenAI(base_url=right, api_key="none", model="m").bind_tools(TOOLS)
    messages = [HumanMessage("What is the weather?")]
    answer = ask(model, messages)
    check([call["args"]["city"] for call in answer.tool_calls], CITIES)
    messages.append(answer)
    messages += [ToolMessage("mild", tool_call_id=call["id"]) for call in answer.tool_calls]
    check(ask(model, messages).content, ANSWER)

    model = ChatOpenAI(base_url=wrong, api_key="none", model="m").bind_tools(TOOLS)
    answer = ask(model, messages[:1])
    check((answer.content, answer.tool_calls, answer.invalid_tool_calls), ("I cannot.", [], []))

model = ChatOpenAI(base_url=unchecked, api_key="none", model="m").bind_tools(TOOLS)
answer = streamed(model, messages[:1])
check((len(answer.tool_calls), len(answer.invalid_tool_calls)), (0, 1))
