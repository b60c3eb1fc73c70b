"""Tests a parser against the examples of the specification: `python3 conformance/run.py [--id PREFIX] -- COMMAND`.

Starts COMMAND, sends it each example as one line of JSON, and compares its answers; README.md describes both. Without COMMAND it prints
the examples. Exit status: 0 if no check failed, else 1. It needs Python 3.10 and nothing else.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from pathlib import Path
from typing import Any

RESULTS = ("events", "calls", "text", "refused", "near")
CONTENT = ("text", "reasoning", "value", "ignored")
SHOWN = 10
"""How many failures are printed without `--full`."""

Case = dict[str, Any]


def examples(prefixes: list[str], with_free: bool) -> list[Case]:
    files = [json.loads(Path(__file__).with_name(f"{topic}.json").read_text("utf-8")) for topic in ("common", "block", "emoji", "limits")]
    cases: list[Case] = [case for file in files for case in file["cases"]]
    return [case for case in cases if case["id"].startswith(tuple(prefixes or [""])) and (with_free or case["class"] != "free")]


def merged(events: Any) -> Any:
    """Joins neighbouring content events of one type, and removes empty ones: pieces are arbitrary."""
    if not isinstance(events, list):
        return events
    found: list[Any] = []
    for event in events:
        kind = event.get("type")
        if kind not in CONTENT:
            found.append(event)
        elif found and found[-1].get("type") == kind:
            found[-1] = {**found[-1], "text": found[-1]["text"] + event["text"]}
        elif event["text"]:
            found.append(event)
    return found


def same(one: Any, other: Any) -> bool:
    """Compares JSON with its types: `1`, `1.0` and `true` differ."""
    return json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def has_all(expected: Case, found: Any) -> bool:
    return isinstance(found, dict) and all(key in found and same(found[key], value) for key, value in expected.items())


def same_event(expected: Case, found: Any) -> bool:
    """What an example omits is absent or empty."""
    omitted = {"id", "dependencies", "raw_args"} - expected.keys()
    return has_all(expected, found) and all(found.get(key) in (None, []) for key in omitted)


def same_call(expected: Case, found: Any) -> bool:
    """An invalid call has no parameters. The wording of `problems` is free."""
    keys = {key: value for key, value in expected.items() if key != "problems"}
    is_invalid = "problems" in expected or "parseError" in expected
    return has_all(keys, found) and not (is_invalid and found.get("parameters") is not None)


def is_right(name: str, case: Case, found: Any) -> bool:
    expected = case[name]
    if name in ("events", "calls"):
        equal = same_event if name == "events" else same_call
        return isinstance(found, list) and len(found) == len(expected) and all(map(equal, expected, found))
    if name == "refused":
        return isinstance(found, str)
    if name == "text" and case["operation"] == "render" and isinstance(found, str):
        found = found.removesuffix("\n")
    return same(expected, found)


class Parser:
    """The parser under test. It is ended with the processes that it started."""

    def __init__(self, command: list[str], timeout: float) -> None:
        self.timeout = timeout
        try:
            self.process = subprocess.Popen(
                command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, encoding="utf-8", start_new_session=True
            )
        except OSError as error:
            sys.exit(f"cannot start {command[0]}: {error.strerror}")

    def end(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.killpg(self.process.pid, signal.SIGKILL)

    def ask(self, request: Case) -> Case:
        assert self.process.stdin and self.process.stdout
        timer = threading.Timer(self.timeout, self.end)
        timer.start()
        # A parser that has ended may have answered. Python would try to write the rest again when it ends.
        try:
            print(json.dumps(request), file=self.process.stdin, flush=True)
        except BrokenPipeError:
            with contextlib.suppress(BrokenPipeError):
                self.process.stdin.close()
        line = self.process.stdout.readline()
        is_late = timer.finished.is_set()
        timer.cancel()
        if not line:
            reason = f"did not answer within {self.timeout:g} s" if is_late else "ended without an answer"
            sys.exit(f"{request['id']}: the parser {reason}")
        try:
            answer = json.loads(line)
        except ValueError:
            answer = None
        if not isinstance(answer, dict):
            sys.exit(f"{request['id']}: the parser answered with a line that is not a JSON object")
        return answer


def show(case: Case, name: str, found: Any) -> None:
    print(case["id"], name)
    for heading, value in (("input", case["input"]), ("expected", case[name]), ("found", found)):
        print(f"  {heading}")
        for item in value if isinstance(value, list) and value else [value]:
            print(f"    {json.dumps(item)}")
    print()


def check(parser: Parser, cases: list[Case], shown: int | None) -> Counter[str]:
    counts: Counter[str] = Counter()
    for case in cases:
        wanted = [name for name in RESULTS if name in case]
        request: Case = {key: case[key] for key in ("id", "operation", "dialect", "input", "schema") if key in case}
        answer = parser.ask({**request, "want": wanted})
        for name in wanted:
            found = merged(answer.get(name)) if name == "events" else answer.get(name)
            if name in (answer.get("unsupported") or []):
                counts["not supported"] += 1
            elif is_right(name, case, found):
                counts["passed"] += 1
            else:
                counts["failed"] += 1
                if shown is None or counts["failed"] <= shown:
                    # Without this result, the complete answer may state an error.
                    show(case, name, answer if found is None else found)
    return counts


def main() -> None:
    options = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    options.add_argument("--id", action="append", default=[], metavar="PREFIX", help="only examples whose id begins like this")
    options.add_argument("--free", action="store_true", help="also examples whose result the defining documents leave open")
    options.add_argument("--full", action="store_true", help=f"print all failures; default: at most {SHOWN}")
    options.add_argument("--timeout", type=float, default=10, metavar="SECONDS", help="the time limit of an answer; default: 10")
    options.add_argument("command", nargs="*", metavar="COMMAND")
    given = options.parse_args()
    cases = examples(given.id, given.free)
    if not cases:
        options.error("no example matches the options")
    if not given.command:
        for case in cases:
            print(json.dumps(case, ensure_ascii=False))
        return
    parser = Parser(given.command, given.timeout)
    try:
        counts = check(parser, cases, None if given.full else SHOWN)
    finally:
        parser.end()
    hidden = 0 if given.full else max(0, counts["failed"] - SHOWN)
    if hidden:
        print(f"{hidden} more failed; `--full` prints them")
    print(f"{len(cases)} examples: {counts['passed']} checks passed, {counts['failed']} failed, {counts['not supported']} not supported")
    sys.exit(1 if counts["failed"] else 0)


if __name__ == "__main__":
    main()
