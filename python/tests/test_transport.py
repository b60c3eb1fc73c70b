"""The transports with published clients and a scripted model."""

from __future__ import annotations

import asyncio
import contextlib
import json
import logging
import socketserver
import threading
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import Any

import anthropic
import httpx
import httpx2
import openai
import pytest
from scripted import CALL, DONE, INVALID, QUESTION, WEATHER, Model, completion_of, stream_of

import plaincall.httpx
import plaincall.httpx2
from plaincall import _transport
from plaincall._gateway import ModelSettings, Settings
from plaincall._plaincall import Adapter

LIBRARIES: dict[str, Any] = {"httpx": httpx, "httpx2": httpx2}
TRANSPORTS: dict[str, Any] = {"httpx": plaincall.httpx, "httpx2": plaincall.httpx2}
BASE = "http://model.test/v1"


def sync_client(library: str, model: Model, /, **settings: Any) -> Any:
    http = LIBRARIES[library]
    return http.Client(transport=TRANSPORTS[library].Transport(model.sync_transport(http), **settings))


def async_client(library: str, model: Model, /, **settings: Any) -> Any:
    http = LIBRARIES[library]
    return http.AsyncClient(transport=TRANSPORTS[library].AsyncTransport(model.async_transport(http), **settings))


def openai_client(model: Model, /, **settings: Any) -> Any:
    return openai.OpenAI(
        base_url=BASE, api_key="k", http_client=sync_client("httpx2", model, **settings), max_retries=0
    )


def openai_async_client(model: Model, /, **settings: Any) -> Any:
    return openai.AsyncOpenAI(
        base_url=BASE, api_key="k", http_client=async_client("httpx2", model, **settings), max_retries=0
    )


def chat(model: Model, /, **settings: Any) -> Any:
    return openai_client(model, **settings).chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER])


def joined(chunks: list[Any]) -> tuple[str, str, str, str | None]:
    """Returns text, name, arguments and finish reason of a streamed reply."""
    text, name, arguments, finish = "", "", "", None
    for chunk in chunks:
        for choice in chunk.choices:
            text += choice.delta.content or ""
            finish = choice.finish_reason or finish
            for call in choice.delta.tool_calls or []:
                name += call.function.name or ""
                arguments += call.function.arguments or ""
    return text, name, arguments, finish


def test_every_key_of_a_model() -> None:
    tomllib = pytest.importorskip("tomllib")
    text = (Path(__file__).parents[2] / "testing/every_key.toml").read_text("utf-8")
    tables = tomllib.loads(text.replace("{url}", BASE).replace("${TEAM}", "blue"))["models"]
    for settings in tables.values():
        model = Model("Hello.")
        chat(model, **settings)
        if settings.get("model") == "small":
            request, headers = model.requests[0], model.headers[0]
            assert (request["model"], request["temperature"], request["max_tokens"]) == ("small", 0.5, 9)
            assert (request["top_k"], headers["x-team"]) == (3, "of blue")


@pytest.mark.parametrize("arguments", ["checked", "stream"])
def test_openai(arguments: str) -> None:
    model = Model(CALL)
    reply = chat(model, arguments=arguments)
    [call] = reply.choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Paris", "days": 2})
    assert (reply.choices[0].finish_reason, reply.choices[0].message.content.strip()) == ("tool_calls", "I look.")
    assert reply.usage.total_tokens == 12
    assert reply._request_id == "r1"
    assert model.closed == 1
    assert "get_weather" in model.requests[0]["messages"][0]["content"]
    assert model.headers[0]["authorization"] == "Bearer k"
    assert model.headers[0]["accept-encoding"] == "identity"


@pytest.mark.parametrize("arguments", ["checked", "stream"])
def test_openai_streamed(arguments: str) -> None:
    model = Model(CALL)
    stream = openai_client(model, arguments=arguments).chat.completions.create(
        model="m", messages=QUESTION, tools=[WEATHER], stream=True
    )
    first = next(stream)
    # The first piece is passed on before the reply has ended.
    assert model.sent < len(CALL) / 7
    text, name, call, finish = joined([first, *stream])
    assert (text.strip(), name, json.loads(call), finish) == (
        "I look.",
        "get_weather",
        {"city": "Paris", "days": 2},
        "tool_calls",
    )
    assert model.closed == 1


async def test_openai_async() -> None:
    model = Model(CALL, CALL)
    client = openai_async_client(model)
    reply = await client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER])
    assert reply.choices[0].message.tool_calls[0].function.name == "get_weather"
    stream = await client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER], stream=True)
    _, name, call, finish = joined([chunk async for chunk in stream])
    assert (name, json.loads(call), finish) == ("get_weather", {"city": "Paris", "days": 2}, "tool_calls")
    assert model.closed == 2


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_repair_round(library: str, stream: bool) -> None:
    request = {"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": stream}
    model = Model(INVALID, CALL)
    with sync_client(library, model) as client:
        one = client.post(f"{BASE}/chat/completions", json=request)
    other_model = Model(INVALID, CALL)
    async with async_client(library, other_model) as client:
        other = await client.post(f"{BASE}/chat/completions", json=request)
    for response, asked in ((one, model), (other, other_model)):
        assert response.status_code == 200
        assert "Paris" in response.text and "two" not in response.text
        first, second = asked.requests
        assert second["messages"][: len(first["messages"])] == first["messages"]
        assert "expected an integer, found `two`" in second["messages"][-1]["content"]
        assert asked.closed == 2
    assert one.headers["content-type"] == ("text/event-stream" if stream else "application/json")


def test_without_a_repair_the_call_is_not_sent() -> None:
    with pytest.raises(openai.InternalServerError):
        model = Model(INVALID)
        openai_client(model, repair_rounds=0).chat.completions.create(
            model="m", messages=QUESTION, tools=[WEATHER], tool_choice="required"
        )


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_a_client_that_disconnects(library: str) -> None:
    model = Model(CALL * 50)
    client = sync_client(library, model)
    request = {"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": True}
    with client.stream("POST", f"{BASE}/chat/completions", json=request) as response:
        chunks = response.iter_bytes()
        next(chunks)
        assert model.closed == 0
    assert model.closed == 1
    assert model.sent < 10


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
async def test_a_model_server_that_keeps_its_stream_open(library: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_transport, "USAGE_WAIT", 0.2)
    model = Model(CALL, stall=60)
    client = async_client(library, model)
    request = {"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": True}
    response = await asyncio.wait_for(client.post(f"{BASE}/chat/completions", json=request), 30)
    assert "get_weather" in response.text
    assert response.text.endswith("data: [DONE]\n\n")
    assert model.closed == 1


class Broken(Model):
    """Its connection breaks instead of the last piece, or of the first."""

    def __init__(self, error: Exception, is_early: bool) -> None:
        super().__init__(CALL)
        self.error, self.is_early = error, is_early

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> Any:
        status, content_type, pieces = super().answer(path, headers, body)

        def broken() -> Iterator[bytes]:
            for piece in pieces:
                if self.is_early or piece == DONE:
                    raise self.error
                yield piece

        return status, content_type, broken()


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize("error", ["ReadTimeout", "RemoteProtocolError"])
async def test_a_connection_that_breaks_after_the_end_of_a_reply(library: str, error: str) -> None:
    kind = getattr(LIBRARIES[library], error)
    request = {"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": True}
    one, other = Broken(kind("broken"), False), Broken(kind("broken"), False)
    async with async_client(library, other) as client:
        responses = [await client.post(f"{BASE}/chat/completions", json=request)]
    with sync_client(library, one) as client:
        responses.append(client.post(f"{BASE}/chat/completions", json=request))
    for response, model in zip(responses, (other, one), strict=True):
        assert "get_weather" in response.text and "error" not in response.text
        assert response.text.endswith("data: [DONE]\n\n")
        assert model.closed == 1
    # Before the end of a reply it is an error.
    async with async_client(library, Broken(kind("broken"), True)) as client:
        with pytest.raises(kind):
            await client.post(f"{BASE}/chat/completions", json=request)
    with sync_client(library, Broken(kind("broken"), True)) as client, pytest.raises(kind):
        client.post(f"{BASE}/chat/completions", json=request)


@contextlib.contextmanager
def closing_server(*answers: bytes) -> Iterator[str]:
    """A server that sends these bytes as the answers to its requests, and then closes each connection."""
    left = list(answers)

    class Handler(socketserver.StreamRequestHandler):
        def handle(self) -> None:
            length = 0
            while line := self.rfile.readline().strip().lower():
                if line.startswith(b"content-length:"):
                    length = int(line.partition(b":")[2])
            self.rfile.read(length)
            self.wfile.write(left.pop(0))

    with socketserver.TCPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever, args=(0.01,))
        thread.start()
        try:
            yield f"http://127.0.0.1:{server.server_address[1]}/v1/chat/completions"
        finally:
            server.shutdown()
            thread.join()
    assert left == []


def http_answer(status: str, body: bytes, length: int) -> bytes:
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: application/json\r\ncontent-length: {length}\r\nconnection: close\r\n\r\n"
    )
    return head.encode() + body


BROKEN_ANSWERS = [b"", http_answer("200 OK", b'{"choices"', 99), http_answer("503 Overloaded", b"{", 99)]


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize("broken", BROKEN_ANSWERS, ids=["no answer", "part of an answer", "part of an error"])
@pytest.mark.parametrize("stream", [False, True])
async def test_a_connection_that_breaks_in_a_repair_round(library: str, broken: bytes, stream: bool) -> None:
    http: Any = LIBRARIES[library]
    request = {"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": stream}

    async def responses(*answers: bytes) -> AsyncIterator[Any]:
        with closing_server(*answers) as url, http.Client(transport=TRANSPORTS[library].Transport()) as client:
            yield lambda: asyncio.to_thread(client.post, url, json=request)
        with closing_server(*answers) as url:
            async with http.AsyncClient(transport=TRANSPORTS[library].AsyncTransport()) as client:
                yield lambda: client.post(url, json=request)

    text = completion_of("!!!gadget_start:get_weather\n!!!gadget_end\n")
    # The first reply is the answer.
    async for respond in responses(http_answer("200 OK", text, len(text)), broken):
        response = await respond()
        assert response.status_code == 200 and "gadget_start:get_weather" in response.text
        assert "error" not in response.text
    invalid = completion_of(INVALID)
    async for respond in responses(http_answer("200 OK", invalid, len(invalid)), broken):
        response = await respond()
        # A stream begins with the first reply.
        assert response.status_code == (200 if stream else 502)
        assert "error" in response.text and "Paris" not in response.text
    # The client gets the error of its own library if there is no reply.
    async for respond in responses(broken):
        with pytest.raises(http.RemoteProtocolError):
            await respond()


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
async def test_an_async_client_that_disconnects(library: str) -> None:
    model = Model(CALL * 50, CALL * 50)
    client = async_client(library, model)
    request = {"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": True}
    async with client.stream("POST", f"{BASE}/chat/completions", json=request) as response:
        chunks = response.aiter_bytes()
        await anext(chunks)
        assert model.closed == 0
    assert model.closed == 1

    async def cancelled() -> None:
        async with client.stream("POST", f"{BASE}/chat/completions", json=request) as response:
            async for _ in response.aiter_bytes():
                await asyncio.sleep(60)

    task = asyncio.create_task(cancelled())
    await asyncio.sleep(0.05)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert model.closed == 2


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("replies", [[], [INVALID]], ids=["first answer", "repair round"])
async def test_a_cancelled_request_closes_the_answer(library: str, stream: bool, replies: list[str]) -> None:
    """The model server stops in the middle of its last answer."""
    http = LIBRARIES[library]
    begun, closed = asyncio.Event(), []

    class Waiting(Model):
        def async_transport(self, http: Any) -> Any:
            model, inner = self, super().async_transport(http)

            class Stream(http.AsyncByteStream):  # type: ignore[misc]
                async def __aiter__(self) -> Any:
                    yield next(stream_of(CALL)) if stream else b"{"
                    begun.set()
                    await asyncio.Event().wait()

                async def aclose(self) -> None:
                    closed.append(True)

            class Outer(http.AsyncBaseTransport):  # type: ignore[misc]
                async def handle_async_request(self, request: Any) -> Any:
                    if model.replies:
                        return await inner.handle_async_request(request)
                    kind = "text/event-stream" if stream else "application/json"
                    return http.Response(200, headers={"content-type": kind}, stream=Stream())

            return Outer()

    model = Waiting(*replies)
    request = {"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": stream}
    async with http.AsyncClient(transport=TRANSPORTS[library].AsyncTransport(model.async_transport(http))) as client:
        task = asyncio.create_task(client.post(f"{BASE}/chat/completions", json=request))
        await asyncio.wait_for(begun.wait(), 5)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
    assert (closed, model.closed) == ([True], len(replies))


def test_responses() -> None:
    model = Model(CALL, CALL)
    client = openai_client(model)
    tool = {"type": "function", "strict": False, **WEATHER["function"]}
    reply = client.responses.create(model="m", input="The weather in Paris?", tools=[tool])
    call = next(item for item in reply.output if item.type == "function_call")
    assert (call.name, json.loads(call.arguments)) == ("get_weather", {"city": "Paris", "days": 2})
    assert model.paths == ["/v1/chat/completions"]
    events = list(client.responses.create(model="m", input="The weather in Paris?", tools=[tool], stream=True))
    assert events[-1].type == "response.completed"
    assert any(event.type == "response.function_call_arguments.done" for event in events)


def test_other_requests_of_the_responses_api_are_rejected() -> None:
    model = Model()
    with sync_client("httpx2", model) as client:
        for path in ("responses/compact", "responses/input_tokens", "messages/batches", "responses/r1/other"):
            response = client.post(f"{BASE}/{path}", json={"model": "m", "input": "x", "tools": [WEATHER]})
            assert response.status_code == 404
            assert "is not supported" in response.json()["error"]["message"]
        response = client.post(f"{BASE}/responses", json={"model": "m", "input": 5, "tools": []})
        assert response.status_code == 400
        response = client.post(f"{BASE}/responses", content=b"not JSON")
        assert response.status_code == 400
    assert model.requests == []


def test_anthropic() -> None:
    model = Model(CALL, CALL)
    client = anthropic.Anthropic(
        base_url="http://model.test", api_key="k", http_client=sync_client("httpx2", model), max_retries=0
    )
    tool: Any = {"name": "get_weather", "input_schema": WEATHER["function"]["parameters"]}
    reply = client.messages.create(model="m", max_tokens=99, messages=QUESTION, tools=[tool])
    call = next(block for block in reply.content if block.type == "tool_use")
    assert (call.name, call.input, reply.stop_reason) == ("get_weather", {"city": "Paris", "days": 2}, "tool_use")
    assert model.paths == ["/v1/chat/completions"]
    assert model.headers[0]["authorization"] == "Bearer k"
    with client.messages.stream(model="m", max_tokens=99, messages=QUESTION, tools=[tool]) as stream:
        assert stream.get_final_message().stop_reason == "tool_use"


def test_paths_below_any_base() -> None:
    request = {"model": "m", "messages": QUESTION, "tools": [WEATHER]}
    model = Model(*[CALL] * 3)
    with sync_client("httpx2", model) as client:
        for path in ("/chat/completions", "/a/b/v2/chat/completions?version=1", "/v1/chat/completions/"):
            reply = client.post(f"http://model.test{path}", json=request).json()
            assert reply["choices"][0]["finish_reason"] == "tool_calls"
    assert model.paths == ["/chat/completions", "/a/b/v2/chat/completions", "/v1/chat/completions"]


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
def test_the_path_keeps_its_encoding(library: str) -> None:
    targets = []

    class Recorded(Model):
        def sync_transport(self, http: Any) -> Any:
            inner = super().sync_transport(http)

            class Outer(http.BaseTransport):  # type: ignore[misc]
                def handle_request(self, request: Any) -> Any:
                    targets.append(request.url.raw_path.decode())
                    return inner.handle_request(request)

            return Outer()

    tool = {"name": "get_weather", "input_schema": WEATHER["function"]["parameters"]}
    request = {"model": "m", "messages": QUESTION, "tools": [WEATHER]}
    requests = {
        "/a%2Fb/v1/chat/completions?version=1": request,
        "/a%2Fb/v1/chat/completions/?version=1": request,
        "/a%2Fb/v1/messages?beta=true": {**request, "tools": [tool], "max_tokens": 9},
        "/%C3%A4%20b/v1/messages": {**request, "tools": [tool], "max_tokens": 9},
    }
    with sync_client(library, Recorded(*[CALL] * 4)) as client:
        for path, body in requests.items():
            assert client.post(f"http://model.test{path}", json=body).status_code == 200
        # A server may take it for the path of an API.
        assert client.post("http://model.test/v1/m%65ssages", json=request).status_code == 404
    assert targets == [
        "/a%2Fb/v1/chat/completions?version=1",
        "/a%2Fb/v1/chat/completions?version=1",
        "/a%2Fb/v1/chat/completions",
        "/%C3%A4%20b/v1/chat/completions",
    ]


def test_paths_that_are_translated() -> None:
    translates = Adapter.translates
    for path in ("/messages", "/v1/messages/", "/a/v2/responses", "/api/v1beta/responses/compact", "/openai/responses"):
        assert translates("POST", path), path
    for path in ("/v1/x-messages", "/v1/threads", "/v1/chat", "/files"):
        assert not translates("POST", path), path
    assert not translates("GET", "/v1/messages")
    assert translates("POST", "/any/base/chat/completions")
    # The body decides.
    assert translates("POST", "/forms/9/responses") and translates("POST", "/V1/Messages")


@pytest.mark.parametrize("content_type", ["text/plain", None])
@pytest.mark.parametrize("path", ["/responses", "/rooms/5/Messages", "/v1//chat//completions"])
def test_requests_with_tools_are_translated_or_rejected(path: str, content_type: str | None) -> None:
    model = Model(CALL)
    tool = {"type": "function", **WEATHER["function"]}
    body = json.dumps({"model": "m", "input": "The weather in Paris?", "messages": QUESTION, "tools": [tool]})
    headers = {} if content_type is None else {"content-type": content_type}
    with sync_client("httpx2", model) as client:
        response = client.post(f"http://model.test{path}", content=body, headers=headers)
    if path == "/responses":
        assert response.json()["output"][-1]["type"] == "function_call"
        assert model.headers[0]["content-type"] == "application/json"
    else:
        assert response.status_code == 404 and path in response.json()["error"]["message"]
        assert model.requests == []


class OtherProgram(httpx2.BaseTransport):
    """Another program, which returns what it gets."""

    def handle_request(self, request: httpx2.Request) -> httpx2.Response:
        target = request.url.raw_path
        assert request.headers.get("accept-encoding") != "identity"
        return httpx2.Response(200, headers={"x-target": target.decode()}, content=request.read())


@pytest.mark.parametrize(
    "path",
    [
        "/v1/threads/t1/messages?after=1",
        "/rooms/3/messages",
        "/rooms/3/messages/5",
        "/messages/5/x",
        "/responses/5",
        "/forms/9/responses",
        "/video/messages/count_tokens",
    ],
)
def test_similar_paths_of_other_programs_are_not_translated(path: str) -> None:
    transport = plaincall.httpx2.Transport(OtherProgram())
    bodies = [b'{"text": "Hi."}', b'{"tools": ["hammer"], "input": 1}', b"[1]", b"--a", b"", b'{"tools": null}']
    with httpx2.Client(transport=transport) as client:
        for body in bodies:
            for headers in ({}, {"content-type": "application/json"}, {"content-type": "text/plain"}):
                response = client.post(f"http://model.test{path}", content=body, headers=headers)
                assert (response.headers["x-target"], response.content) == (path, body)


def test_no_request_with_tools_is_passed_on_untranslated() -> None:
    parameters = WEATHER["function"]["parameters"]
    tool = {"type": "function", "name": "get_weather", "parameters": parameters}
    request: Any = {"model": "m", "input": "The weather in Paris?", "tools": [tool]}
    bases = ("/openai", "/openai/v1", "/openai/deployments/m", "/any/base", "")
    model = Model(*[CALL] * len(bases))
    with sync_client("httpx2", model) as client:
        for base in bases:
            reply = client.post(f"http://model.test{base}/responses?api-version=1", json=request).json()
            assert any(item["type"] == "function_call" for item in reply["output"]), reply
        assert model.paths == [f"{base}/chat/completions" for base in bases]
        for path in ("/openai/responses/r1/other", "/any/base/responses/compact", "/messages/5/x"):
            response = client.post(f"http://model.test{path}", json=request)
            assert response.status_code == 404, path
    tool = {"name": "get_weather", "input_schema": parameters}
    request = {"model": "m", "messages": QUESTION, "tools": [tool], "max_tokens": 99}
    model = Model(CALL)
    with sync_client("httpx2", model) as client:
        reply = client.post("http://model.test/anthropic/messages", json=request).json()
        assert reply["stop_reason"] == "tool_use"
    assert model.paths == ["/anthropic/chat/completions"]


def test_a_request_without_tools_is_unchanged() -> None:
    model = Model(CALL)
    reply = openai_client(model).chat.completions.create(model="m", messages=QUESTION)
    assert reply.choices[0].message.content == CALL
    assert model.requests[0]["messages"] == QUESTION


def test_another_model_name() -> None:
    model = Model("Hi.", CALL)
    client = openai_client(model, model="other")
    client.chat.completions.create(model="m", messages=QUESTION)
    client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER])
    assert [request["model"] for request in model.requests] == ["other", "other"]


def test_native_mode() -> None:
    class Native(Model):
        def answer(self, path: str, headers: dict[str, str], body: bytes) -> Any:
            answer = super().answer(path, headers, body)
            assert self.requests[-1]["tools"] == [WEATHER]
            return answer

    model = Native('<tool_call>\n{"name": "get_weather", "arguments": {"city": "Paris"}}\n</tool_call>', native=True)
    [call] = chat(model, mode="native").choices[0].message.tool_calls
    assert (call.function.name, json.loads(call.function.arguments)) == ("get_weather", {"city": "Paris"})


def test_a_grammar_for_the_engine() -> None:
    model = Model(CALL)
    chat(model, constrain="vllm")
    assert model.requests[0]["response_format"]["type"] == "structural_tag"


@pytest.mark.parametrize("stream", [False, True])
def test_an_error_of_the_model_server(stream: bool) -> None:
    body = json.dumps({"error": {"message": "too many requests", "type": "rate_limit_error"}}).encode()
    model = Model((429, body))
    with pytest.raises(openai.RateLimitError, match="too many requests") as caught:
        openai_client(model).chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER], stream=stream)
    assert model.closed == 1
    assert_headers(caught.value)


async def test_an_error_of_the_model_server_async() -> None:
    model = Model((503, b"{}"))
    with pytest.raises(openai.InternalServerError) as caught:
        await openai_async_client(model).chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER])
    assert_headers(caught.value)


def assert_headers(error: Any) -> None:
    """Asserts that an error has the headers of the model server, and one content type and length."""
    headers = error.response.headers
    assert (headers["retry-after"], headers["x-ratelimit-remaining-requests"]) == ("7", "0")
    assert error.request_id == "r1"
    assert headers.get_list("content-type") == ["application/json"]
    assert headers.get_list("content-length") == [str(len(error.response.content))]


class Moved(Model):
    """Its answers are at another place of the same host, after a redirect from the first one."""

    def __init__(self, *replies: str, to: str) -> None:
        super().__init__(*replies)
        self.to = to

    def moved(self, http: Any, request: Any) -> Any:
        if request.url.path.startswith("/old"):
            headers = {"location": self.to, "content-type": "text/html", "x-place": "old"}
            return http.Response(307, headers=headers, content=b"moved")
        return None

    def sync_transport(self, http: Any) -> Any:
        model, inner = self, super().sync_transport(http)

        class Outer(http.BaseTransport):  # type: ignore[misc]
            def handle_request(self, request: Any) -> Any:
                return model.moved(http, request) or inner.handle_request(request)

        return Outer()

    def async_transport(self, http: Any) -> Any:
        model, inner = self, super().async_transport(http)

        class Outer(http.AsyncBaseTransport):  # type: ignore[misc]
            async def handle_async_request(self, request: Any) -> Any:
                return model.moved(http, request) or await inner.handle_async_request(request)

        return Outer()


TOOL_OF_MESSAGES = {"name": "get_weather", "input_schema": WEATHER["function"]["parameters"]}


@pytest.mark.parametrize("library", ["httpx", "httpx2"])
@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize("path, tool", [("chat/completions", WEATHER), ("messages", TOOL_OF_MESSAGES)])
async def test_a_redirect_is_followed(library: str, stream: bool, path: str, tool: Any) -> None:
    request = {"model": "m", "messages": QUESTION, "tools": [tool], "stream": stream, "max_tokens": 9}
    url = f"http://model.test/old/v1/{path}"
    one, other = [Moved(CALL, to="http://model.test/new/v1/chat/completions?a=b") for _ in range(2)]
    with sync_client(library, one) as client:
        unfollowed = client.post(url, json=request)
        responses = [client.post(url, json=request, follow_redirects=True)]
    async with async_client(library, other) as client:
        responses.append(await client.post(url, json=request, follow_redirects=True))
    for response, model in zip(responses, (one, other), strict=True):
        assert response.status_code == 200 and "get_weather" in response.text
        assert model.paths == ["/new/v1/chat/completions"]
    assert (unfollowed.status_code, unfollowed.content, unfollowed.headers["x-place"]) == (307, b"moved", "old")
    assert unfollowed.headers["location"] == f"http://model.test/new/v1/{path}?a=b"
    # The request would reach another path untranslated.
    with sync_client(library, Moved(CALL, to="/new/other")) as client:
        assert client.post(url, json=request, follow_redirects=True).status_code == 502


def test_an_error_in_a_repair_round() -> None:
    body = json.dumps({"error": {"message": "out of memory"}}).encode()
    model = Model(INVALID, (500, body))
    with pytest.raises(openai.APIError, match="out of memory") as caught:
        chat(model)
    assert model.closed == 2
    assert_headers(caught.value)


def test_an_answer_that_is_not_json() -> None:
    with pytest.raises(openai.InternalServerError, match="cannot be parsed") as caught:
        chat(Model((200, b"<html>")))
    assert caught.value.status_code == 502


def test_a_server_that_does_not_stream() -> None:
    model = Model((200, completion_of(CALL)))
    stream = openai_client(model).chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER], stream=True)
    assert joined(list(stream))[1] == "get_weather"


def test_an_interrupted_stream() -> None:
    model = Model((200, b""))
    with pytest.raises(openai.APIError):
        chat(model)


def test_requests_of_other_paths_keep_their_streams() -> None:
    class Inner(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            assert request.headers["accept-encoding"] != "identity"
            return httpx2.Response(200, content=b"".join(request.stream))  # type: ignore[arg-type]

    transport = plaincall.httpx2.Transport(Inner())
    with httpx2.Client(transport=transport) as client:
        assert client.post(f"{BASE}/files", content=iter([b"a", b"b"])).content == b"ab"
        assert client.get(f"{BASE}/responses/r1").status_code == 200


def test_the_log_names_changed_tools_and_no_secret(caplog: pytest.LogCaptureFixture) -> None:
    schema = {"type": "object", "properties": {"x": {"$ref": "https://secret.test/schema"}}}
    tool = {"type": "function", "function": {"name": "odd", "parameters": schema}}
    model = Model("Hi.")
    with caplog.at_level(logging.DEBUG, logger="plaincall"):
        openai_client(model).chat.completions.create(model="m", messages=QUESTION, tools=[tool, WEATHER])
    assert "the tool at /tools/0 of the request was " in caplog.text
    assert "secret.test" not in caplog.text and "properties" not in caplog.text
    assert "Bearer" not in caplog.text and '"k"' not in caplog.text


def test_invalid_settings() -> None:
    with pytest.raises(ValueError, match="`mode` cannot be `other`"):
        plaincall.httpx2.Transport(mode="other")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match="`repair_rounds` must be an integer from 0 to 20"):
        plaincall.httpx2.Transport(repair_rounds=21)
    with pytest.raises(ValueError, match=r"unknown key `repair_round`; did you mean `repair_rounds`\?"):
        plaincall.httpx2.Transport(repair_round=1)  # type: ignore[call-arg]
    with pytest.raises(ValueError, match="must name the engine"):
        plaincall.httpx2.Transport(constrain="always")  # type: ignore[arg-type]
    with pytest.raises(ValueError, match=r"`headers\.x-team`: only commands replace"):
        plaincall.httpx2.Transport(url="http://a.test/v1", headers={"x-team": "${TEAM}"})
    for secret in (b"", b"s" * 15):
        with pytest.raises(ValueError, match=f"`secret` has {len(secret)} bytes, and needs at least 16"):
            plaincall.httpx2.Transport(secret=secret)
    plaincall.httpx2.Transport(secret=b"s" * 16)
    plaincall.httpx2.Transport(secret=None)


@pytest.mark.parametrize("name, other", [("httpx", "httpx2"), ("httpx2", "httpx")])
async def test_a_client_of_another_library(name: str, other: str) -> None:
    module, own, foreign = TRANSPORTS[name], LIBRARIES[name], LIBRARIES[other]
    advice = f"; with {other}, use `plaincall.{other}`$"
    expected = f"^`inner`: expected a transport of {name}, such as `{name}.HTTPTransport\\(\\)`, found "
    with pytest.raises(TypeError, match=f"{expected}{other}.HTTPTransport{advice}"):
        module.Transport(foreign.HTTPTransport())
    for inner, found in (
        ("x", "str"),
        (own.Client(), f"{name}.Client"),
        (own.AsyncHTTPTransport(), f"{name}.AsyncHTTP"),
    ):
        with pytest.raises(TypeError, match=f"{expected}{found}"):
            module.Transport(inner)
    with pytest.raises(TypeError, match=f"AsyncHTTPTransport\\(\\)`, found {name}.HTTPTransport$"):
        module.AsyncTransport(own.HTTPTransport())
    with pytest.raises(TypeError, match=f"^this transport is for clients of {name}, found {other}.Request{advice}"):
        foreign.Client(transport=module.Transport()).get("http://model.test/v1/models")
    needed = f"^an asynchronous client needs `plaincall.{name}.AsyncTransport\\(\\)`$"
    with pytest.raises(TypeError, match=needed):
        async with own.AsyncClient(transport=module.Transport()):
            pass
    with pytest.raises(TypeError, match=needed):
        await own.AsyncClient(transport=module.Transport()).get("http://model.test/v1/models")
    needed = f"^a client that is not asynchronous needs `plaincall.{name}.Transport\\(\\)`$"
    with pytest.raises(TypeError, match=needed), own.Client(transport=module.AsyncTransport()):
        pass
    with pytest.raises(TypeError, match=needed):
        own.Client(transport=module.AsyncTransport()).get("http://model.test/v1/models")


def test_a_table_of_a_configuration_file() -> None:
    table: ModelSettings = {
        "url": "http://a.test/v1",
        "model": "small",
        "headers": {"x-team": "blue"},
        "temperature": 0.5,
        "max_tokens": 9,
        "extra": {"top_k": 3},
        "syntax": "emoji",
        "reasoning": False,
    }
    model = Model("Hi.")
    chat(model, **table)
    request = model.requests[0]
    assert [request[name] for name in ("model", "temperature", "max_tokens", "top_k")] == ["small", 0.5, 9, 3]
    assert "🛠️[" in request["messages"][0]["content"]
    assert model.headers[0]["x-team"] == "blue"


def test_a_shared_secret_gives_the_same_markers() -> None:
    settings: Settings = {"keyed": True, "secret": b"s" * 32}
    prompts = []
    # A client may get a new key within a conversation.
    for key in ("k", "l"):
        model = Model("Hi.")
        client = openai_client(model, **settings).with_options(api_key=key)
        client.chat.completions.create(model="m", messages=QUESTION, tools=[WEATHER])
        assert model.headers[0]["authorization"] == f"Bearer {key}"
        prompts.append(model.requests[0]["messages"])
    assert prompts[0] == prompts[1]


def test_closing_the_client_closes_the_inner_transport() -> None:
    class Inner(httpx.BaseTransport):
        is_closed = False

        def close(self) -> None:
            self.is_closed = True

    inner = Inner()
    httpx.Client(transport=plaincall.httpx.Transport(inner)).close()
    assert inner.is_closed
