"""Ctrl-C during long work."""

from __future__ import annotations

import os
import signal
import threading
import time
from collections.abc import Callable


def check_interrupt(work: Callable[[int], object]) -> None:
    """Checks that Ctrl-C ends work of this size long before its end."""
    handler = signal.signal(signal.SIGINT, signal.default_int_handler)
    try:
        size = 8
        while seconds(work, size) < 1.5:
            size *= 2
        whole = seconds(work, size)
        timer = threading.Timer(whole / 10, os.kill, (os.getpid(), signal.SIGINT))
        begun = time.monotonic()
        timer.start()
        interrupted = False
        try:
            try:
                work(size)
            except Exception:
                # Of a library that reads the table. Python raises its own exception next.
                time.sleep(60)
        except KeyboardInterrupt:
            interrupted = True
        took = time.monotonic() - begun
        timer.join()
        assert interrupted
        assert took < 0.7 * whole, (took, whole)
    finally:
        signal.signal(signal.SIGINT, handler)


def seconds(work: Callable[[int], object], size: int) -> float:
    begun = time.monotonic()
    work(size)
    return time.monotonic() - begun
