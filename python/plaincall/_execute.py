"""Calls the tools of a reply in dependency order, with asyncio.

```python
document = tools.parse(reply, stop=finish_reason)
results = await execute(tools, document.calls)
message = tools.results(results)
```
"""

from __future__ import annotations

import asyncio
import contextlib
import contextvars
import dataclasses
import functools
import inspect
import json
import logging
import math
import threading
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from typing import Any, TypeAlias

from plaincall._plaincall import Call, Plan
from plaincall.tools import CALLS, ArgumentError, Result, Toolbox, _list_of, _wrong_type

Approve = Callable[[Call], "bool | str | Awaitable[bool | str]"]
"""Decides whether a call runs: `True`, or `False` or a reason for the model why it does not."""

Denied: TypeAlias = "tuple[str, Exception | SystemExit | None]"
"""Why a call is denied, as a sentence for the model, and the exception of `approve`."""

Outcome: TypeAlias = "tuple[Any, Exception | SystemExit | None]"
"""What a function returned, or its exception. A coroutine cannot raise `StopIteration`."""

_LOG = logging.getLogger("plaincall")

MOST_THREADS = 64
"""The maximum number of functions that run in threads at the same time."""


async def execute(
    tools: Toolbox,
    calls: Iterable[Call],
    *,
    approve: Approve | None = None,
    concurrency: int | None = None,
    timeout: float | None = None,
) -> list[Result]:
    """Calls the tools of a reply, each when the calls that it depends on have succeeded, and returns their results in order.

    Nothing is raised for a call: an invalid call is rejected, an exception of a tool becomes its error, and a call that depends
    on a failed one is skipped. `Result.exception` has an exception of a tool or of `approve`, and the logger `plaincall` warns
    with its traceback. If the task is cancelled, its calls are cancelled too. Pass all calls of a reply at once: a call may be
    rejected because of one before it.

    Raises `ValueError` if `concurrency` is below 1, or if `timeout` is not above 0.

    A coroutine function runs in the event loop, any other function in a thread, at most 64 at the same time. Threads cannot be
    cancelled: after a time limit or a cancellation, their functions continue.
    `approve` is asked before each call, and an exception of it denies the call. Other calls run meanwhile. A coroutine function
    may be asked about several calls at the same time, any other function about one after another. `concurrency` is the maximum
    number of calls that run at the same time, and `timeout` the maximum time of each in seconds, without the wait for a thread.
    Default: no limits.

    The output of a call is the returned text, or another value as JSON: a model of pydantic as it writes itself, a dataclass as
    an object, a set as a list, and a value that JSON does not have as its `str`. A value that cannot be written as JSON becomes
    its `str`. If that raises an exception too, the error of the result states that the tool ran.

    Calls that another toolbox has read, or `parse` alone, are validated first. Of these, calls without an end marker are
    rejected, unless the next call ended them and their tool only reads, or the toolbox has `unclosed="run"`. Checks of pydantic
    that JSON Schema does not have, such as whether a date exists, come before the function too.

    Calls that were probably meant to end earlier, or that may quote another call (`Call.held`), run only if `approve` is given and
    approves them.

    A tool gets the arguments that were validated, whatever `approve` does with `Call.arguments`, which is a new `dict` each time.
    """
    _check_limits(tools, concurrency, timeout)
    written = _list_of(Call, "calls", CALLS, calls)
    plan = Plan(tools._set, None if concurrency is None else min(concurrency, 2**32 - 1))
    for call in written:
        plan.add(call, approve is not None)
    plan.end()

    # Two functions that ask at a terminal would disturb each other.
    asking = asyncio.Lock()
    threads = asyncio.Semaphore(MOST_THREADS)
    results: dict[int, Result] = {}
    running: dict[asyncio.Task[Result], int] = {}
    deciding: dict[asyncio.Task[Denied | None], int] = {}
    exceptions: dict[int, BaseException] = {}
    try:
        while True:
            while (action := plan.next()) is not None:
                kind, index, reason = action
                call = written[index]
                if kind == "ready":
                    if approve is None:
                        plan.admit(index)
                    else:
                        deciding[asyncio.create_task(_denied(approve, call, asking))] = index
                elif kind == "start":
                    running[asyncio.create_task(_run(tools, call, timeout, threads))] = index
                elif kind == "skipped":
                    results[index] = Result(call.id, call.name, error=reason, status="skipped")
                else:
                    exception = exceptions.get(index)
                    results[index] = Result(call.id, call.name, error=reason, status="rejected", exception=exception)
            if not running and not deciding:
                break
            await asyncio.wait([*running, *deciding], return_when=asyncio.FIRST_COMPLETED)
            for decided in [task for task in deciding if task.done()]:
                index = deciding.pop(decided)
                cancelled = (Plan.failure("approval", "CancelledError"), None)
                denied = cancelled if decided.cancelled() else decided.result()
                if denied is None:
                    plan.admit(index)
                    continue
                reason, exception = denied
                if exception is not None:
                    exceptions[index] = exception
                plan.deny(index, reason)
            for task in [task for task in running if task.done()]:
                index = running.pop(task)
                call = written[index]
                # The tool did this: here, nothing cancels a task before the end.
                results[index] = _failed(call, "cancelled") if task.cancelled() else task.result()
                plan.finish(index, results[index].status == "ok")
    finally:
        left: list[asyncio.Task[Any]] = [*running, *deciding]
        for one in left:
            one.cancel()
        # They end before the caller goes on.
        await asyncio.gather(*left, return_exceptions=True)
    return [results[index] for index in range(len(written))]


def _check_limits(tools: object, concurrency: object, timeout: object) -> None:
    if not isinstance(tools, Toolbox):
        raise _wrong_type("tools", "a Toolbox", tools)
    if concurrency is not None:
        if not isinstance(concurrency, int):
            raise _wrong_type("concurrency", "a whole number", concurrency)
        if concurrency < 1:
            raise ValueError(f"`concurrency`: found {concurrency}, expected a whole number of at least 1")
    if timeout is not None:
        if not isinstance(timeout, (int, float)):
            raise _wrong_type("timeout", "a number of seconds", timeout)
        if math.isnan(timeout) or timeout <= 0:
            raise ValueError(f"`timeout`: found {timeout}, expected a number of seconds above 0")


async def _denied(approve: Approve, call: Call, asking: asyncio.Lock) -> Denied | None:
    """Returns why a call is denied, or `None` if it is approved."""
    try:
        if inspect.iscoroutinefunction(approve):
            decision = await approve(call)
        else:
            async with asking:
                decision, error = await _Thread(functools.partial(approve, call)).outcome()
            if error is not None:
                raise error
    except (Exception, SystemExit) as error:
        _LOG.warning("`approve` failed for the call %r of `%s`", call.id, call.name, exc_info=error)
        return Plan.failure("approval", type(error).__name__), error
    if decision is True:
        return None
    return decision if isinstance(decision, str) else Plan.failure("not_approved"), None


async def _run(tools: Toolbox, call: Call, timeout: float | None, threads: asyncio.Semaphore) -> Result:
    tool = tools.get(call.name)
    if tool is None or tool.function is None:
        return _failed(call, "no_function", call.name)
    function = tool.function
    try:
        work = functools.partial(function, **tool.read(call.arguments or {}))
    except ArgumentError as error:
        return Result(call.id, call.name, error=str(error), status="rejected")
    except (Exception, SystemExit) as error:
        return _raised(call, error)
    if inspect.iscoroutinefunction(function):
        return await _limited(call, _ended(work), timeout)
    # The time limit begins with the function, not with the wait for a thread.
    async with threads:
        thread = _Thread(work)
        result = await _limited(call, thread.outcome(), timeout)
        if result.error is not None and thread.is_left:
            return dataclasses.replace(result, error=Plan.failure("running", result.error))
        return result


async def _limited(call: Call, ended: Coroutine[Any, Any, Outcome], timeout: float | None) -> Result:
    """Waits for the function of a call, at most for this time."""
    try:
        return await asyncio.wait_for(_result(call, ended), timeout)
    except asyncio.TimeoutError:
        return _failed(call, "timed_out", str(timeout))


async def _result(call: Call, ended: Coroutine[Any, Any, Outcome]) -> Result:
    """Waits for the function of a call. An exception of it, also a `TimeoutError`, becomes the error of the result."""
    try:
        value, error = await ended
    except (Exception, SystemExit) as failed:
        # No thread could be started.
        value, error = None, failed
    if error is not None:
        return _raised(call, error)
    try:
        return Result(call.id, call.name, output=_output(value), status="ok", value=value)
    except (Exception, SystemExit) as raised:
        unwritable = _failed(call, "unwritable", type(raised).__name__)
        return dataclasses.replace(unwritable, value=value, exception=_logged(call, raised))


def _raised(call: Call, error: Exception | SystemExit) -> Result:
    """Returns the result of a call whose tool raised an exception."""
    return Result(call.id, call.name, error=_described(error), status="error", exception=_logged(call, error))


def _logged(call: Call, error: Exception | SystemExit) -> Exception | SystemExit:
    _LOG.warning("the tool `%s` failed in the call %r", call.name, call.id, exc_info=error)
    return error


def _failed(call: Call, name: Any, detail: str = "") -> Result:
    """Returns the result of a call with this failure."""
    return Result(call.id, call.name, error=Plan.failure(name, detail), status="error")


def _described(error: BaseException) -> str:
    """Returns an exception as text. Its own text may raise another one."""
    name = type(error).__name__
    try:
        return f"{name}: {error}"
    except (Exception, SystemExit):
        return name


async def _ended(work: Callable[[], Awaitable[Any]]) -> Outcome:
    """Returns the outcome of a coroutine function."""
    try:
        return await work(), None
    except (Exception, SystemExit) as error:
        return None, error


class _Thread:
    """A function in a thread of its own. Those of asyncio are few, and functions that do not end would keep them."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self.function = function
        self.is_waited_for = True

    @property
    def is_left(self) -> bool:
        """Whether the function still runs, and nothing waits for it any more."""
        return not self.is_waited_for and self.thread.is_alive()

    async def outcome(self) -> Outcome:
        """Returns the outcome of the function, which may also return something to wait for."""
        loop = asyncio.get_running_loop()
        future: asyncio.Future[tuple[Any, BaseException | None]] = loop.create_future()
        context = contextvars.copy_context()

        def run() -> None:
            ended: tuple[Any, BaseException | None]
            try:
                ended = context.run(self.function), None
            except BaseException as error:
                ended = None, error
            # The loop may have been closed meanwhile.
            with contextlib.suppress(RuntimeError):
                loop.call_soon_threadsafe(finish, ended)

        def finish(ended: tuple[Any, BaseException | None]) -> None:
            if not future.done():
                future.set_result(ended)

        self.thread = threading.Thread(target=run, name="plaincall.execute")
        self.thread.start()
        try:
            value, error = await future
        except asyncio.CancelledError:
            self.is_waited_for = False
            raise
        if error is not None and not isinstance(error, (Exception, SystemExit)):
            raise error
        return (await _ended(lambda: value)) if inspect.isawaitable(value) else (value, error)


def _output(value: Any) -> str:
    """Returns a value as text for the model: text unchanged, other values as JSON or as their `str`."""
    if isinstance(value, str):
        return value
    try:
        if hasattr(value, "model_dump_json"):
            return str(value.model_dump_json())
        return json.dumps(value, ensure_ascii=False, default=_plain)
    except Exception:
        # Such as keys that are not text, and a list that contains itself.
        return str(value)


def _plain(value: Any) -> Any:
    """Returns a value that JSON does not have as one that it has."""
    if not isinstance(value, type):
        if hasattr(value, "model_dump"):
            return value.model_dump(mode="json")
        if dataclasses.is_dataclass(value):
            return {one.name: getattr(value, one.name) for one in dataclasses.fields(value)}
        if isinstance(value, (set, frozenset)):
            return list(value)
    return str(value)
