"""Prints how fast `table` and `parse` are. After `cargo xtask python`: `target/python-data/bin/python python/data/speed.py`.

Figures are for a core: the processor time of the process, or of two processes that work at the same time.
"""

from __future__ import annotations

import multiprocessing
import re
import sys
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from multiprocessing.synchronize import Barrier

import pyarrow

import plaincall as pc

PROSE = "I look at the file first, then I change the line that the error names. " * 4
CODE = "def f(x):\n    return x + 1\n" * 12
TEXTS = {
    "chat (short calls)": f"{PROSE}\n!!!GADGET_START:read\n!!!ARG:path\nsrc/a.py\n!!!ARG:lines\n20\n!!!GADGET_END\n{PROSE}",
    "code (long values)": f"I write.\n!!!GADGET_START:write\n!!!ARG:path\nsrc/a.py\n!!!ARG:text\n{CODE}!!!GADGET_END\n",
    "calls only": "!!!GADGET_START:add\n!!!ARG:a\n1\n!!!ARG:b\n2\n!!!GADGET_END\n" * 4,
    "prose": PROSE * 4,
}
# What one writes without a library: each value is a text, and a marker in a value breaks it.
CALL = re.compile(r"!!!GADGET_START:([^\n:]*)[^\n]*\n(.*?)!!!GADGET_END", re.DOTALL)
ARGUMENT = re.compile(r"!!!ARG:([^\n]*)\n(.*?)\n(?=!!!ARG:|\Z)", re.DOTALL)
SIZE = 4_000_000
ROUNDS = 25


def texts_of(text: str) -> pyarrow.Table:
    return pyarrow.table({"text": [text] * (SIZE // len(text))}).combine_chunks()


def read(data: pyarrow.Table) -> None:
    for _ in pyarrow.RecordBatchReader.from_stream(pc.table(data, dialect=pc.Dialect.block())):
        pass


def work(text: str, ready: Barrier, times: multiprocessing.Queue[float]) -> None:
    data = texts_of(text)
    read(data)
    for _ in range(ROUNDS):
        ready.wait()
        begun = time.perf_counter()
        read(data)
        times.put(time.perf_counter() - begun)


def processes(text: str, count: int) -> float:
    """Returns the best throughput of some processes together, in bytes a second."""
    context = multiprocessing.get_context("spawn")
    ready = context.Barrier(count)
    times: multiprocessing.Queue[float] = context.Queue()
    workers = [context.Process(target=work, args=(text, ready, times)) for _ in range(count)]
    for worker in workers:
        worker.start()
    rounds = [max(times.get() for _ in workers) for _ in range(ROUNDS)]
    for worker in workers:
        worker.join()
    return count * SIZE / min(rounds)


def threads(data: pyarrow.Table) -> tuple[float, float, float]:
    """Returns the best throughput of one thread and of two, in bytes a second, measured in turns.

    Also returns how many times as much two threads do if each has a core: by processor time, whatever else the machine does.
    """
    best, least = [0.0, 0.0], [float("inf")] * 2
    with ThreadPoolExecutor(2) as pool:
        for _ in range(ROUNDS):
            for place, count in enumerate((1, 2)):
                begun, used = time.perf_counter(), time.process_time()
                list(pool.map(read, [data] * count))
                best[place] = max(best[place], count * SIZE / (time.perf_counter() - begun))
                least[place] = min(least[place], time.process_time() - used)
    return best[0], best[1], 2 * 2 * least[0] / least[1]


def parse(text: str) -> list[tuple[str, object]]:
    return [(call.name, call.arguments) for call in pc.parse(text).calls]


def naive(text: str) -> list[tuple[str, object]]:
    return [(call[1], dict(ARGUMENT.findall(call[2]))) for call in CALL.finditer(text)]


def loop_time(read: Callable[[str], object], texts: list[str]) -> float:
    """Returns the least processor time for a text, in microseconds."""
    times = []
    for _ in range(ROUNDS):
        begun = time.process_time()
        for text in texts:
            read(text)
        times.append((time.process_time() - begun) / len(texts) * 1e6)
    return min(times)


def main() -> None:
    replies = {name: [text] * 1000 for name, text in TEXTS.items()}
    replies["prose and up to two calls with long values"] = [
        PROSE + TEXTS["code (long values)"] * (n % 3) for n in range(1000)
    ]
    for name, texts in replies.items():
        assert [len(parse(text)) for text in texts[:3]] == [len(naive(text)) for text in texts[:3]]
        own, other = loop_time(parse, texts), loop_time(naive, texts)
        print(f"parse, {name}: {own:.1f} µs; a naive regular expression: {other:.1f} µs")
    for name, text in TEXTS.items():
        data = texts_of(text)
        read(data)
        least = min(cpu_time(data) for _ in range(ROUNDS))
        print(f"table, {name}: {SIZE / least / 1e6:.0f} MB/s per core, {least / data.num_rows * 1e6:.1f} µs a row")
        one, two, alone = threads(data)
        print(f"  two threads: {two / one:.2f} times as much as one; by processor time {alone:.2f} times")
        if "--processes" in sys.argv:
            one, two = processes(text, 1), processes(text, 2)
            print(f"  two processes: {two / one:.2f} times as much as one ({two / 1e6:.0f} MB/s)")


def cpu_time(data: pyarrow.Table) -> float:
    begun = time.process_time()
    read(data)
    return time.process_time() - begun


if __name__ == "__main__":
    main()
