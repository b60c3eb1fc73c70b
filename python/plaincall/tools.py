"""Tools: Python functions and definitions of other programs."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Literal, TypeAlias, Union, cast, overload

from plaincall._plaincall import Call, DefinitionError, Dialect, Document, Grammar, Plan, Reader, ToolSet

Effect: TypeAlias = Literal["read", "idempotent", "write"]
Status: TypeAlias = Literal["ok", "error", "skipped", "rejected", "cancelled", "unknown"]
Json: TypeAlias = dict[str, Any]

_SCALARS: dict[object, Json] = {
    str: {"type": "string"},
    int: {"type": "integer"},
    float: {"type": "number"},
    bool: {"type": "boolean"},
    NoneType: {"type": "null"},
    Any: {},
}


class ArgumentError(ValueError):
    """Arguments that a function does not take, as a sentence for the model."""


@dataclass(frozen=True)
class Tool:
    """A tool: a definition, and the function that runs it if it has one. Call it as you would call the function."""

    name: str
    description: str
    parameters: Json = field(hash=False)
    """The JSON Schema of the arguments."""
    effect: Effect = "write"
    function: Callable[..., Any] | None = field(default=None, hash=False)
    read: Callable[[Mapping[str, Any]], Mapping[str, Any]] = field(default=dict, repr=False, compare=False)
    """Converts JSON arguments to those of the function."""

    def __post_init__(self) -> None:
        # As `functools.update_wrapper`, which cannot change a frozen object.
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(self.function, name):
                object.__setattr__(self, name, getattr(self.function, name))
        if self.function is not None:
            object.__setattr__(self, "__wrapped__", self.function)

    def __call__(self, *positional: Any, **named: Any) -> Any:
        if self.function is None:
            raise TypeError(Plan.failure("no_function", self.name))
        return self.function(*positional, **named)

    def definition(self) -> Json:
        """Returns the definition in the format of the OpenAI API."""
        function = {"name": self.name, "description": self.description, "parameters": self.parameters}
        return {"type": "function", "function": function}


@dataclass(frozen=True)
class Result:
    """The result of a call, for `Toolbox.results`."""

    id: str
    """The id of the call."""
    name: str = ""
    """The name of the tool."""
    output: str | None = None
    """The output of the tool."""
    error: str | None = None
    """The error, as a sentence for the model."""
    status: Status | None = None
    """How the call ended; `None` if it is not known."""
    value: Any = field(default=None, repr=False, compare=False)
    """The value that the function returned."""


@overload
def tool(function: Callable[..., Any], /) -> Tool: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, effect: Effect = "write"
) -> Callable[[Callable[..., Any]], Tool]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "write",
) -> Tool | Callable[[Callable[..., Any]], Tool]:
    """Makes a tool of a function, from its type hints and its docstring.

    Hints of `str`, `int`, `float`, `bool`, `None`, `list`, `dict`, `Literal`, `Union`, `Annotated` with a description and
    `Any` need nothing else. Other hints need pydantic, and the descriptions of parameters in docstrings need griffelib:
    `pip install plaincall[tools]`.

    `effect` states what a call does: `"read"` changes nothing, `"idempotent"` may be repeated, `"write"` is anything else. It
    decides which calls without an end marker may run.

    A default that JSON does not have, such as an infinity, is not in the schema.

    Raises `DefinitionError` if a parameter has no type hint, or one that cannot be read or is not supported, if a description has half of a
    character, and for generator functions and objects that are not functions.
    """

    def make(function: Callable[..., Any]) -> Tool:
        if not hasattr(function, "__name__"):
            kind = type(function).__name__
            raise DefinitionError(f"an object of the type `{kind}` is not a function; write a function that calls it")
        own_name = name or function.__name__
        if inspect.isgeneratorfunction(function) or inspect.isasyncgenfunction(function):
            raise DefinitionError(f"`{own_name}` is a generator function; return a list instead")
        text, descriptions = _docstring(function)
        schema, read = _parameters(function, descriptions)
        text = description or text
        return Tool(own_name, text, _checked(own_name, text, schema), effect, function, read)

    return make if function is None else make(function)


def _parameters(
    function: Callable[..., Any], descriptions: Mapping[str, str]
) -> tuple[Json, Callable[[Mapping[str, Any]], Mapping[str, Any]]]:
    """Returns the JSON Schema of a function's parameters, and what converts JSON arguments to its own."""
    name = getattr(function, "__name__", repr(function))
    parameters = _signature(function).parameters.values()
    hints: dict[str, Any] = {}
    properties: Json = {}
    required: list[str] = []
    needs_pydantic = False
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise DefinitionError(f"`{name}`: the parameter `{parameter}` has no name in JSON; use a named parameter")
        if parameter.annotation is parameter.empty:
            raise DefinitionError(f"`{name}`: the parameter `{parameter.name}` has no type hint; add one")
        hint = hints[parameter.name] = _hint(name, function, parameter)
        schema = _schema(hint)
        if schema is None:
            needs_pydantic = True
            continue
        if parameter.name in descriptions:
            schema = {**schema, "description": descriptions[parameter.name]}
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif _is_json(parameter.default):
            schema = {**schema, "default": parameter.default}
        properties[parameter.name] = schema
    if needs_pydantic:
        return _with_pydantic(name, list(parameters), hints, descriptions)
    # A misspelled argument is an error, not a value that is ignored.
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}, dict


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    if sys.version_info >= (3, 14):
        # Hints are not evaluated before they are used.
        import annotationlib

        return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
    return inspect.signature(function)


def _hint(name: str, function: Callable[..., Any], parameter: inspect.Parameter) -> Any:
    """Returns the type hint of a parameter. The others, and that of the returned value, may have unknown names."""

    def only() -> None: ...

    own = inspect.unwrap(function)
    only.__annotations__ = {parameter.name: parameter.annotation}
    if hasattr(own, "__type_params__"):
        only.__type_params__ = own.__type_params__  # type: ignore[attr-defined]
    try:
        return typing.get_type_hints(only, getattr(own, "__globals__", {}), include_extras=True)[parameter.name]
    except Exception as error:
        raise DefinitionError(
            f"`{name}`: the type hint of `{parameter.name}` cannot be read: {error}; use names of the function's module"
        ) from error


def _schema(hint: Any) -> Json | None:
    """Returns the JSON Schema of a hint whose JSON values are its values, or `None`."""
    try:
        if hint in _SCALARS:
            return dict(_SCALARS[hint])
    except TypeError:  # Some hints have no hash.
        return None
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if not arguments and (origin or hint) in (list, dict):
        return {"type": "array" if (origin or hint) is list else "object"}
    if origin is typing.Annotated:
        schema, (first, *others) = _schema(arguments[0]), arguments[1:]
        return (
            {**schema, "description": first} if schema is not None and isinstance(first, str) and not others else None
        )
    if origin is Literal:
        return {"enum": list(arguments)} if all(_is_json(one) for one in arguments) else None
    inner = [_schema(argument) for argument in arguments]
    if any(schema is None for schema in inner):
        return None
    if origin is list:
        return {"type": "array", "items": inner[0]}
    if origin is dict and arguments[0] is str:
        return {"type": "object", "additionalProperties": inner[1]}
    if origin is Union or origin is UnionType:
        return {"anyOf": inner}
    return None


def _is_json(value: Any) -> bool:
    return value is None or (isinstance(value, (str, int, float)) and type(value) in _SCALARS)


def _checked(name: str, text: str, schema: Json) -> Json:
    """Returns a schema without defaults that JSON does not have, such as an infinity. The function still has them."""
    if not _is_writable(text):
        raise DefinitionError(f"`{name}`: the description has half of a character (a lone surrogate)")
    schema = _without_defaults(schema)
    for parameter, inner in schema["properties"].items():
        if not _is_writable([parameter, inner]):
            what = "a number that is not finite, or half of a character (a lone surrogate)"
            raise DefinitionError(f"`{name}`: the hint or the description of the parameter `{parameter}` has {what}")
    if not _is_writable(schema):
        raise DefinitionError(f"`{name}`: JSON cannot express the schema of its type hints")
    return schema


def _without_defaults(schema: Json) -> Json:
    """Returns a schema without the defaults that JSON does not have."""
    kept: Json = {}
    for key, value in schema.items():
        if key in ("properties", "$defs") and isinstance(value, dict):
            kept[key] = {name: _without_defaults(inner) for name, inner in value.items()}
        elif isinstance(value, dict) and key != "default":
            kept[key] = _without_defaults(value)
        elif isinstance(value, list) and key != "default":
            kept[key] = [_without_defaults(one) if isinstance(one, dict) else one for one in value]
        elif key != "default" or _is_writable(value):
            kept[key] = value
    return kept


def _is_writable(value: Any) -> bool:
    """Returns whether JSON has a value."""
    try:
        json.dumps(value, ensure_ascii=False, allow_nan=False).encode()
    except (TypeError, ValueError):
        return False
    return True


def _with_pydantic(
    name: str, parameters: list[inspect.Parameter], hints: Mapping[str, Any], descriptions: Mapping[str, str]
) -> tuple[Json, Callable[[Mapping[str, Any]], Mapping[str, Any]]]:
    try:
        pydantic = importlib.import_module("pydantic")
        # `pydantic` does not load these before they are used.
        field_info = importlib.import_module("pydantic.fields").FieldInfo
        invalid = pydantic.ValidationError
        user_error = importlib.import_module("pydantic.errors").PydanticUserError
    except ImportError:
        foreign = [parameter.name for parameter in parameters if _schema(hints[parameter.name]) is None]
        raise DefinitionError(
            f"`{name}`: the type hint of `{foreign[0]}` needs pydantic; install it with `pip install plaincall[tools]`"
        ) from None
    fields: dict[str, Any] = {}
    for parameter in parameters:
        hint = hints[parameter.name]
        if parameter.name in descriptions:
            hint = typing.Annotated[hint, pydantic.Field(description=descriptions[parameter.name])]
        given: dict[str, Any] = {}
        if isinstance(parameter.default, field_info):
            hint = typing.Annotated[hint, parameter.default]
        elif parameter.default is not parameter.empty:
            given["default"] = parameter.default
        # Parameters may have names that a model reserves, such as `_x` and `model_config`.
        fields[f"parameter{len(fields)}"] = (hint, pydantic.Field(alias=parameter.name, **given))
    config = pydantic.ConfigDict(extra="forbid")
    try:
        model = pydantic.create_model(name, __config__=config, **fields)
        schema = model.model_json_schema()
    except user_error as error:
        raise DefinitionError(f"`{name}`: pydantic has no JSON Schema for its type hints: {error}") from error
    schema.pop("title", None)

    def read(arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            values = model.model_validate(arguments)
        except invalid as error:
            raise ArgumentError(_problems(error)) from error
        return {parameter.name: getattr(values, key) for key, parameter in zip(fields, parameters, strict=True)}

    return schema, read


def _problems(error: Any) -> str:
    """Returns what is wrong with arguments, from an error of pydantic, without its values and addresses."""
    problems = error.errors(include_url=False, include_context=False, include_input=False)
    places = ("/".join(str(part) for part in problem["loc"]) for problem in problems)
    return "; ".join(
        f"the argument `{place}` is invalid: {problem['msg']}" for place, problem in zip(places, problems, strict=True)
    )


def _docstring(function: Callable[..., Any]) -> tuple[str, dict[str, str]]:
    """Returns the description of a function, and those of its parameters if griffelib is installed."""
    text = inspect.getdoc(function) or ""
    try:
        griffe = importlib.import_module("griffe")
    except ImportError:
        return text, {}
    description: list[str] = []
    parameters: dict[str, str] = {}
    docstring = griffe.Docstring(text)
    style = griffe.infer_docstring_style(docstring)[0] or griffe.Parser.google
    # Types are in the hints.
    for section in docstring.parse(style, warnings=False):
        if section.kind is griffe.DocstringSectionKind.text:
            description.append(section.value)
        elif section.kind is griffe.DocstringSectionKind.parameters:
            parameters.update({one.name: one.description for one in section.value})
    return "\n\n".join(description), parameters


class Toolbox(Mapping[str, Tool]):
    """Tools in one dialect: writes the system prompt, reads replies, and writes results and repair messages.

    A tool is a function, a `Tool`, or a definition of OpenAI, Anthropic or MCP. `effects` sets the effect of tools by name;
    a definition has the effect `"write"`.

    Default dialect: block with escapes, so that no tool output can forge a call. Calls in reasoning at the beginning of a reply,
    between `<think>` and `</think>` unless the dialect has other markers, are ignored. `unclosed="run"` also runs calls without an
    end marker that the next call or the end of a complete text ended, for models that forget end markers.

    Raises `DefinitionError` with all problems of the definitions.
    """

    def __init__(
        self,
        tools: Iterable[Tool | Callable[..., Any] | Mapping[str, Any]] = (),
        *,
        dialect: Dialect | None = None,
        effects: Mapping[str, Effect] | None = None,
        unclosed: Literal["reject", "run"] = "reject",
    ) -> None:
        definitions: list[Json] = []
        known: dict[str, Effect] = {}
        functions: dict[str, Tool] = {}
        for one in tools:
            if isinstance(one, Mapping):
                definitions.append(dict(one))
                continue
            made = one if isinstance(one, Tool) else tool(one)
            definitions.append(made.definition())
            known[made.name] = made.effect
            functions[made.name] = made
        known.update(effects or {})
        self._set = ToolSet(
            json.dumps(definitions), list(known.items()), dialect or Dialect.block(escaped=True), unclosed=unclosed
        )
        self._tools: dict[str, Tool] = {}
        described = self._set.tools()
        for name in effects or {}:
            if name not in described:
                raise DefinitionError(f"unknown tool `{name}` in `effects`; tools: {', '.join(described)}")
        for name, (description, schema, effect) in described.items():
            given = functions.get(name)
            self._tools[name] = given or Tool(name, description, json.loads(schema), cast(Effect, effect))

    def __getitem__(self, name: str) -> Tool:
        return self._tools[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tools)

    def __len__(self) -> int:
        return len(self._tools)

    def __repr__(self) -> str:
        return f"Toolbox({', '.join(self)})"

    @property
    def dialect(self) -> Dialect:
        """The dialect, with the markers around reasoning."""
        return self._set.dialect

    def definitions(self) -> list[Json]:
        """Returns the definitions in the format of the OpenAI API."""
        return [one.definition() for one in self._tools.values()]

    def prompt(
        self, *, one_call: bool = False, without_dependencies: bool = False, description_length: int | None = None
    ) -> str:
        """Returns the system prompt that teaches a model to call the tools.

        `description_length` is the maximum length of each description, in characters. Default: no limit.
        """
        return self._set.prompt(
            one_call=one_call, without_dependencies=without_dependencies, description_length=description_length
        )

    def parse(
        self, text: str | bytes, *, stop: Literal["natural", "end_of_file", "length", "broken"] = "broken"
    ) -> Document:
        """Reads a complete reply, and validates its calls. Invalid calls are data; nothing is raised for text.

        `stop` states how the reply ended: `"natural"` after a finish reason like `stop`, `"length"` after a length limit. A call
        without an end marker may run only in a reply that is known to be complete.
        """
        return self._set.parse(text, stop=stop)

    def reader(self) -> Reader:
        """Returns a reader of replies that still arrive: its `feed` returns events, and a `Call` after each call."""
        return self._set.reader()

    def repair(self, document: Document) -> str | None:
        """Returns a message to the model about the invalid calls of a reply, or `None` if there are none.

        If a reply has no call, but text like one, the message is about that.
        """
        return self._set.repair(document)

    def history(self, content: str | None = None, tool_calls: Sequence[Call | Mapping[str, Any]] = ()) -> str:
        """Writes an earlier turn of the model as text: its content, and its calls in the format of the OpenAI API.

        Text that the model wrote in this dialect needs no change; use this for turns of other programs.

        Raises `ValueError` for an invalid `Call`.
        """
        parts: list[tuple[str, tuple[str | None, list[str], str] | None]] = []
        if content:
            parts.append((content, None))
        for call in tool_calls:
            if isinstance(call, Call):
                if call.arguments is None:
                    raise ValueError(
                        f"the call `{call.id}` is invalid; pass the text of the reply to the model instead"
                    )
                arguments = json.dumps(call.arguments)
                parts.append((call.name, (call.id, list(call.dependencies), arguments)))
                continue
            function = call["function"]
            arguments = function.get("arguments") or ""
            if not isinstance(arguments, str):
                arguments = json.dumps(arguments)
            parts.append((function["name"], (call.get("id"), [], arguments)))
        return self._set.history(parts)

    def results(self, results: Iterable[Result], calls: Iterable[Call] | None = None) -> str:
        """Writes the results of calls as a message to the model. No output can forge a call or another result.

        With `calls`, the results are in their order, and a call without a result gets one with the status `unknown`.
        """
        given = [(one.name, one.id, one.status, one.output, one.error) for one in results]
        order = None if calls is None else [(call.name, call.id) for call in calls]
        return self._set.results(given, order)

    def render(
        self, name: str, arguments: Mapping[str, Any], *, id: str | None = None, dependencies: Iterable[str] = ()
    ) -> str:
        """Writes a call in the syntax of the dialect.

        Raises `RenderError` if the syntax cannot express it, or would read it differently.
        """
        return self._set.render(name, json.dumps(dict(arguments)), id, list(dependencies))

    def escape(self, text: str) -> str:
        """Escapes untrusted text (a document, user input), so that it contains no call."""
        return self._set.escape(text)

    def grammar(
        self,
        engine: str,
        *,
        choice: Literal["auto", "required", "none"] = "auto",
        only: str | None = None,
        one_call: bool = False,
        ids: bool = False,
    ) -> Grammar:
        """Returns a grammar with which an inference engine keeps a model from writing invalid calls.

        `engine` is `vllm`, `sglang`, `llama.cpp`, `llguidance` or `xgrammar`. `only` requires a call of this tool.

        Raises `GrammarError` if the tools have no grammar.
        """
        return self._set.grammar(engine, choice=choice, only=only, one_call=one_call, ids=ids)
