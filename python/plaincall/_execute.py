"""Calls the tools of a reply in dependency order, with asyncio.

```python
document = tools.parse(reply, stop="natural")
results = await execute(tools, document.calls)
message = tools.results(results)
```
"""

from __future__ import annotations

import asyncio
import inspect
import json
from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from plaincall._plaincall import Call, Plan
from plaincall.tools import Result, Toolbox

Approve = Callable[[Call], "bool | str | Awaitable[bool | str]"]
"""Decides whether a call runs: `True`, or `False` or a reason for the model why it does not."""


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
    on a failed one is skipped. If the task is cancelled, its calls are cancelled too.

    A coroutine function runs in the event loop, any other function in a thread of asyncio; threads cannot be cancelled.
    `approve` is asked before each call; an exception of it denies the call. `concurrency` is the maximum number of calls that
    run at the same time, and `timeout` the maximum time of each in seconds. Default: no limits.

    Calls that were probably meant to end earlier (`Call.held`) run only if `approve` is given and approves them.
    """
    written = list(calls)
    plan = Plan(concurrency)
    for call in written:
        rejection = call.rejection
        if rejection is None and call.held is not None and approve is None:
            rejection = f"this call may have been meant to end earlier: {call.held}; send it again"
        plan.add(call.id, list(call.dependencies), rejection)
    plan.end()

    results: dict[int, Result] = {}
    running: dict[asyncio.Task[Result], int] = {}
    try:
        while True:
            while (action := plan.next()) is not None:
                kind, index, reason = action
                call = written[index]
                if kind == "ready":
                    denied = None if approve is None else await _denied(approve, call)
                    if denied is None:
                        plan.admit(index)
                    else:
                        plan.deny(index, denied)
                elif kind == "start":
                    running[asyncio.create_task(_run(tools, call, timeout))] = index
                elif kind == "skipped":
                    results[index] = Result(call.id, call.name, error=reason, status="skipped")
                else:
                    results[index] = Result(call.id, call.name, error=reason, status="rejected")
            if not running:
                break
            done, _ = await asyncio.wait(running, return_when=asyncio.FIRST_COMPLETED)
            for task in done:
                index = running.pop(task)
                results[index] = task.result()
                plan.finish(index, results[index].status == "ok")
    finally:
        for task in running:
            task.cancel()
        # They end before the caller goes on.
        await asyncio.gather(*running, return_exceptions=True)
    return [results[index] for index in range(len(written))]


async def _denied(approve: Approve, call: Call) -> str | None:
    """Returns why a call is denied, or `None` if it is approved."""
    try:
        decision = approve(call)
        if inspect.isawaitable(decision):
            decision = await decision
    except Exception as error:
        return f"the approval of this call failed: {type(error).__name__}"
    if decision is True:
        return None
    return decision if isinstance(decision, str) else "this call was not approved"


async def _run(tools: Toolbox, call: Call, timeout: float | None) -> Result:
    def failed(error: str) -> Result:
        return Result(call.id, call.name, error=error, status="error")

    tool = tools.get(call.name)
    if tool is None or tool.function is None:
        return failed(f"the tool `{call.name}` has no function here")
    function = tool.function
    try:
        named = dict(tool.read(call.arguments or {}))
        working = function(**named) if inspect.iscoroutinefunction(function) else asyncio.to_thread(function, **named)
        value = await asyncio.wait_for(working, timeout)
        # A function may return something to wait for.
        if inspect.isawaitable(value):
            value = await asyncio.wait_for(value, timeout)
        return Result(call.id, call.name, output=_output(value), status="ok", value=value)
    except asyncio.TimeoutError:
        return failed("timed out" if timeout is None else f"timed out after {timeout:g} seconds")
    except Exception as error:
        return failed(f"{type(error).__name__}: {error}")


def _output(value: Any) -> str:
    """Returns a value as text for the model: text unchanged, other values as JSON."""
    if isinstance(value, str):
        return value
    if hasattr(value, "model_dump_json"):
        return str(value.model_dump_json())
    return json.dumps(value, ensure_ascii=False, default=str)
