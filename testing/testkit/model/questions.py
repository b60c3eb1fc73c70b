"""Questions of the Berkeley Function Calling Leaderboard, halved by their tools, and its checker.

No one here wrote a question or an answer. Types and names are converted once, the same for every format.
"""

from __future__ import annotations

import hashlib
import importlib.resources
import json
import sys
import types
from dataclasses import dataclass
from typing import Any

CATEGORIES = ("simple_python", "multiple", "live_simple", "irrelevance")
COUNTS = {
    "screen": {"simple_python": 12, "multiple": 6, "live_simple": 6, "irrelevance": 6},
    "held_out": {"simple_python": 40, "multiple": 20, "live_simple": 20, "irrelevance": 20},
}
"""How many questions of each half a run asks. `screen` chooses settings, `held_out` reports."""


@dataclass(frozen=True)
class Question:
    id: str
    text: str
    tools: list[dict[str, Any]]
    """Definitions with JSON Schema."""
    published: list[dict[str, Any]]
    """The definitions as published, which the checker reads."""
    answers: list[dict[str, Any]]
    """Empty if no tool fits."""

    @property
    def tool_set(self) -> str:
        return " ".join(sorted(tool["name"] for tool in self.tools))


def _stub_model_configuration() -> None:
    """The published module loads every client library; the checker reads one field of it."""
    module = types.ModuleType("bfcl_eval.constants.model_config")
    module.MODEL_CONFIG_MAPPING = {"any": types.SimpleNamespace(underscore_to_dot=True)}  # type: ignore[attr-defined]
    sys.modules[module.__name__] = module


def _lines(name: str) -> list[Any]:
    text = importlib.resources.files("bfcl_eval").joinpath("data", name).read_text("utf-8")
    return [json.loads(line) for line in text.splitlines()]


def digest(tool: dict[str, Any]) -> str:
    """Names a definition: examples belong to one."""
    return hashlib.sha256(json.dumps(tool, sort_keys=True).encode()).hexdigest()[:16]


def plain_name(name: str) -> str:
    """Names with dots are no names of tools in most APIs."""
    return name.replace(".", "_")


def _schema(published: Any, mapping: dict[str, str]) -> Any:
    if isinstance(published, list):
        return [_schema(part, mapping) for part in published]
    if not isinstance(published, dict):
        return published
    schema = {key: _schema(value, mapping) for key, value in published.items()}
    if isinstance(published.get("type"), str):
        schema["type"] = mapping.get(published["type"], published["type"])
    # A default that the type excludes is prose of the description.
    if isinstance(schema.get("default"), str) and schema.get("type") in ("integer", "number", "boolean", "array", "object"):
        del schema["default"]
    return schema


LENGTHS = (1, 5, 20, 60)
"""Lines of the files that a call has to write byte for byte."""
FILES = 10
"""How many files of each length."""
WRITE_FILE = {
    "name": "write_file",
    "description": "Writes a text file.",
    "parameters": {
        "type": "object",
        "properties": {
            "path": {"type": "string", "description": "Where to write it."},
            "content": {"type": "string", "description": "The whole text of the file."},
        },
        "required": ["path", "content"],
    },
}


def _files() -> list[Question]:
    """Parts of published source code, from fixed places: at the first line without indentation behind each thousand lines."""
    folder = importlib.resources.files("bfcl_eval").joinpath("eval_checker", "multi_turn_eval", "func_source_code")
    texts = [file.read_text("utf-8") for file in sorted(folder.iterdir(), key=str) if file.name.endswith(".py")]
    lines = [line.rstrip() for text in texts for line in text.splitlines()]
    found = []
    for length in LENGTHS:
        for at in range(FILES):
            start = len(lines) * at // FILES
            start += next(offset for offset, line in enumerate(lines[start:]) if line and len(line) - len(line.lstrip()) <= 4)
            content = "\n".join(lines[start : start + length])
            text = f"Save this as `src/part_{at}.py`, exactly as it is:\n\n{content}"
            answer = {"write_file": {"path": f"src/part_{at}.py", "content": content}}
            found.append(Question(f"file_{length}_{at}", text, [WRITE_FILE], [WRITE_FILE], [answer]))
    return found


def questions(part: str) -> list[Question]:
    """Returns the questions of `screen` or `held_out`, or those about `files`."""
    if part == "files":
        return _files()
    from bfcl_eval.constants.type_mappings import GORILLA_TO_OPENAPI

    found: list[Question] = []
    for category in CATEGORIES:
        file = f"BFCL_v4_{category}.json"
        answers = {} if category == "irrelevance" else {line["id"]: line["ground_truth"] for line in _lines(f"possible_answer/{file}")}
        half = []
        for line in _lines(file):
            messages = line["question"][0]
            if len(messages) != 1:
                continue
            tools = [
                {**tool, "name": plain_name(tool["name"]), "parameters": _schema(tool["parameters"], GORILLA_TO_OPENAPI)}
                for tool in line["function"]
            ]
            question = Question(line["id"], messages[0]["content"], tools, line["function"], answers.get(line["id"], []))
            if hashlib.sha256(question.tool_set.encode()).digest()[0] % 2 == ("screen", "held_out").index(part):
                half.append(question)
        # In the order of hashes: no hand chose them.
        half.sort(key=lambda question: hashlib.sha256(question.id.encode()).digest())
        found += half[: COUNTS[part][category]]
    return found


def is_exact(question: Question, name: str, arguments: dict[str, Any]) -> bool:
    """Asks the published checker about a call. The content of a file must be right byte for byte, up to the line end at its end."""
    if question.id.startswith("file_"):
        wanted = question.answers[0][name] if name in question.answers[0] else None
        content = arguments.get("content")
        return bool(wanted) and isinstance(content, str) and content.removesuffix("\n") == wanted["content"].removesuffix("\n")
    from bfcl_eval.constants.enums import Language
    from bfcl_eval.eval_checker.ast_eval.ast_checker import ast_checker

    category = question.id.rsplit("_", 1)[0]
    checked = ast_checker(question.published, [{name: arguments}], question.answers, Language.PYTHON, category, "any")
    return bool(checked["valid"])


_stub_model_configuration()
