"""Memory, threads and processes."""

from __future__ import annotations

import asyncio
import contextlib
import ctypes
import functools
import gc
import importlib.metadata
import os
import pickle
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import httpx2
import pytest
from interrupts import check_interrupts
from scripted import CALL, INVALID, QUESTION, WEATHER, Model

import plaincall as pc
import plaincall.httpx2

# Memory in use that may be added after the first rounds, in KiB. Python's table of names grows by 940 KiB at 20,000 rounds, also
# without this package. A leak of 16 bytes a round is more than this after 130,000 rounds, half an hour.
MOST_GROWTH = 2 << 10
# Resident memory that may be added, in KiB: the allocators of C and Python also keep free memory between blocks in use.
MOST_RESIDENT_GROWTH = 16 << 10
REQUEST = {"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": True}
NO_SERVER = httpx2.MockTransport(lambda request: httpx2.Response(404))


def resident() -> int:
    """Returns the resident memory of this process in KiB."""
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmRSS:"):
            return int(line.split()[1])
    return 0


class Allocated(ctypes.Structure):
    """What C's `mallinfo2` returns."""

    _fields_ = [
        (name, ctypes.c_size_t)
        for name in (
            "arena",
            "ordblks",
            "smblks",
            "hblks",
            "hblkhd",
            "usmblks",
            "fsmblks",
            "uordblks",
            "fordblks",
            "keepcost",
        )
    ]


ALLOCATED = ctypes.CDLL(None).mallinfo2
ALLOCATED.restype = Allocated


def in_use() -> int:
    """Returns the memory that Rust, and Python for its large objects, have allocated and not freed, in KiB."""
    allocated = ALLOCATED()
    return int(allocated.uordblks + allocated.hblkhd) >> 10


def one_round(tools: pc.Toolbox) -> None:
    """Uses every part of the package once."""
    text = "Text.\n" + CALL * 3
    document = tools.parse(text)
    list(pc.events([text[:20], text[20:]]))
    reader = tools.reader()
    reader.feed(text)
    reader.finish()
    tools.repair(tools.parse(text.replace("2\n", "two\n")))
    tools.results(asyncio.run(pc.execute(tools, document.calls)))
    repr(document)
    hash(document.segments[0])
    pickle.loads(pickle.dumps((document.segments, document.calls, document.diagnostics)))
    with contextlib.suppress(pc.RenderError):
        tools.render("get_weather", {"a\n": 1})
    transport = plaincall.httpx2.Transport(Model(CALL).sync_transport(httpx2))
    with httpx2.Client(transport=transport) as client:
        client.post("http://model.test/v1/chat/completions", json=REQUEST)
    # A number of tokens that no model server counts.
    with httpx2.Client(transport=plaincall.httpx2.Transport(NO_SERVER)) as client:
        client.post("http://model.test/v1/messages/count_tokens", json={"messages": QUESTION})
    # Clients that disconnect.
    transport = plaincall.httpx2.Transport(Model(CALL).sync_transport(httpx2))
    client = httpx2.Client(transport=transport)
    with client, client.stream("POST", "http://model.test/v1/chat/completions", json=REQUEST) as response:
        next(response.iter_bytes())
    asyncio.run(disconnect())


async def disconnect() -> None:
    transport = plaincall.httpx2.AsyncTransport(Model(INVALID, CALL).async_transport(httpx2))
    async with httpx2.AsyncClient(transport=transport) as client:
        await client.post("http://model.test/v1/chat/completions", json=REQUEST)
    transport = plaincall.httpx2.AsyncTransport(Model(CALL).async_transport(httpx2))
    async with (
        httpx2.AsyncClient(transport=transport) as client,
        client.stream("POST", "http://model.test/v1/chat/completions", json=REQUEST) as response,
    ):
        await anext(response.aiter_bytes())


def soak(seconds: float) -> str:
    """Uses the package for some seconds. Memory and objects must not grow. Returns the figures."""

    def get_weather(city: str, days: int) -> str:
        return "mild"

    tools = pc.Toolbox([get_weather])
    for _ in range(200):
        one_round(tools)
    gc.collect()
    used, memory, objects, references = in_use(), resident(), len(gc.get_objects()), sys.getrefcount(tools)
    # Also of objects that the collector does not know, such as texts.
    blocks = sys.getallocatedblocks()
    ends, rounds = time.monotonic() + seconds, 0
    while time.monotonic() < ends:
        one_round(tools)
        rounds += 1
    gc.collect()
    assert sys.getrefcount(tools) == references
    assert len(gc.get_objects()) < objects + 100
    assert sys.getallocatedblocks() < blocks + 100
    used, memory = in_use() - used, resident() - memory
    figures = f"{rounds} rounds in {seconds:.0f} s: {used} KiB more in use, {memory} KiB more resident, no new object"
    assert used < MOST_GROWTH and memory < MOST_RESIDENT_GROWTH, figures
    return figures


def test_nothing_grows() -> None:
    soak(4)


def test_references_are_counted() -> None:
    text = "Hello " * 20
    before = sys.getrefcount(text)
    document = pc.parse(text)
    events = pc.Parser().feed(text)
    del document, events
    assert sys.getrefcount(text) == before
    dialect = pc.Dialect.block()
    before = sys.getrefcount(dialect)
    parser = pc.Parser(dialect)
    del parser
    assert sys.getrefcount(dialect) == before
    first: Any = pc.Parser().feed(text)[0]
    # One of the variable, one of the argument.
    assert sys.getrefcount(first) == 2
    assert first.text is first.source


def counted_during(work: Callable[[], object]) -> tuple[int, float]:
    """Returns how often another thread ran while this one worked, and the seconds of the work."""
    counted = 0
    done = threading.Event()

    def count() -> None:
        nonlocal counted
        while not done.is_set():
            counted += 1
            time.sleep(0.0005)

    thread = threading.Thread(target=count)
    thread.start()
    try:
        before, begun = counted, time.monotonic()
        work()
        return counted - before, time.monotonic() - begun
    finally:
        done.set()
        thread.join()


def test_long_texts_release_the_lock() -> None:
    dialect = pc.Dialect.block()
    # Hard to read, and there is nothing to return: the lock is needed for hardly any time.
    text = "!!!GADGET_STAR\n!" * (1 << 14)
    counted, seconds = 0, 0.0
    while seconds < 0.3:
        text *= 2
        counted, seconds = counted_during(lambda text=text: pc.near_misses(text, dialect))  # type: ignore[misc]
    released = counted / seconds
    # With the lock, the other thread runs once or twice, unless the system lets the work wait before it begins.
    data = bytes(1 << 20)
    seconds = 0.0
    while seconds < 0.3:
        data *= 2
        _, seconds = counted_during(lambda data=data: data.count(b"ab"))  # type: ignore[misc]
    tries = [counted_during(lambda: data.count(b"ab")) for _ in range(5)]
    held = min(counted / seconds for counted, seconds in tries)
    assert released > 3 * held, (released, held)


def test_a_forked_process_works() -> None:
    parser = pc.Parser()
    parser.feed("!!!GADGET_START:a\n!!!ARG:x\n1")
    child = os.fork()
    if child == 0:
        ok = isinstance(parser.finish()[-1], pc.CallEnd) and len(pc.parse(CALL).calls) == 1
        os._exit(0 if ok else 1)
    _, status = os.waitpid(child, 0)
    assert status == 0
    assert isinstance(parser.finish()[-1], pc.CallEnd)


def test_a_forked_process_reads_an_open_stream() -> None:
    transport = plaincall.httpx2.Transport(Model(CALL).sync_transport(httpx2))
    client = httpx2.Client(transport=transport)
    with client, client.stream("POST", "http://model.test/v1/chat/completions", json=REQUEST) as response:
        chunks = response.iter_text()
        first = next(chunks)
        child = os.fork()
        text = first + "".join(chunks)
        ok = "Paris" in text and text.rstrip().endswith("[DONE]")
        if child == 0:
            os._exit(0 if ok else 1)
        _, status = os.waitpid(child, 0)
        assert (ok, status) == (True, 0)


def test_a_signal_ends_a_long_parse() -> None:
    text = ("Some text.\n" * 100 + CALL) * 100
    tools = pc.Toolbox([{"name": "get_weather"}])

    def parser(text: str) -> None:
        used = pc.Parser()
        try:
            used.feed(text)
        except BaseException:
            # Its events are lost.
            with pytest.raises(ValueError, match="the parser is finished"):
                used.finish()
            raise

    def reader(text: str) -> None:
        used = tools.reader()
        try:
            used.feed(text)
        except BaseException:
            used.begin_reply()
            assert any(isinstance(one, pc.Call) for one in used.feed(CALL))
            raise

    for parse in (pc.parse, tools.parse, pc.near_misses, parser, reader):
        check_interrupts(lambda size, parse=parse: functools.partial(parse, text * size))  # type: ignore[misc]


def test_one_thread_uses_a_parser() -> None:
    text = "Some text.\n" * (4 << 20)
    parser, reader = pc.Parser(), pc.Toolbox([]).reader()
    assert (repr(parser), repr(reader)) == ("Parser(not finished)", "Reader(not finished)")
    for used in (parser, reader):
        thread = threading.Thread(target=used.feed, args=(text,))
        thread.start()
        while "in use" not in repr(used):
            assert thread.is_alive()
        with pytest.raises(RuntimeError, match="this object is in use, by another thread"):
            used.feed("x")
        thread.join()
        used.feed("x")
        used.finish()
    assert (repr(parser), repr(reader)) == ("Parser(finished)", "Reader(finished)")


def run(code: str) -> str:
    ended = subprocess.run([sys.executable, "-c", code], capture_output=True, timeout=60, text=True)
    return ended.stdout + ended.stderr


def test_what_the_module_has() -> None:
    assert pc.__version__ == importlib.metadata.version("plaincall")
    assert {"httpx2", "parse", "__version__"} <= set(dir(pc)) and "httpx2" not in pc.__all__
    assert all(hasattr(pc, name) for name in pc.__all__)
    without = "import sys; sys.modules.update(httpx=None, httpx2=None, anyio=None)\n"
    assert run(without + "from plaincall import *; print(parse('x').text, table.__name__)") == "x table\n"
    for name, other in (("httpx", "httpx2"), ("httpx2", "httpx")):
        message = f"`plaincall.{name}` needs {name}: `pip install 'plaincall[{name}]'`. If your client uses {other}"
        assert message in run(f"{without}import plaincall; plaincall.{name}")
    free = "import sys; sys.version += ' free-threading build'; import plaincall"
    assert "ImportError: plaincall does not support free-threaded Python" in run(free)


OPEN = """
import asyncio, threading, time, httpx2
import plaincall as pc, plaincall.httpx2
from scripted import CALL, Model
from test_process import REQUEST

URL = "http://model.test/v1/chat/completions"
reader = pc.Toolbox([{"name": "get_weather"}]).reader()
reader.feed(CALL[:40])
events = pc.events([CALL[:40], CALL[40:]])
next(events)
client = httpx2.Client(transport=plaincall.httpx2.Transport(Model(CALL).sync_transport(httpx2)))
chunks = client.send(client.build_request("POST", URL, json=REQUEST), stream=True).iter_bytes()
next(chunks)


def endless():
    while True:
        other = httpx2.Client(transport=plaincall.httpx2.Transport(Model(CALL).sync_transport(httpx2)))
        other.post(URL, json=REQUEST)


threading.Thread(target=endless, daemon=True).start()


async def main():
    global kept
    http = httpx2.AsyncClient(transport=plaincall.httpx2.AsyncTransport(Model(CALL).async_transport(httpx2)))
    response = await http.send(http.build_request("POST", URL, json=REQUEST), stream=True)
    chunks = response.aiter_bytes()
    await anext(chunks)
    kept = http, response, chunks


asyncio.run(main())
time.sleep(0.02)
"""


def test_the_end_of_the_interpreter_with_open_streams() -> None:
    for _ in range(5):
        ended = subprocess.run([sys.executable, "-c", OPEN], capture_output=True, timeout=60, cwd=Path(__file__).parent)
        assert (ended.returncode, ended.stderr) == (0, b"")


@pytest.mark.parametrize("parsed", ["'y' * 100000", "'y' * (64 << 20)", "CALL * 3000"])
def test_the_end_of_the_interpreter(parsed: str) -> None:
    program = (
        "import plaincall as pc, threading, atexit, time\n"
        f"CALL = {CALL!r}\n"
        f"text = {parsed}\n"
        "atexit.register(lambda: pc.parse(text[:200000]))\n"
        "parser = pc.Parser(); parser.feed('!!!GADGET_START:a\\n')\n"
        "work = lambda: [pc.parse(text) for _ in range(100000)]\n"
        "for _ in range(3): threading.Thread(target=work, daemon=True).start()\n"
        "time.sleep(0.02)\n"
    )
    for _ in range(5):
        ended = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
        assert (ended.returncode, ended.stderr) == (0, b"")


def test_a_second_interpreter_cannot_import_it() -> None:
    name = "_interpreters" if sys.version_info >= (3, 13) else "_xxsubinterpreters"
    program = (
        f"import {name} as interpreters, threading, plaincall as pc\n"
        "from test_process import counted_during\n"
        "for _ in range(2):\n"
        "    other = interpreters.create()\n"
        "    try: failed = interpreters.run_string(other, 'import plaincall')\n"
        "    except Exception as error: failed = error\n"
        "    interpreters.destroy(other)\n"
        "    assert 'another interpreter' in str(failed) or 'subinterpreters' in str(failed), failed\n"
        # Long texts still release the lock.
        "counted, seconds = counted_during(lambda: pc.near_misses('!!!GADGET_STAR\\n!' * (1 << 22), pc.Dialect.block()))\n"
        "assert counted > 30 * seconds, (counted, seconds)\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True, cwd=Path(__file__).parent)


def test_the_import_needs_no_other_package_and_no_asyncio() -> None:
    program = (
        "import sys, plaincall as pc\n"
        "pc.Toolbox([{'name': 'a'}]).parse('!!!GADGET_START:a')\n"
        "foreign = {'asyncio', 'pydantic', 'griffe', 'httpx', 'httpx2', 'anyio'} & set(sys.modules)\n"
        "assert not foreign, foreign\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


def test_hints_of_pydantic_in_a_program_that_has_not_loaded_its_modules() -> None:
    program = (
        "import datetime, plaincall as pc\n"
        "def plan(day: datetime.date, days: int = 5) -> str: return str(day)\n"
        "assert pc.tool(plan).parameters['properties']['day']['format'] == 'date'\n"
        "class Own: pass\n"
        "def place(where: Own) -> str: return ''\n"
        "try: pc.tool(place)\n"
        "except pc.DefinitionError as error: assert 'pydantic has no JSON Schema' in str(error)\n"
        "else: raise AssertionError\n"
    )
    subprocess.run([sys.executable, "-c", program], check=True)


if __name__ == "__main__":
    print("python soak:", soak(float(sys.argv[1])))
