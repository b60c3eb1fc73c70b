"""The program that tests parsers, `conformance/run.py`, with this package as the parser and with parsers that fail."""

from __future__ import annotations

import json
import subprocess
import sys

import pytest
from specification import ROOT, dialect_of
from test_events import in_conformance, read

import plaincall as pc

Ended = subprocess.CompletedProcess[str]


def run(options: list[str], parser: list[str]) -> Ended:
    command = [sys.executable, str(ROOT / "conformance/run.py"), *options, "--", *parser]
    return subprocess.run(command, capture_output=True, text=True, timeout=100)


def answering(answer: str) -> list[str]:
    return ["sh", "-c", f"while read line; do echo '{answer}'; done"]


def test_this_package_conforms() -> None:
    ended = run(["--free"], [sys.executable, __file__])
    assert ended.returncode == 0, ended
    assert " examples: " in ended.stdout
    assert " 0 failed, " in ended.stdout


def test_wrong_answers_are_shown() -> None:
    wrong = answering('{"events":[],"calls":[]}')
    few, all_of_them = run(["--id", "block"], wrong), run(["--id", "block", "--full"], wrong)
    assert (few.returncode, all_of_them.returncode) == (1, 1)
    assert "more failed; `--full` prints them" in few.stdout
    assert "block/2.2/1 events\n  input\n" in all_of_them.stdout
    ended = run(["--id", "emoji"], answering('{"unsupported":["events","calls","text","refused","near"]}'))
    assert (ended.returncode, " 0 checks passed, 0 failed, " in ended.stdout) == (0, True)


@pytest.mark.parametrize(
    ("call", "is_right"),
    [
        ('{"type":"call","name":"Look","span":[1,2]}', True),
        ('{"type":"call","name":"Look","id":null,"dependencies":[]}', True),
        ('{"type":"call","name":"Look","id":"a"}', False),
        ('{"type":"call","name":"look"}', False),
    ],
)
def test_text_may_be_split_and_keys_may_be_added(call: str, is_right: bool) -> None:
    text = '{"type":"text","text":"I\'"\'"\'ll "},{"type":"text","text":""},{"type":"text","text":"look: "}'
    ended = run(
        ["--id", "block/2.1/1"], answering(f'{{"events":[{text},{call},{{"type":"end","termination":"explicit"}}]}}')
    )
    assert (ended.returncode == 0) == is_right, ended


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("exit 3", "common/4/1: the parser ended without an answer\n"),
        ("sleep 300", "common/4/1: the parser did not answer within 1 s\n"),
        ("echo 1", "common/4/1: the parser answered with a line that is not a JSON object\n"),
    ],
)
def test_parsers_that_fail(script: str, expected: str) -> None:
    ended = run(["--timeout", "1"], ["sh", "-c", script])
    assert (ended.returncode, ended.stderr) == (1, expected)


if __name__ == "__main__":
    for line in sys.stdin:
        question = json.loads(line)
        text, dialect = question["input"], dialect_of(question["dialect"])
        answer: dict[str, object] = {
            "unsupported": ["calls", "refused", *(["text"] if question["operation"] == "render" else [])]
        }
        match question["operation"]:
            case "read":
                answer["events"] = in_conformance(text, read([text], dialect))
            case "escape":
                answer["text"] = pc.Toolbox([], dialect=dialect).escape(text)
            case "near":
                answer["near"] = [
                    {"written": one.source, "suggestion": one.suggestion} for one in pc.near_misses(text, dialect)
                ]
        print(json.dumps(answer), flush=True)
