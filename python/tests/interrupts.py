"""Ctrl-C during long work."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable


def check_interrupt(prepare: Callable[[int], Callable[[], object]]) -> None:
    """Checks that Ctrl-C ends work long before its end, and is raised once. `prepare` returns work of a size."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        size = 32
        while seconds(work := prepare(size)) < 0.5:
            size *= 2
        whole = seconds(work)
        timer = threading.Timer(whole / 10, os.kill, (os.getpid(), signal.SIGINT))
        raised = 0
        begun = time.process_time()
        try:
            timer.start()
            try:
                work()
            except Exception:
                # Of a library that reads the table. Python raises its own exception at its next step.
                some_steps()
        except KeyboardInterrupt:
            raised += 1
        took = time.process_time() - begun
        timer.join()
        try:
            some_steps()
        except KeyboardInterrupt:
            raised += 1
        assert raised == 1
        assert took < 0.7 * whole, (took, whole)
    finally:
        signal.signal(signal.SIGINT, handler)


def some_steps() -> None:
    for _ in range(10):
        pass


def seconds(work: Callable[[], object]) -> float:
    """Returns the time that the process computes, whatever else the machine does."""
    begun = time.process_time()
    work()
    return time.process_time() - begun
