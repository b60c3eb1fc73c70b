"""Signals during long work."""

from __future__ import annotations

import gc
import os
import signal
import threading
import time
from collections.abc import Callable

MOST_AFTER = 0.5
"""The most seconds that the thread may compute after the signal."""


def check_interrupts(prepare: Callable[[int], Callable[[], object]]) -> None:
    """Checks that the exception of a signal's handler ends work long before its end, and is raised once.

    `prepare` returns work of a size.
    """
    size = 32
    while seconds(work := prepare(size)) < 0.5:
        size *= 2
    whole = seconds(work)
    for number, error in (
        (signal.SIGINT, KeyboardInterrupt()),
        (signal.SIGTERM, SystemExit(3)),
        (signal.SIGALRM, TimeoutError("it took too long")),
    ):
        check(number, error, work, whole)


def check(number: signal.Signals, error: BaseException, work: Callable[[], object], whole: float) -> None:
    def handle(*_: object) -> None:
        raise error

    handler = signal.signal(number, handle)
    # Hypothesis is called at each collection, and Python loses an exception that is raised then.
    gc.disable()
    clock = time.pthread_getcpuclockid(threading.get_ident())
    sent: list[float] = []

    def send() -> None:
        sent.append(time.clock_gettime(clock))
        os.kill(os.getpid(), number)

    try:
        timer = threading.Timer(whole / 10, send)
        raised: list[BaseException] = []
        begun = time.process_time()
        try:
            timer.start()
            try:
                work()
            except Exception as other:
                if other is error:
                    raise
                # Of a library that reads the table. Python raises its own exception at its next step.
                some_steps()
        except (KeyboardInterrupt, SystemExit, TimeoutError) as caught:
            raised.append(caught)
        took = time.process_time() - begun
        after = time.clock_gettime(clock) - sent[0]
        timer.join()
        try:
            some_steps()
        except (KeyboardInterrupt, SystemExit, TimeoutError) as caught:
            raised.append(caught)
        assert raised == [error]
        assert took < 0.7 * whole, (took, whole)
        assert after < MOST_AFTER, (after, whole)
    finally:
        gc.enable()
        signal.signal(number, handler)
    # It can be used as before.
    work()


def some_steps() -> None:
    for _ in range(10):
        pass


def seconds(work: Callable[[], object]) -> float:
    """Returns the time that the process computes, whatever else the machine does."""
    begun = time.process_time()
    work()
    return time.process_time() - begun
