"""The number of tokens of a request to Messages."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

import anthropic
import httpx2
import pytest
from scripted import QUESTION, WEATHER, Model
from test_transport import async_client, sync_client

import plaincall.httpx2
from plaincall.asgi import Middleware

TOOL: Any = {"name": "get_weather", "input_schema": WEATHER["function"]["parameters"]}
ESTIMATE = "x-plaincall-token-count"
VLLM = {"/tokenize": [{"count": 321, "max_model_len": 4096, "tokens": [1, 2]}]}
LLAMA = {"/tokenize": [{"tokens": []}, {"tokens": [7, 8, 9]}], "/apply-template": [{"prompt": "<|user|>The weather?"}]}
SERVERS = pytest.mark.parametrize(
    "answers, tokens", [(VLLM, 321), (LLAMA, 3), ({}, None)], ids=["vLLM", "llama.cpp", "another"]
)


class Counting(Model):
    """A model server that answers the requests to these paths."""

    def __init__(self, answers: dict[str, list[Any]]) -> None:
        super().__init__()
        self.answers = {path: list(bodies) for path, bodies in answers.items()}

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, Iterator[bytes]]:
        self.paths.append(path)
        self.headers.append(headers)
        self.requests.append(json.loads(body))
        answers = self.answers.get(path)
        if not answers:
            return 404, "application/json", iter([b'{"detail": "Not Found"}'])
        return 200, "application/json", iter([json.dumps(answers.pop(0)).encode()])

    def check(self, count: int, headers: Any, tokens: int | None) -> None:
        """Checks the answer to a client, and what was asked."""
        first = self.requests[0]
        prompt = "".join(message["content"] for message in first["messages"])
        assert "tools" not in first and "get_weather" in prompt and first["model"] == "m"
        assert self.headers[0]["authorization"] == "Bearer k"
        if tokens is None:
            assert headers[ESTIMATE] == "estimate"
            assert len(prompt) / 4 < count < len(prompt) / 3
            assert self.paths == ["/tokenize"]
        else:
            assert (count, ESTIMATE in headers) == (tokens, False)
            assert self.paths == (["/tokenize"] if tokens == 321 else ["/tokenize", "/apply-template", "/tokenize"])


@SERVERS
@pytest.mark.parametrize("library", ["httpx", "httpx2"])
async def test_transports(library: str, answers: Any, tokens: int | None) -> None:
    request = {"model": "m", "messages": QUESTION, "tools": [TOOL]}
    url, key = "http://model.test/v1/messages/count_tokens?beta=true", {"x-api-key": "k"}
    one, other = Counting(answers), Counting(answers)
    with sync_client(library, one) as client:
        response = client.post(url, json=request, headers=key)
    one.check(response.json()["input_tokens"], response.headers, tokens)
    async with async_client(library, other) as client:
        response = await client.post(url, json=request, headers=key)
    other.check(response.json()["input_tokens"], response.headers, tokens)
    assert one.closed == other.closed == len(one.paths)


@SERVERS
def test_anthropic(answers: Any, tokens: int | None) -> None:
    model = Counting(answers)
    client = anthropic.Anthropic(
        base_url="http://model.test", api_key="k", http_client=sync_client("httpx2", model), max_retries=0
    )
    response = client.messages.with_raw_response.count_tokens(model="m", messages=QUESTION, tools=[TOOL])
    model.check(response.parse().input_tokens, response.headers, tokens)


@SERVERS
async def test_middleware(answers: Any, tokens: int | None) -> None:
    model = Counting(answers)
    http = httpx2.AsyncClient(transport=httpx2.ASGITransport(app=Middleware(model.app)))
    client = anthropic.AsyncAnthropic(base_url="http://model.test", api_key="k", http_client=http, max_retries=0)
    response = await client.messages.with_raw_response.count_tokens(model="m", messages=QUESTION, tools=[TOOL])
    model.check((await response.parse()).input_tokens, response.headers, tokens)


def test_the_base_of_the_model_server() -> None:
    targets: list[str] = []

    class Inner(httpx2.BaseTransport):
        def handle_request(self, request: httpx2.Request) -> httpx2.Response:
            targets.append(request.url.raw_path.decode())
            return httpx2.Response(404)

    paths = ("/messages/count_tokens", "/a%2Fb/v1/messages/count_tokens/?beta=true", "/a/messages/count_tokens?x=1")
    with httpx2.Client(transport=plaincall.httpx2.Transport(Inner())) as client:
        for path in paths:
            client.post(f"http://model.test{path}", json={"model": "m", "messages": QUESTION})
    # The last one is that of another program.
    assert targets == ["/tokenize", "/a%2Fb/tokenize", "/a/messages/count_tokens?x=1"]


def test_invalid_requests_are_rejected() -> None:
    model = Counting(VLLM)
    with sync_client("httpx2", model) as client:
        for content in (b"not JSON", b'{"model": "m", "messages": 5}'):
            response = client.post("http://model.test/v1/messages/count_tokens", content=content)
            assert (response.status_code, response.json()["type"]) == (400, "error")
    assert model.paths == []
