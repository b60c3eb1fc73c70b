"""Prints how fast `table` is. After `cargo xtask python`: `target/python-data/bin/python python/data/speed.py`.

Figures are for a core: the processor time of the process, or of two processes that work at the same time.
"""

from __future__ import annotations

import multiprocessing
import sys
import time
from concurrent.futures import ThreadPoolExecutor

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
SIZE = 24_000_000
ROUNDS = 5


def texts_of(text: str) -> pyarrow.Table:
    return pyarrow.table({"text": [text] * (SIZE // len(text))}).combine_chunks()


def read(data: pyarrow.Table) -> None:
    for _ in pyarrow.RecordBatchReader.from_stream(pc.table(data, dialect=pc.Dialect.block())):
        pass


def work(text: str, ready: multiprocessing.synchronize.Barrier, times: multiprocessing.Queue[float]) -> None:
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
    ready, times = context.Barrier(count), context.Queue()
    workers = [context.Process(target=work, args=(text, ready, times)) for _ in range(count)]
    for worker in workers:
        worker.start()
    rounds = [max(times.get() for _ in workers) for _ in range(ROUNDS)]
    for worker in workers:
        worker.join()
    return count * SIZE / min(rounds)


def threads(data: pyarrow.Table, count: int) -> float:
    """Returns the best throughput of some threads of one process, in bytes a second."""
    best = 0.0
    with ThreadPoolExecutor(count) as pool:
        for _ in range(ROUNDS):
            begun = time.perf_counter()
            list(pool.map(read, [data] * count))
            best = max(best, count * SIZE / (time.perf_counter() - begun))
    return best


def main() -> None:
    for name, text in TEXTS.items():
        data = texts_of(text)
        read(data)
        least = min(cpu_time(data) for _ in range(ROUNDS))
        print(f"table, {name}: {SIZE / least / 1e6:.0f} MB/s per core, {least / data.num_rows * 1e6:.1f} µs a row")
        one, two = threads(data, 1), threads(data, 2)
        print(f"  two threads: {two / one:.2f} times as much as one ({two / 1e6:.0f} MB/s)")
        if "--processes" in sys.argv:
            one, two = processes(text, 1), processes(text, 2)
            print(f"  two processes: {two / one:.2f} times as much as one ({two / 1e6:.0f} MB/s)")


def cpu_time(data: pyarrow.Table) -> float:
    begun = time.process_time()
    read(data)
    return time.process_time() - begun


if __name__ == "__main__":
    main()
