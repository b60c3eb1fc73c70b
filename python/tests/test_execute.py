"""The asyncio helper."""

from __future__ import annotations

import asyncio
import datetime
import pickle
import sys
import threading
import time
from dataclasses import dataclass
from decimal import Decimal
from typing import Annotated, Any

import pytest
from pydantic import AfterValidator, BaseModel

import plaincall as pc
from plaincall import _execute


def call(tool: str, call_id: str, /, *dependencies: str, **arguments: Any) -> str:
    header = ":".join([tool, call_id, ",".join(dependencies)]).rstrip(":")
    values = "".join(f"!!!ARG:{key}\n{value}\n" for key, value in arguments.items())
    return f"!!!GADGET_START:{header}\n{values}!!!GADGET_END\n"


def toolbox() -> tuple[pc.Toolbox, list[str]]:
    log: list[str] = []

    async def work(name: str, seconds: float = 0.0) -> str:
        log.append(f"start {name}")
        try:
            await asyncio.sleep(seconds)
        except asyncio.CancelledError:
            log.append(f"cancelled {name}")
            raise
        log.append(f"end {name}")
        return name

    def fail(message: str) -> None:
        raise RuntimeError(message)

    def thread() -> bool:
        return threading.current_thread() is threading.main_thread()

    def late() -> Any:
        return work("late")

    return pc.Toolbox([work, fail, thread, late]), log


async def run(text: str, **options: Any) -> tuple[list[tuple[str | None, str | None]], list[str]]:
    tools, log = toolbox()
    results = await pc.execute(tools, tools.parse(text, stop="natural").calls, **options)
    return [(one.status, one.output if one.error is None else one.error) for one in results], log


async def test_calls_run_when_their_dependencies_have_ended() -> None:
    text = (
        call("work", "c", "a", "b", name="c") + call("work", "a", name="a", seconds=0.02) + call("work", "b", name="b")
    )
    results, log = await run(text)
    assert results == [("ok", "c"), ("ok", "a"), ("ok", "b")]
    assert log[:2] == ["start a", "start b"] and log[-2:] == ["start c", "end c"]


async def test_failures_are_results() -> None:
    text = (
        call("fail", "f", message="no")
        + call("work", "g", "f", name="g")
        + call("work", "h", "g", name="h")
        + call("work", "i", "nothing", name="i")
        + call("work", "j", "j", name="j")
        + call("work", "k")
        + call("other", "l")
    )
    results, log = await run(text)
    assert [status for status, _ in results] == [
        "error",
        "skipped",
        "skipped",
        "rejected",
        "rejected",
        "rejected",
        "rejected",
    ]
    messages = [str(message) for _, message in results]
    assert messages[0] == "RuntimeError: no"
    assert messages[1] == "not run: it depends on `f`, which failed"
    assert messages[2] == "not run: it depends on `g`, which was skipped; the first failure was `f`"
    assert "`nothing`" in messages[3] and "`j`" in messages[4] and "`name`" in messages[5] and "`other`" in messages[6]
    assert log == []


async def test_calls_that_the_toolbox_has_not_read_are_validated() -> None:
    ran: list[int] = []

    def add(number: int) -> None:
        ran.append(number)

    def lenient(number: str) -> None:
        raise AssertionError

    def same(number: int) -> None:
        raise AssertionError

    tools = pc.Toolbox([add])
    other = pc.Toolbox([pc.tool(name="add")(lenient)])
    equal = pc.Toolbox([pc.tool(name="add")(same)])
    text = call("add", "a", number="seven") + call("take", "b", number="7")
    results = await pc.execute(tools, [*pc.parse(text).calls, *other.parse(call("add", "c", number="seven")).calls])
    assert [one.status for one in results] == ["rejected"] * 3, results
    assert "do not match this toolbox" in str(results[0].error)
    assert results[1].error == "the toolbox has no tool `take`"
    calls = [*equal.parse(call("add", "d", number="7")).calls, *tools.parse(call("add", "e", number="8")).calls]
    results = await pc.execute(tools, pickle.loads(pickle.dumps(calls)))
    assert [one.status for one in results] == ["ok", "ok"], results
    assert sorted(ran) == [7, 8]


async def test_calls_that_cannot_be_validated_are_rejected() -> None:
    tools = pc.Toolbox([{"name": "save"}])
    [emoji] = pc.parse("🛠️[save]\n🛠️[/end]\n", pc.Dialect.emoji()).calls
    assert emoji.may_run and emoji.arguments is None
    calls = [emoji, emoji]
    results = await pc.execute(tools, calls)
    assert [one.status for one in results] == ["rejected"] * 2, results
    assert results[0].error == "its arguments were not read, or are not a JSON object; use the calls of a toolbox"


async def test_calls_after_a_broken_beginning_that_the_toolbox_has_not_read() -> None:
    ran: list[str] = []

    def save() -> None:
        ran.append("save")

    tools = pc.Toolbox([save])
    for name, status in [("save", "rejected"), ("other", "ok")]:
        text = f'{{"name": "{name}", "arguments": {{}}}}\n' + call("save", "a") + call("save", "b")
        # Without tools, no candidate names one.
        calls = pc.parse(text).calls
        assert [one.may_run for one in calls] == [True, True]
        for given in [calls, pickle.loads(pickle.dumps(calls))]:
            results = await pc.execute(tools, given)
            assert [one.status for one in results] == [status] * 2, results
            if status == "rejected":
                assert all("looks like the start of a call" in str(one.error) for one in results)
    assert ran == ["save"] * 4


async def test_calls_without_an_end_marker_that_the_toolbox_has_not_read() -> None:
    ran: list[str] = []

    def save(text: str) -> None:
        ran.append(text)

    def read(text: str) -> None: ...

    tools, reading = pc.Toolbox([save]), pc.Toolbox([pc.tool(name="save", effect="read")(read)])
    # The other toolbox decides that such a call may run, because its tool only reads.
    calls = reading.parse("!!!GADGET_START:save\n!!!ARG:text\nHalf of the", stop="end_of_file").calls
    assert calls[0].may_run
    [result] = await pc.execute(tools, calls)
    assert result.status == "rejected" and "may be truncated" in str(result.error)
    # The second call may be part of the text of the first one.
    text = "!!!GADGET_START:save\n!!!ARG:text\nAn example:\n" + call("save", "b", text="quoted")
    calls = reading.parse(text, stop="natural").calls
    assert [one.may_run for one in calls] == [True, True]
    results = await pc.execute(tools, calls)
    assert [one.status for one in results] == ["rejected", "rejected"] and ran == []
    assert "the next call begins before" in str(results[0].error)
    assert "may be part of its text" in str(results[1].error)
    lenient = pc.Toolbox([save], unclosed="run")
    assert [one.status for one in await pc.execute(lenient, calls)] == ["ok", "ok"]


async def test_functions_run_in_threads() -> None:
    results, _ = await run(call("thread", "t") + call("late", "l"))
    assert results == [("ok", "false"), ("ok", "late")]


class Place(BaseModel):
    name: str


def known(place: Place) -> Place:
    if place.name == "Oz":
        raise ValueError("there is no such place")
    return place


class Unreadable(Exception):
    def __str__(self) -> str:
        raise RuntimeError("secret")


async def test_anything_that_a_tool_raises_is_the_error_of_its_call() -> None:
    def unreadable() -> None:
        raise Unreadable

    async def unreadable_later() -> None:
        raise Unreadable

    def leave() -> None:
        sys.exit(3)

    async def leave_later() -> None:
        sys.exit(3)

    async def slow() -> str:
        await asyncio.sleep(0.05)
        return "done"

    tools = pc.Toolbox([unreadable, unreadable_later, leave, leave_later, slow])
    calls = tools.parse("".join(call(name, name) for name in tools)).calls
    results = await pc.execute(tools, calls)
    assert [one.error for one in results] == ["Unreadable", "Unreadable", "SystemExit: 3", "SystemExit: 3", None]
    assert results[-1].output == "done"
    for approve in (leave, leave_later):
        results = await pc.execute(tools, calls, approve=lambda call, approve=approve: approve())  # type: ignore[misc]
        assert {one.error for one in results} == {"the call could not be approved: SystemExit"}


async def test_what_runs_was_validated(caplog: pytest.LogCaptureFixture) -> None:
    def pay(amount: int, account: str = "default", tags: list[str] = []) -> str:  # noqa: B006
        return f"{amount} from {account} {tags}"

    def change(call: pc.Call) -> bool:
        for arguments in (call.arguments, call.arguments):
            assert arguments is not None and arguments == {"amount": 5, "account": "mine", "tags": ["a"]}
            arguments["amount"] = ["five"]
            arguments["tags"].append("b")
            del arguments["account"]
        return True

    tools = pc.Toolbox([pay])
    calls = tools.parse(call("pay", "p", amount=5, account="mine", **{"tags/0": "a"})).calls
    shown = repr(calls)
    for read in (calls, pc.Toolbox([pay]).parse(call("pay", "p", amount=5, account="mine", **{"tags/0": "a"})).calls):
        [result] = await pc.execute(tools, read, approve=change)
        assert result.output == "5 from mine ['a']", result
    assert repr(calls) == shown and not caplog.records


async def test_exceptions_are_kept_and_logged(caplog: pytest.LogCaptureFixture) -> None:
    class Odd:
        def __str__(self) -> str:
            raise LookupError("no text")

    def fail(message: str) -> None:
        raise KeyError(message)

    async def fail_later(message: str) -> None:
        raise KeyError(message)

    def odd() -> Odd:
        return Odd()

    tools = pc.Toolbox([fail, fail_later, odd])
    text = call("fail", "a", message="x") + call("fail_later", "b", message="x") + call("odd", "c") + call("none", "d")
    results = await pc.execute(tools, tools.parse(text).calls)
    assert [type(one.exception) for one in results] == [KeyError, KeyError, LookupError, type(None)]
    assert [record.levelname for record in caplog.records] == ["WARNING"] * 3
    assert {record.message for record in caplog.records} >= {"the tool `fail` failed in the call 'a'"}
    assert caplog.text.count("Traceback") >= 3 and "KeyError: 'x'" in caplog.text and "in fail_later" in caplog.text
    assert results[0] == pc.Result("a", "fail", error="KeyError: 'x'", status="error") and "exception" not in repr(
        results[0]
    )
    assert "KeyError: 'x'" in tools.results(results) and "Traceback" not in tools.results(results)

    caplog.clear()
    [result] = await pc.execute(tools, tools.parse(call("odd", "o")).calls, approve=True)  # type: ignore[arg-type]
    assert result.status == "rejected" and isinstance(result.exception, TypeError)
    assert "`approve` failed for the call 'o' of `odd`" in caplog.text and "callable" in caplog.text


async def test_arguments_that_pydantic_rejects() -> None:
    ran: list[object] = []

    def plan(day: datetime.date, at: Annotated[Place, AfterValidator(known)]) -> None:
        ran.append(day)

    plan.__annotations__.update(day=datetime.date, at=Annotated[Place, AfterValidator(known)])
    tools = pc.Toolbox([plan])
    values = {"day": "2026-06-31", "at/name": "Rome"}
    text = call("plan", "a", **values) + call("plan", "b", **{**values, "day": "2026-06-30", "at/name": "Oz"})
    calls = tools.parse(text + call("plan", "c", "a", **values)).calls
    assert all(one.may_run for one in calls)
    first, second, third = await pc.execute(tools, calls)
    assert (first.status, second.status, third.status, ran) == ("rejected", "rejected", "skipped", [])
    assert str(first.error).startswith("the argument `day` is invalid: Input should be a valid date")
    assert second.error == "the argument `at` is invalid: Value error, there is no such place"
    assert not any(word in str(first.error) for word in ("https", "2026", "pydantic"))


async def test_at_most_so_many_calls_run_at_once() -> None:
    text = "".join(call("work", f"c{index}", name=f"c{index}", seconds=0.01) for index in range(4))
    _, log = await run(text, concurrency=1)
    assert log == [f"{what} c{index}" for index in range(4) for what in ("start", "end")]


async def test_a_time_limit() -> None:
    results, log = await run(call("work", "a", name="a", seconds=60), timeout=0.02)
    assert results == [("error", "timed out after 20 ms")]
    assert log == ["start a", "cancelled a"]


async def test_the_wait_for_a_thread_is_not_in_the_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_execute, "MOST_THREADS", 2)

    def work(name: str) -> str:
        time.sleep(0.2)
        return name

    tools = pc.Toolbox([work])
    calls = tools.parse("".join(call("work", f"c{index}", name=index) for index in range(6))).calls
    begun = time.monotonic()
    results = await pc.execute(tools, calls, timeout=0.5)
    assert [one.output for one in results] == list("012345"), results
    assert time.monotonic() - begun > 0.55


async def test_as_many_functions_as_allowed_run_in_threads() -> None:
    together = threading.Barrier(40, timeout=10)

    def work(name: str) -> str:
        return f"{together.wait() >= 0}"

    tools = pc.Toolbox([work])
    calls = tools.parse("".join(call("work", f"c{index}", name=index) for index in range(40))).calls
    results = await pc.execute(tools, calls, concurrency=40)
    assert {one.output for one in results} == {"True"}, results


async def test_a_function_in_a_thread_goes_on_after_its_time_limit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_execute, "MOST_THREADS", 1)
    end = threading.Event()
    threads: list[threading.Thread] = []

    def hang(name: str) -> str:
        threads.append(threading.current_thread())
        return f"{end.wait(10)}"

    def late() -> Any:
        return asyncio.sleep(60)

    tools = pc.Toolbox([hang, late])
    text = call("hang", "a", name="a") + call("hang", "b", name="b") + call("late", "l")
    results = await pc.execute(tools, tools.parse(text).calls, timeout=0.1)
    assert [one.error for one in results] == [
        "timed out after 100 ms; it still runs, and may still take effect",
        "timed out after 100 ms; it still runs, and may still take effect",
        "timed out after 100 ms",
    ]
    assert [one.is_alive() for one in threads] == [True, True]
    end.set()
    for one in threads:
        one.join(10)
        assert not one.is_alive()


@pytest.mark.parametrize(
    "options, message",
    [
        ({"concurrency": 0}, "`concurrency`: found 0, expected a whole number of at least 1"),
        ({"concurrency": -1}, "`concurrency`: found -1, expected a whole number of at least 1"),
        ({"concurrency": "x"}, "`concurrency`: expected a whole number, found str"),
        ({"timeout": "x"}, "`timeout`: expected a number of seconds, found str"),
        ({"timeout": 0}, "`timeout`: found 0, expected a number of seconds above 0"),
        ({"timeout": float("nan")}, "`timeout`: found nan, expected a number of seconds above 0"),
        ({"tools": [print]}, "`tools`: expected a Toolbox, found list"),
        ({"calls": pc.parse("")}, "`calls`: expected the calls of a document, `document.calls`, found Document"),
    ],
)
async def test_invalid_options(options: dict[str, Any], message: str) -> None:
    tools, _ = toolbox()
    with pytest.raises((TypeError, ValueError), match=f"^{message}"):
        await pc.execute(**{"tools": tools, "calls": [], **options})
    assert await pc.execute(tools, [], concurrency=2**40) == []


async def test_approval() -> None:
    async def approve(call: pc.Call) -> bool | str:
        if call.id == "error":
            raise RuntimeError("secret")
        return True if call.id == "yes" else "not today" if call.id == "reason" else False

    ids = ("yes", "no", "reason", "error")
    text = "".join(call("work", id, name=id) for id in ids) + call("work", "after", "no", name="after")
    results, log = await run(text, approve=approve)
    assert results == [
        ("ok", "yes"),
        ("rejected", "this call was not approved"),
        ("rejected", "not today"),
        ("rejected", "the call could not be approved: RuntimeError"),
        ("skipped", "not run: it depends on `no`, which was rejected"),
    ]
    assert log == ["start yes", "end yes"]


async def test_an_approval_that_waits_does_not_delay_other_calls() -> None:
    tools, log = toolbox()
    has_run = asyncio.Event()

    async def approve(call: pc.Call) -> bool:
        if call.id == "slow":
            await asyncio.wait_for(has_run.wait(), 5)
        return True

    async def wait() -> None:
        while "end b" not in log:
            await asyncio.sleep(0.001)
        has_run.set()

    text = call("work", "slow", name="slow") + call("work", "a", name="a") + call("work", "b", "a", name="b")
    waiting = asyncio.create_task(wait())
    results = await pc.execute(tools, tools.parse(text).calls, approve=approve)
    await asyncio.wait_for(waiting, 5)
    assert [one.status for one in results] == ["ok"] * 3
    assert log == ["start a", "end a", "start b", "end b", "start slow", "end slow"]


async def test_cancelling_cancels_the_approvals() -> None:
    tools, log = toolbox()
    seen: list[str] = []

    async def approve(call: pc.Call) -> bool:
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            seen.append("cancelled")
            raise
        return True

    task = asyncio.create_task(pc.execute(tools, tools.parse(call("work", "a", name="a")).calls, approve=approve))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (seen, log) == (["cancelled"], [])


def give(function: Any) -> pc.Toolbox:
    return pc.Toolbox([pc.Tool("give", "", {"type": "object"}, function=function)])


def stop_iteration() -> Any:
    return next(iter(()))


def cancelled() -> None:
    raise asyncio.CancelledError


async def cancelled_later() -> None:
    await asyncio.sleep(0)
    raise asyncio.CancelledError


def own_timeout() -> None:
    raise TimeoutError("no answer of db.test")


async def own_timeout_later() -> None:
    raise TimeoutError("no answer of db.test")


@pytest.mark.parametrize("timeout", [None, 5])
@pytest.mark.parametrize(
    "function, error",
    [
        (stop_iteration, "StopIteration: "),
        (cancelled, "the tool was cancelled"),
        (cancelled_later, "the tool was cancelled"),
        (own_timeout, "TimeoutError: no answer of db.test"),
        (own_timeout_later, "TimeoutError: no answer of db.test"),
    ],
)
async def test_exceptions_that_asyncio_uses_itself(function: Any, error: str, timeout: float | None) -> None:
    tools = give(function)
    calls = tools.parse(call("give", "g") + call("give", "h", "g")).calls
    first, second = await asyncio.wait_for(pc.execute(tools, calls, timeout=timeout), 10)
    assert (first.status, first.error, second.status) == ("error", error, "skipped")


async def test_held_calls_need_an_approval() -> None:
    text = "!!!GADGET_START:work\n!!!ARG:name\nx\n!!!GADGT_END\n!!!GADGET_END\n"
    [(status, message)], _ = await run(text)
    assert status == "rejected" and "may have been meant to end earlier" in str(message)
    results, _ = await run(text, approve=lambda call: call.held is not None)
    assert results[0][0] == "ok"


async def test_cancelling_cancels_the_calls() -> None:
    tools, log = toolbox()
    calls = tools.parse(call("work", "a", name="a", seconds=60)).calls
    task = asyncio.create_task(pc.execute(tools, calls))
    await asyncio.sleep(0.01)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert log == ["start a", "cancelled a"]


async def test_no_calls() -> None:
    assert await run("Hello.") == ([], [])


async def test_outputs() -> None:
    tools = pc.Toolbox([pc.Tool("give", "", {"type": "object"}, function=lambda: {"ä": [1, None]})])
    [result] = await pc.execute(tools, tools.parse(call("give", "g")).calls)
    assert (result.output, result.value) == ('{"ä": [1, null]}', {"ä": [1, None]})
    assert "Output:" in tools.results([result])


@dataclass
class Route:
    places: list[Place]


async def test_outputs_of_models_and_dataclasses() -> None:
    expected = {
        '{"name":"Rome"}': Place(name="Rome"),
        '{"places": [{"name": "Rome"}]}': Route([Place(name="Rome")]),
        '[{"name": "Rome"}, {"a": {"places": []}}]': [Place(name="Rome"), {"a": Route([])}],
    }
    for output, value in expected.items():
        tools = give(lambda value=value: value)
        [result] = await pc.execute(tools, tools.parse(call("give", "g")).calls)
        assert (result.output, result.value) == (output, value)


class Silent:
    def __repr__(self) -> str:
        raise RuntimeError("secret")


async def test_outputs_that_are_not_json() -> None:
    itself: list[Any] = []
    itself.append(itself)
    expected = {
        '[1, [2], "1.50", "b\'x\'"]': [1, {2}, Decimal("1.50"), b"x"],
        "{(1, 2): 'a'}": {(1, 2): "a"},
        "[[...]]": itself,
    }
    for output, value in expected.items():
        tools = give(lambda value=value: value)
        [result] = await pc.execute(tools, tools.parse(call("give", "g")).calls)
        assert (result.status, result.output) == ("ok", output)
        assert result.value is value


async def test_a_result_without_a_text_states_that_the_tool_ran() -> None:
    value = Silent()
    tools = give(lambda: value)
    first, second = await pc.execute(tools, tools.parse(call("give", "g") + call("give", "h", "g")).calls)
    assert (first.status, second.status, first.value is value) == ("error", "skipped", True)
    assert first.error == "the tool ran, but its result cannot be written as text: RuntimeError"
    assert "the tool ran, but" in tools.results([first])


async def test_a_function_that_approves_does_not_block_the_event_loop() -> None:
    tools, log = toolbox()
    has_run = threading.Event()
    asked: list[str] = []
    asking = 0

    def approve(call: pc.Call) -> bool:
        nonlocal asking
        asking += 1
        asked.append(call.id)
        # One function asks at a time.
        assert asking == 1 and threading.current_thread() is not threading.main_thread()
        if call.id == "slow":
            assert has_run.wait(5)
        asking -= 1
        return True

    async def wait() -> None:
        while "end a" not in log:
            await asyncio.sleep(0.001)
        has_run.set()

    text = call("work", "a", name="a") + call("work", "slow", name="slow") + call("work", "b", name="b")
    waiting = asyncio.create_task(wait())
    results = await pc.execute(tools, tools.parse(text).calls, approve=approve)
    await asyncio.wait_for(waiting, 5)
    assert [one.status for one in results] == ["ok"] * 3
    assert asked == ["a", "slow", "b"]


@pytest.mark.parametrize("decision, status", [(True, "ok"), ("no", "rejected"), (None, "rejected")])
async def test_a_function_that_approves_later(decision: Any, status: str) -> None:
    async def later() -> Any:
        await asyncio.sleep(0)
        return decision

    tools, _ = toolbox()
    [result] = await pc.execute(tools, tools.parse(call("work", "a", name="a")).calls, approve=lambda call: later())
    assert result.status == status


async def test_a_function_that_approves_may_raise_anything() -> None:
    def approve(call: pc.Call) -> bool:
        return bool(next(iter(())))

    tools, log = toolbox()
    calls = tools.parse(call("work", "a", name="a")).calls
    [result] = await asyncio.wait_for(pc.execute(tools, calls, approve=approve), 10)
    assert (result.error, log) == ("the call could not be approved: StopIteration", [])
