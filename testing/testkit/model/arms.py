"""The arms of the comparison: how a model is taught to call tools, and what keeps it from writing anything else."""

from __future__ import annotations

import json
import re
from dataclasses import dataclass
from typing import Any

import plaincall as pc
from questions import Question, digest

Message = dict[str, str]
JSON_RULES = 'You can call tools. To call one, answer with one JSON object and nothing else:\n{"name": "...", "arguments": {...}}'
NO_CALL = "If no tool fits, answer in plain words."
RESPOND = "respond"
"""The tool that a JSON schema offers for an answer without a call."""


@dataclass(frozen=True)
class Arm:
    format: str
    """`block`, `emoji`, `json`, or `native`: the tools of the server's own API."""
    taught: str
    """`rules`, `examples` or `both`."""
    constraint: str
    """`none`, `auto` or `required`: our grammars, or the server's JSON schemas."""
    repairs: bool = False
    """Whether an invalid reply gets one more round."""

    def __str__(self) -> str:
        return " ".join([self.format, self.taught, self.constraint, *(["repair"] if self.repairs else [])])

    @staticmethod
    def of(name: str) -> Arm:
        parts = name.split()
        return Arm(*parts[:3], repairs="repair" in parts[3:])


ALL = [
    Arm(format, taught, constraint)
    for format in ("block", "emoji", "json")
    for taught in ("rules", "examples", "both")
    for constraint in ("none", "auto", "required")
]

Calls = list[tuple[str, dict[str, Any]]]


class Asked:
    """A question in an arm: the messages, the fields of the request, and the reading of the reply."""

    def __init__(self, arm: Arm, question: Question, examples: dict[str, dict[str, Any]], greeting: list[str]) -> None:
        self.arm, self.question = arm, question
        dialect = {"block": pc.Dialect.block, "emoji": pc.Dialect.emoji}.get(arm.format)
        definitions = [{"type": "function", "function": tool} for tool in question.tools]
        self.toolbox = pc.Toolbox(definitions, dialect=dialect(escaped=True, no_reasoning=True)) if dialect else None
        listed = "Tools:\n" + "\n".join(json.dumps(tool) for tool in question.tools)
        system = {"rules": self._rules(), "both": self._rules()}.get(arm.taught, "You can call tools.")
        if arm.taught == "examples" or not self.toolbox:
            system += "\n\n" + listed
        self.messages: list[Message] = [] if arm.format == "native" else [{"role": "system", "content": system}]
        if arm.taught != "rules":
            self.messages += [{"role": role, "content": text} for role, text in zip(("user", "assistant"), greeting, strict=True)]
            for tool in question.tools:
                self.messages += self._turn(examples[digest(tool)])
        self.messages.append({"role": "user", "content": question.text})
        self.fields = self._fields(definitions)

    def _rules(self) -> str:
        return self.toolbox.prompt(one_call=True) if self.toolbox else f"{JSON_RULES}\n{NO_CALL}"

    def _turn(self, example: dict[str, Any]) -> list[Message]:
        name, arguments = example["tool"], example["arguments"]
        if self.toolbox:
            call = self.toolbox.render(name, arguments)
            result = self.toolbox.results([pc.Result(name, "1", "ok", example["result"])])
        else:
            call = json.dumps({"name": name, "arguments": arguments})
            result = json.dumps({"name": name, "result": example["result"]})
        texts = [example["question"], call, result, example["answer"]]
        return [{"role": role, "content": text} for role, text in zip(("user", "assistant") * 2, texts, strict=True)]

    def _fields(self, definitions: list[dict[str, Any]]) -> dict[str, Any]:
        choice = self.arm.constraint
        if self.arm.format == "native":
            return {"tools": definitions, "tool_choice": choice if choice != "none" else "auto", "parallel_tool_calls": False}
        if choice == "none":
            return {}
        if self.toolbox:
            return self.toolbox.grammar("llama.cpp", choice=choice, one_call=True).request_fields
        offered = [(tool["name"], tool["parameters"]) for tool in self.question.tools]
        if choice == "auto":
            text = {"type": "object", "properties": {"text": {"type": "string"}}, "required": ["text"]}
            offered.append((RESPOND, text))
        schema = {
            "anyOf": [
                {
                    "type": "object",
                    "properties": {"name": {"const": name}, "arguments": {**parameters, "additionalProperties": False}},
                    "required": ["name", "arguments"],
                    "additionalProperties": False,
                }
                for name, parameters in offered
            ]
        }
        return {"response_format": {"type": "json_schema", "json_schema": {"name": "call", "schema": schema}}}

    def read(self, message: dict[str, Any], finish: str) -> tuple[Calls, str | None]:
        """Returns the calls that may run, and the message that asks for a better reply."""
        if self.arm.format == "native":
            calls = message.get("tool_calls") or []
            return [(call["function"]["name"], json.loads(call["function"]["arguments"])) for call in calls], None
        text = message["content"] or ""
        if self.toolbox:
            document = self.toolbox.parse(text, stop="length" if finish == "length" else "natural")
            calls = [(call.name, call.arguments or {}) for call in document.calls if call.may_run]
            return calls, self.toolbox.repair(document)
        return self._read_json(text)

    def _read_json(self, text: str) -> tuple[Calls, str | None]:
        """Reads one object, also between prose, as lenient parsers do."""
        start = re.search(r'\{\s*"', text)
        if not start:
            return [], None
        try:
            found, _ = json.JSONDecoder().raw_decode(text, start.start())
            name, arguments = found["name"], found["arguments"]
            if not isinstance(arguments, dict):
                raise TypeError("`arguments` is no object")
        except (ValueError, KeyError, TypeError) as error:
            return [], f"This is no valid call: {error}. Answer with one JSON object that has `name` and `arguments`."
        if name == RESPOND:
            return [], None
        tool = next((tool for tool in self.question.tools if tool["name"] == name), None)
        if tool is None:
            return [], f"There is no tool `{name}`."
        missing = [key for key in tool["parameters"].get("required", []) if key not in arguments]
        if missing:
            return [], f"The argument `{missing[0]}` is missing."
        return [(name, arguments)], None
