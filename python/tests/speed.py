"""Prints how fast the package is. After `cargo xtask python`: `target/python-tests/bin/python python/tests/speed.py`."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from typing import Any

import httpx2
from scripted import QUESTION, WEATHER, Model, stream_of

import plaincall as pc
import plaincall.http

VALUE = "def f(x):\n    return x + 1\n" * 20
CALL = f"I write the file.\n!!!GADGET_START:WriteFile\n!!!ARG:path\nsrc/a.py\n!!!ARG:content\n{VALUE}!!!GADGET_END\n"
TEXT = CALL * 200
REQUEST = {"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": True}
REPLIES = {
    "prose": "word " * 20_000,
    "one call": "!!!GADGET_START:get_weather\n!!!ARG:city\n" + "word " * 20_000 + "\n!!!GADGET_END\n",
}


def best(work: Callable[[], object]) -> float:
    """Returns the least of seven times, in seconds."""
    times = []
    for _ in range(7):
        begun = time.perf_counter()
        work()
        times.append(time.perf_counter() - begun)
    return min(times)


def parsed(chunks: list[str]) -> None:
    parser = pc.Parser(pc.Dialect.block())
    for chunk in chunks:
        parser.feed(chunk)
    parser.finish()


class Recorded(Model):
    """A model whose pieces are made before."""

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__()
        self.pieces = pieces

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, Iterator[bytes]]:
        return 200, "text/event-stream", iter(self.pieces)


def streamed(transport: Any) -> None:
    client = httpx2.Client(transport=transport)
    with client.stream("POST", "http://model.test/v1/chat/completions", json=REQUEST) as response:
        for _ in response.iter_bytes():
            pass


def main() -> None:
    size = len(TEXT) / 1e6
    for length in (4, 32, 4096, len(TEXT)):
        chunks = [TEXT[at : at + length] for at in range(0, len(TEXT), length)]
        seconds = best(lambda chunks=chunks: parsed(chunks))  # type: ignore[misc]
        print(
            f"parser, chunks of {length} bytes: {size / seconds:.0f} MB/s, {seconds / len(chunks) * 1e6:.2f} µs a chunk"
        )
    print(f"parse: {size / best(lambda: pc.parse(TEXT)):.0f} MB/s")
    for name, reply in REPLIES.items():
        pieces = list(stream_of(reply))
        inner = Recorded(pieces).sync_transport(httpx2)
        bare = best(lambda inner=inner: streamed(inner))  # type: ignore[misc]
        with_it = best(lambda inner=inner: streamed(plaincall.http.Transport(inner)))  # type: ignore[misc]
        print(f"transport, {name}: {(with_it - bare) / len(pieces) * 1e6:.2f} µs a chunk more than without it")


if __name__ == "__main__":
    main()
