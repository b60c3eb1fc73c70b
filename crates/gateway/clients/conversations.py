"""Generated conversations over sockets, by the Python client of OpenAI.

What the client puts together of each reply must be the calls that `plaincall parse --escaped` finds in it.

    python conversations.py PROGRAM COUNT
"""

import json
import random
import re
import subprocess
import sys
import tempfile
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import httpx
from openai import APIError, OpenAI

PROGRAM, COUNT = sys.argv[1], int(sys.argv[2])
# So many gateways and clients at one time.
AT_ONCE = 4

TYPES = {
    "text": {"type": "string"},
    "count": {"type": "integer"},
    "ratio": {"type": "number"},
    "deep": {"type": "boolean"},
    "tags": {"type": "array", "items": {"type": "string"}},
    "range": {"type": "object", "properties": {"from": {"type": "integer"}, "to": {"type": "integer"}}},
}


def tool(name, properties, required):
    parameters = {"type": "object", "properties": {key: TYPES[key] for key in properties}, "required": required}
    return {"type": "function", "function": {"name": name, "description": f"Does {name}.", "parameters": parameters}}


TOOLS = [
    tool("now", [], []),
    tool("write", ["text"], ["text"]),
    tool("search", ["text", "count", "tags", "deep"], ["text"]),
    tool("measure", ["ratio", "range"], []),
]
WORDS = ["I look.", "é\U0001f600", "\n", '"quoted"', "\\", "!!!", "!!!GADGET_\\END", "\U0001f6e0️", "[", "a\tb", "</p>", " "]
VALUES = {
    "count": ["5", "-1234567890123456789", "007"],
    "ratio": ["0.1", "1e3", "-0.50"],
    "deep": ["true", "false"],
}


def literal(value):
    """A value as JSON writes it, if possible."""
    try:
        return json.loads(value)
    except json.JSONDecodeError:
        return value


class Writer:
    """Writes the replies of a model, now and then wrong ones, in one of the syntaxes."""

    def __init__(self, seed, syntax):
        self.random = random.Random(seed)
        self.syntax = syntax

    def words(self, most):
        return "".join(self.random.choices(WORDS, k=self.random.randint(0, most)))

    def value(self, key):
        if self.random.random() < 0.05:
            return self.words(3)
        return self.random.choice(VALUES[key]) if key in VALUES else self.words(6)

    def arguments(self, properties):
        for key in properties:
            if self.random.random() < 0.1:
                continue
            if key == "tags":
                for place in range(self.random.randint(0, 3)):
                    yield f"tags/{place}", self.words(2)
            elif key == "range":
                for name in ("from", "to"):
                    yield f"range/{name}", self.value("count")
            else:
                yield key, self.value(key)

    def call(self):
        function = self.random.choice(TOOLS)["function"]
        name = function["name"] if self.random.random() < 0.95 else "unknown"
        arguments = list(self.arguments(function["parameters"]["properties"]))
        if self.syntax == "block":
            lines = [f"!!!GADGET_START:{name}"]
            for pointer, value in arguments:
                lines += [f"!!!ARG:{pointer}", value]
            return "\n".join([*lines, "!!!GADGET_END"]) + "\n"
        start, end = f"\U0001f6e0️[{name}", "\U0001f6e0️[/end]\n"
        if name == "now":
            return f"{start}]\n{end}"
        if name == "write":
            return f"{start} {' '.join(self.words(6).split()).replace(']', ')')}]\n{end}"
        values = {}
        for pointer, value in arguments:
            key, *rest = pointer.split("/")
            if key == "tags":
                values.setdefault(key, []).append(value)
            elif key == "range":
                values.setdefault(key, {})[rest[0]] = literal(value)
            else:
                values[key] = value if key == "text" else literal(value)
        body = json.dumps(values, ensure_ascii=self.random.random() < 0.5)
        return f"{start}]\n{body}\n{end}"

    def reply(self):
        parts = []
        for _ in range(self.random.randint(0, 4)):
            kind = self.random.random()
            if kind < 0.6:
                parts.append(self.call())
            elif kind < 0.7 and not parts:
                # Reasoning begins a reply; for `parse --reasoning` it may begin anywhere.
                parts.append("<think>" + self.words(3) + self.call() + "</think>")
            else:
                parts.append(self.words(6) + "\n")
        text = "".join(parts)
        if self.random.random() < 0.2:
            return {"content": text[: self.random.randint(0, len(text))], "finish_reason": "length"}
        return {"content": text, "finish_reason": "stop"}


def found(replies, syntax, schema):
    """The calls of some replies, by the command."""
    command = [PROGRAM, "parse", "--jsonl", "--format", "openai", "--escaped", "--syntax", syntax]
    command += ["--schema", schema, "--reasoning", "<think>", "</think>"]
    calls = []
    for reply in replies:
        whole = ["--complete"] if reply["finish_reason"] == "stop" else []
        line = json.dumps(reply["content"]) + "\n"
        ran = subprocess.run(command + whole, input=line, capture_output=True, encoding="utf-8")
        if ran.returncode > 1:
            raise SystemExit(ran.stderr)
        given = json.loads(ran.stdout)["tool_calls"]
        calls.append([(call["function"]["name"], call["function"]["arguments"]) for call in given])
    return calls


def can_be_read(text):
    try:
        return isinstance(json.loads(text), dict)
    except json.JSONDecodeError:
        return False


def ask(client, messages):
    with client.chat.completions.stream(model="m", messages=messages, tools=TOOLS) as stream:
        for _ in stream:
            pass
        return stream.current_completion_snapshot.choices[0]


def talk(seed, url, replies, expected):
    """Has one conversation, and gives the number of calls."""
    client = OpenAI(base_url=url, api_key="none", max_retries=0, http_client=httpx.Client(trust_env=False))
    messages = [{"role": "user", "content": "Do it. !!!GADGET_END"}]
    ids, count = set(), 0
    for turn, (reply, calls) in enumerate(zip(replies, expected)):
        try:
            choice = ask(client, messages)
        except APIError as error:
            # A text that was truncated in its first call would look like an answer.
            if reply["finish_reason"] != "length" or calls or "truncated in a tool call" not in str(error):
                raise
            messages += [{"role": "assistant", "content": "Nothing."}, {"role": "user", "content": "Go on."}]
            continue
        given = choice.message.tool_calls or []
        read = [(call.function.name, call.function.arguments) for call in given]
        read = [call for call in read if can_be_read(call[1])]
        if read != calls:
            raise SystemExit(f"conversation {seed}, turn {turn}: {reply}\nexpected {calls}\nfound    {read}")
        reason = "length" if reply["finish_reason"] == "length" else ("tool_calls" if given else "stop")
        if choice.finish_reason != reason:
            raise SystemExit(f"conversation {seed}, turn {turn}: {reply}\nended with {choice.finish_reason}, not {reason}")
        known = len(ids)
        ids.update(call.id for call in given)
        if len(ids) != known + len(given):
            raise SystemExit(f"conversation {seed}, turn {turn}: an id twice")
        turn = choice.message.model_dump(exclude_none=True, include={"role", "content", "tool_calls"})
        if not given and not (turn.get("content") or "").strip():
            # Empty messages are omitted, and the recorded replies are counted by the model's messages.
            turn["content"] = "Nothing."
        messages.append(turn)
        messages += [{"role": "tool", "tool_call_id": call.id, "content": "\n!!!GADGET_END\n"} for call in given]
        messages.append({"role": "user", "content": "Go on."})
        count += len(calls)
    client.close()
    return count


def conversation(seed, folder):
    syntax = ("block", "emoji")[seed % 2]
    writer = Writer(seed, syntax)
    replies = [writer.reply() for _ in range(writer.random.randint(1, 4))]
    expected = found(replies, syntax, folder / "tools.json")
    file = folder / f"{seed}.jsonl"
    file.write_text("".join(json.dumps(reply) + "\n" for reply in replies), encoding="utf-8")
    # What is not repaired is one answer for each reply of the file, and shows every call.
    settings = folder / f"{seed}.toml"
    settings.write_text(f'[models."*"]\nsyntax = "{syntax}"\narguments = "stream"\n', encoding="utf-8")
    command = [PROGRAM, "serve", "--listen", "127.0.0.1:0", "--config", settings, "--upstream", f"replay:{file}"]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, encoding="utf-8") as gateway:
        try:
            said = gateway.stderr.readline()
            url = re.search(r"http://\S+", said)
            if not url:
                raise SystemExit(f"the gateway did not begin: {said}")
            return talk(seed, url[0], replies, expected)
        finally:
            gateway.kill()


with tempfile.TemporaryDirectory() as name, ThreadPoolExecutor(AT_ONCE) as pool:
    folder = Path(name)
    (folder / "tools.json").write_text(json.dumps(TOOLS), encoding="utf-8")
    counts = list(pool.map(lambda seed: conversation(seed, folder), range(COUNT)))
    if sum(counts) < COUNT:
        raise SystemExit(f"too few calls: {sum(counts)}")
    print(f"{COUNT} conversations, {sum(counts)} calls")
