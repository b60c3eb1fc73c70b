"""The events of texts that arrive as chunks."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterable, Generator, Iterable
from typing import TypeAlias

from plaincall._plaincall import (
    CallEnd,
    CallStart,
    Diagnostic,
    Dialect,
    Ignored,
    Parser,
    Reasoning,
    Text,
    ValueDelta,
    ValueEnd,
    ValueStart,
)

Event: TypeAlias = Text | Reasoning | CallStart | ValueStart | ValueDelta | ValueEnd | CallEnd | Ignored | Diagnostic
"""Any event of the parser."""


def events(chunks: Iterable[str | bytes], dialect: Dialect | None = None) -> Generator[Event, None, None]:
    """Yields the events of a text that arrives as chunks, each as soon as it is known. Default dialect: automatic."""
    parser = Parser(dialect)
    for chunk in chunks:
        yield from parser.feed(chunk)
    yield from parser.finish()


async def aevents(chunks: AsyncIterable[str | bytes], dialect: Dialect | None = None) -> AsyncGenerator[Event, None]:
    """Yields the events of a text that arrives as chunks, each as soon as it is known. Default dialect: automatic.

    If you stop early, close the iterator (`contextlib.aclosing`) and the chunks are closed by their owner.
    """
    parser = Parser(dialect)
    async for chunk in chunks:
        for event in parser.feed(chunk):
            yield event
    for event in parser.finish():
        yield event
