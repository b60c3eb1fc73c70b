"""Exceptions of signal handlers, which the native code of other libraries replaces by its own."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable


def next_step() -> None:
    """Does something in Python, which first calls handlers of signals, and raises what waits for it."""
    for _ in range(2):
        pass


def raiser(error: BaseException) -> Callable[[], object]:
    """Returns a function that raises an exception at the next step of this thread.

    Python takes a class for it, and creates the exception: this class returns the one that exists.
    """
    import ctypes

    again = type(type(error).__name__, (type(error),), {"__new__": lambda *_: error})
    raise_later = ctypes.pythonapi.PyThreadState_SetAsyncExc
    return functools.partial(raise_later, ctypes.c_ulong(threading.get_ident()), ctypes.py_object(again))
