# pyright: reportUnnecessaryTypeIgnoreComment=true
"""What type checkers accept, and what they must not: there, a comment that is not needed is an error. Nothing runs it."""

from __future__ import annotations

from typing import Literal

import anthropic.types
import httpx
import httpx2
import openai.types.chat
import openai.types.responses
from typing_extensions import assert_type

import plaincall as pc
import plaincall.httpx
import plaincall.httpx2


@pc.tool
def add(a: int, b: int = 5) -> int:
    return a + b


@pc.tool(effect="read")
async def weather(city: str, unit: Literal["C", "F"] = "C") -> str:
    return f"21 {unit} in {city}"


async def tools() -> None:
    assert_type(add(1, b=2), int)
    assert_type(await weather("Paris"), str)
    add("1")  # type: ignore[arg-type]
    add(1, c=2)  # type: ignore[call-arg]
    await weather("Paris", unit="K")  # type: ignore[arg-type]
    toolbox = pc.Toolbox([add, weather, print, {"name": "defined"}], effects={"defined": "read"}, unclosed="run")
    assert_type(toolbox["add"].effect, Literal["read", "idempotent", "write"])
    pc.tool(effect="reads")  # type: ignore[call-overload]
    pc.Toolbox([add], unclosed="ignore")  # type: ignore[arg-type]
    toolbox.grammar("llama.cpp")
    toolbox.grammar("llama-cpp")  # type: ignore[arg-type]
    await pc.execute([add], [])  # type: ignore[arg-type]


def replies(
    toolbox: pc.Toolbox,
    chat: openai.types.chat.ChatCompletion,
    message: anthropic.types.Message,
    response: openai.types.responses.Response,
    done_reason: str | None,
) -> None:
    choice = chat.choices[0]
    toolbox.parse(choice.message.content or "", stop=choice.finish_reason)
    toolbox.parse("", stop=message.stop_reason)
    # As Ollama's client has it.
    pc.parse("", stop=done_reason)
    toolbox.reader().finish(stop=done_reason)
    pc.table([], stop=done_reason)
    pc.parse("", stop=1)  # type: ignore[arg-type]
    toolbox.history(choice.message.content, choice.message.tool_calls)
    toolbox.history(message.content)
    toolbox.history(response.output)
    toolbox.history(5)  # type: ignore[arg-type]


def transports() -> None:
    httpx.Client(transport=plaincall.httpx.Transport(httpx.HTTPTransport()))
    httpx2.AsyncClient(transport=pc.httpx2.AsyncTransport(repair_rounds=1, constrain="vllm"))
    plaincall.httpx2.Transport(httpx.HTTPTransport())  # type: ignore[arg-type]
    plaincall.httpx2.Transport(arguments="streamed")  # type: ignore[arg-type]
    plaincall.httpx2.Transport(repair_round=1)  # type: ignore[call-arg]
    httpx.Client(transport=plaincall.httpx2.Transport())  # type: ignore[arg-type]


def values(document: pc.Document, call: pc.Call, dialect: pc.Dialect) -> None:
    by_dialect: dict[pc.Dialect, pc.Document] = {dialect: document}
    assert_type(by_dialect[dialect] == document, bool)
    call.arguments = {}  # type: ignore[misc]
    pc.Dialect.block(strict=True)  # type: ignore[call-arg]
    assert_type(pc.__version__, str)
