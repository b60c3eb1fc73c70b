"""Runs vLLM's tests of its parsers of tool calls on the gateway in native mode.

    python tool_parsers.py PLAINCALL FOLDER

vLLM's source distribution (requirements-parsers.txt names its version) has the tests; nothing of vLLM is imported. In place of a
parser, the tests get one that answers with the calls which a client of the gateway gets for the same reply of the model. Each test
that fails must match a row of tool_parsers.toml, which explains the difference, and each row must be needed. Tests of streamed
deltas, of helpers and of requests are skipped.
"""

import fnmatch
import http.server
import json
import os
import re
import subprocess
import sys
import tarfile
import threading
import tomllib
import types
import urllib.request
from importlib.machinery import ModuleSpec
from pathlib import Path
from unittest.mock import MagicMock

VERSION = "0.33.0"
PLAINCALL, FOLDER = Path(sys.argv[1]), Path(sys.argv[2])
HERE = Path(__file__).parent
TABLE = tomllib.loads((HERE / "tool_parsers.toml").read_text("utf-8"))
FORMATS: dict[str, list[str]] = TABLE["formats"]

# --- the gateway, and a model server that answers with the next text ---

answer = ""


class ModelServer(http.server.BaseHTTPRequestHandler):
    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["content-length"]))
        message = {"role": "assistant", "content": answer}
        body = json.dumps({"object": "chat.completion", "choices": [{"index": 0, "message": message, "finish_reason": "stop"}]})
        self.send_response(200)
        self.send_header("content-type", "application/json")
        self.end_headers()
        self.wfile.write(body.encode())

    def log_message(self, *_: object) -> None:
        pass


def start_gateway() -> tuple[subprocess.Popen[str], str]:
    server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), ModelServer)
    threading.Thread(target=server.serve_forever, daemon=True).start()
    upstream = f"http://127.0.0.1:{server.server_port}/v1"
    config = FOLDER / "config.toml"
    models = [
        f'[models."{name}"]\nmode = "native"\nrepair_rounds = 0\nformats = {json.dumps(formats)}\n'
        for name, formats in FORMATS.items()
    ]
    config.write_text("\n".join(models), "utf-8")
    command = [PLAINCALL, "serve", "--upstream", upstream, "--listen", "127.0.0.1:0", "--config", config]
    gateway = subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True)
    assert gateway.stderr
    for line in gateway.stderr:
        found = [url for url in re.findall(r"http://127\.0\.0\.1:\d+", line) if not upstream.startswith(url)]
        if found:
            threading.Thread(target=gateway.stderr.read, daemon=True).start()
            return gateway, found[0]
    raise AssertionError("the gateway did not start")


def definitions(text: str, request: object) -> list[dict]:
    """The tools of the request, and every other word of the reply: vLLM does not check names. These have any arguments."""
    def plain(one: object) -> dict:
        return one if isinstance(one, dict) else vars(one)

    tools = getattr(request, "tools", None)
    given = [plain(plain(tool)["function"]) for tool in tools] if isinstance(tools, list) else []
    functions = [{"name": one["name"], "parameters": one.get("parameters") or {}} for one in given]
    words = set(re.findall(r"[A-Za-z_][\w.-]*", text.replace("functions.", ""))) - {one["name"] for one in functions}
    anything = {"type": "object", "additionalProperties": True}
    functions += [{"name": word, "parameters": anything} for word in sorted(words)[:200]]
    return [{"type": "function", "function": one} for one in functions]


def calls_of(parser: str, text: str, request: object) -> tuple[str | None, list]:
    global answer
    answer = text
    body = {"model": parser, "messages": [{"role": "user", "content": "Go on."}], "tools": definitions(text, request)}
    sent = urllib.request.Request(URL + "/v1/chat/completions", json.dumps(body).encode(), {"content-type": "application/json"})
    with urllib.request.urlopen(sent) as response:
        message = json.load(response)["choices"][0]["message"]
    calls = [
        ToolCall(id=call["id"], function=FunctionCall(name=call["function"]["name"], arguments=json.dumps(json.loads(call["function"]["arguments"]), ensure_ascii=False)))
        for call in message.get("tool_calls") or []
    ]
    return message.get("content"), calls


# --- what the tests import ---


class Json(str):
    """A text that equals one with the same JSON."""

    def __eq__(self, other: object) -> bool:
        try:
            return json.loads(self) == json.loads(str(other))
        except ValueError:
            return str(self) == other

    __hash__ = str.__hash__


class Fields(types.SimpleNamespace):
    def __init__(self, *positional: object, **fields: object) -> None:
        super().__init__(**fields)

    def model_dump(self, **_: object) -> dict:
        return vars(self)


class FunctionCall(Fields):
    def __init__(self, name: str = "", arguments: str = "") -> None:
        super().__init__(name=name, arguments=Json(arguments))


class ToolCall(Fields):
    def __init__(self, function: object = None, id: str = "", type: str = "function") -> None:
        super().__init__(function=function, id=id, type=type)


class Parser:
    name = ""

    def __init__(self, tokenizer: object = None, tools: object = None, **_: object) -> None:
        self.model_tokenizer, self.tools, self.vocab = tokenizer, tools, {}

    def extract_tool_calls(self, model_output: str, request: object = None, **_: object) -> Fields:
        if self.name not in FORMATS:
            pytest.skip("this format is not one of the gateway's")
        given = request if getattr(request, "tools", None) else types.SimpleNamespace(tools=self.tools)
        content, calls = calls_of(self.name, model_output, given)
        seen.append(model_output)
        return Fields(tools_called=bool(calls), tool_calls=calls, content=content)

    def __getattr__(self, name: str) -> object:
        pytest.skip(f"`{name}` is not what this check compares")


def parser_named(name: str) -> type[Parser]:
    return type("Parser", (Parser,), {"name": name})


class Tokenizer:
    def get_vocab(self) -> dict[str, int]:
        return {}

    @staticmethod
    def from_pretrained(*_: object, **__: object) -> "Tokenizer":
        return Tokenizer()


class Manager:
    @staticmethod
    def get_tool_parser(name: str) -> type[Parser]:
        return parser_named(name)


class Stub(types.ModuleType):
    """A module in which everything can be found."""

    __path__: list[str] = []

    def __getattr__(self, name: str) -> object:
        if name.startswith("__"):
            raise AttributeError(name)
        known = {"AutoTokenizer": Tokenizer, "FunctionCall": FunctionCall, "ToolCall": ToolCall, "ToolParserManager": Manager}
        if name.endswith("ToolParser"):
            file = self.__name__.rsplit(".", 1)[-1]
            return parser_named(file.removesuffix("_tool_parser").removesuffix("_engine"))
        if name[:1].isupper() and not name.isupper():
            return known.get(name, Fields)
        return MagicMock(name=name)


class Finder:
    def find_spec(self, name: str, path: object = None, target: object = None) -> ModuleSpec | None:
        return ModuleSpec(name, self) if name.split(".")[0] in TABLE["stubs"] else None

    def create_module(self, spec: ModuleSpec) -> Stub:
        return Stub(spec.name)

    def exec_module(self, module: Stub) -> None:
        pass


# --- the tests ---


class Results:
    def __init__(self) -> None:
        self.failed: dict[str, str] = {}
        self.passed = 0

    def pytest_runtest_call(self, item: object) -> None:
        seen.clear()

    def pytest_runtest_logreport(self, report: object) -> None:
        name = report.nodeid.split("tool_parsers/")[-1]
        if re.search("(?<!non)(?<!non_)streaming", name):
            return
        if report.when == "call" and report.outcome == "passed" and (seen or "malformed" in name or "no_tool" in name):
            self.passed += 1
        elif report.outcome == "failed" and "XPASS" in str(report.longrepr):
            self.passed += 1
        elif report.outcome == "failed" and report.when == "call" and seen:
            self.failed[name] = str(report.longrepr).rsplit("\nE ", 1)[-1].split("\n")[0]


def source() -> Path:
    tests = FOLDER / f"vllm-{VERSION}" / "tests"
    if not tests.exists():
        program = Path(sys.executable).with_name("unearth")
        command = [program, "--no-binary", "--download", FOLDER, f"vllm=={VERSION}"]
        subprocess.run(command, check=True, stdout=subprocess.DEVNULL)
        with tarfile.open(FOLDER / f"vllm-{VERSION}.tar.gz") as archive:
            members = [member for member in archive if "/tests/tool_parsers/" in member.name or "/tests/parser/" in member.name]
            archive.extractall(FOLDER, members, filter="data")
    return tests


seen: list[str] = []
sys.meta_path.insert(0, Finder())
import pytest  # noqa: E402

tests = source()
gateway, URL = start_gateway()
results = Results()
try:
    sys.path.insert(0, str(tests.parent))
    options = ["-q", "--no-header", "--tb=short", "-p", "no:cacheprovider", "-p", "no:warnings", "--disable-warnings", "--continue-on-collection-errors"]
    files = sorted(str(path) for path in (tests / "tool_parsers").glob("test_*_tool_parser.py"))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    with open(FOLDER / "pytest.log", "w", encoding="utf-8") as log:
        stdout, sys.stdout = sys.stdout, log
        pytest.main([*options, *files], plugins=[results])
        sys.stdout = stdout
finally:
    gateway.terminate()

patterns = [pattern for row in TABLE["difference"] for pattern in row["tests"]]
unexplained = {name: why for name, why in results.failed.items() if not any(fnmatch.fnmatchcase(name, one) for one in patterns)}
unneeded = [one for one in patterns if not any(fnmatch.fnmatchcase(name, one) for name in results.failed)]
explained = len(results.failed) - len(unexplained)
print(f"{results.passed} passed in the tests of vLLM {VERSION}; {explained} differ as tool_parsers.toml explains")
for name, why in unexplained.items():
    print(f"not explained: {name}: {why}")
for test in unneeded:
    print(f"no such difference: {test}")
sys.exit(bool(unexplained or unneeded or results.passed < TABLE["least"]))
