"""Tools: Python functions and definitions of other programs."""

from __future__ import annotations

import functools
import importlib
import inspect
import json
import sys
import typing
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from types import NoneType, UnionType
from typing import Any, Generic, Literal, ParamSpec, TypeAlias, TypeVar, Union, cast, overload

from plaincall._plaincall import (
    Call,
    DefinitionError,
    Dialect,
    Document,
    Grammar,
    Plan,
    Reader,
    RenderError,
    ToolSet,
)

Effect: TypeAlias = Literal["read", "idempotent", "write"]
Status: TypeAlias = Literal["ok", "error", "skipped", "rejected", "cancelled", "unknown"]
Engine: TypeAlias = Literal["vllm", "sglang", "llama.cpp", "llguidance", "xgrammar"]
# Clients such as those of Ollama and LiteLLM have a `str`.
Stop: TypeAlias = Literal["natural", "end_of_file", "length", "broken", "stop"] | str
"""How a text ended: `natural` (it is complete), `end_of_file`, `length` or `broken` (unknown), or the finish reason of an API.

Only a known reason is a natural end or a length limit. Any other one, such as `content_filter` or `stop_sequence`, and a
misspelled one, is `broken`.
"""
Json: TypeAlias = dict[str, Any]

P = ParamSpec("P")
R = TypeVar("R")

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
class Tool(Generic[P, R]):
    """A tool: a definition, and the function that runs it if it has one. Call it as you would call the function.

    It can be pickled if its function can. A decorated function of a module is pickled by its name.
    """

    name: str
    description: str
    parameters: Json = field(hash=False)
    """The JSON Schema of the arguments."""
    effect: Effect = "write"
    function: Callable[P, R] | None = field(default=None, hash=False)
    read: Callable[[Mapping[str, Any]], Mapping[str, Any]] = field(default=dict, repr=False, compare=False)
    """Converts JSON arguments to those of the function."""

    def __post_init__(self) -> None:
        # As `functools.update_wrapper`, which cannot change a frozen object.
        for name in functools.WRAPPER_ASSIGNMENTS:
            if hasattr(self.function, name):
                object.__setattr__(self, name, getattr(self.function, name))
        if self.function is not None:
            object.__setattr__(self, "__wrapped__", self.function)

    def __call__(self, *positional: P.args, **named: P.kwargs) -> R:
        if self.function is None:
            raise TypeError(Plan.failure("no_function", self.name))
        return self.function(*positional, **named)

    def __reduce_ex__(self, protocol: Any) -> Any:
        module, name = getattr(self, "__module__", None), getattr(self, "__qualname__", None)
        # Functions of the main program have no name in other processes.
        if module != "__main__" and getattr(sys.modules.get(str(module)), str(name), None) is self:
            return name
        return super().__reduce_ex__(protocol)

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
    exception: BaseException | None = field(default=None, repr=False, compare=False)
    """The exception of the function or of `approve`. The model gets `error` only."""


@overload
def tool(function: Callable[P, R], /) -> Tool[P, R]: ...
@overload
def tool(
    *, name: str | None = None, description: str | None = None, effect: Effect = "write"
) -> Callable[[Callable[P, R]], Tool[P, R]]: ...
def tool(
    function: Callable[..., Any] | None = None,
    /,
    *,
    name: str | None = None,
    description: str | None = None,
    effect: Effect = "write",
) -> Tool[..., Any] | Callable[[Callable[..., Any]], Tool[..., Any]]:
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

    for argument, value in (("name", name), ("description", description)):
        if value is not None and not isinstance(value, str):
            raise DefinitionError(f"`{argument}`: expected a str, found {type(value).__name__}")
    effects = typing.get_args(Effect)
    if effect not in effects:
        raise DefinitionError(f"`effect` cannot be {effect!r}; possible values: {', '.join(map(repr, effects))}")

    def make(function: Callable[..., Any]) -> Tool[..., Any]:
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
    properties: Json = {}
    required: list[str] = []
    foreign: list[str] = []
    for parameter in parameters:
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD, parameter.POSITIONAL_ONLY):
            raise DefinitionError(f"`{name}`: the parameter `{parameter}` has no name in JSON; use a named parameter")
        if parameter.annotation is parameter.empty:
            raise DefinitionError(f"`{name}`: the parameter `{parameter.name}` has no type hint; add one")
        schema = _schema(_hint(name, function, parameter))
        if schema is None or _is_field(parameter.default):
            foreign.append(parameter.name)
            continue
        if parameter.name in descriptions:
            schema = {**schema, "description": descriptions[parameter.name]}
        if parameter.default is parameter.empty:
            required.append(parameter.name)
        elif _is_json(parameter.default):
            schema = {**schema, "default": parameter.default}
        properties[parameter.name] = schema
    if foreign:
        try:
            _pydantic()
        except ImportError:
            raise DefinitionError(
                f"`{name}`: the type hint of `{foreign[0]}` needs pydantic; install it with `pip install 'plaincall[tools]'`"
            ) from None
        model = _Model(name, function)
        # The language model reads the same about a parameter, whatever the others are.
        model.schema["properties"].update(properties)
        return model.schema, model
    # A misspelled argument is an error, not a value that is ignored.
    return {"type": "object", "properties": properties, "required": required, "additionalProperties": False}, dict


def _signature(function: Callable[..., Any]) -> inspect.Signature:
    try:
        if sys.version_info >= (3, 14):
            # Hints are not evaluated before they are used.
            import annotationlib

            return inspect.signature(function, annotation_format=annotationlib.Format.FORWARDREF)
        return inspect.signature(function)
    except (TypeError, ValueError) as error:
        name = getattr(function, "__name__", repr(function))
        raise DefinitionError(f"`{name}` has no signature; write a function with type hints that calls it") from error


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
        schema, texts = _schema(arguments[0]), arguments[1:]
        is_plain = schema is not None and all(isinstance(text, str) for text in texts)
        return {**cast(Json, schema), "description": texts[0]} if is_plain else None
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
    if type(value) is list:
        return all(_is_json(one) for one in value)
    if type(value) is dict:
        return all(type(key) is str and _is_json(one) for key, one in value.items())
    return value is None or type(value) in (str, int, float, bool)


def _is_field(default: object) -> bool:
    """Returns whether a default is a `Field` of pydantic, which describes the parameter."""
    fields = sys.modules.get("pydantic.fields")
    return fields is not None and isinstance(default, fields.FieldInfo)


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


class _Model:
    """Converts JSON arguments to those of a function, with a model of pydantic."""

    def __init__(self, name: str, function: Callable[..., Any]) -> None:
        pydantic, field_info, user_error = _pydantic()
        self.name, self.function = name, function
        self.invalid: type[Exception] = pydantic.ValidationError
        parameters = list(_signature(function).parameters.values())
        _, descriptions = _docstring(function)
        fields: dict[str, Any] = {}
        for parameter in parameters:
            hint = _with_fields(_hint(name, function, parameter), pydantic.Field)
            if parameter.name in descriptions:
                hint = typing.Annotated[hint, pydantic.Field(description=descriptions[parameter.name])]
            given: dict[str, Any] = {}
            if isinstance(parameter.default, field_info):
                hint = typing.Annotated[hint, parameter.default]
            elif parameter.default is not parameter.empty:
                given["default"] = parameter.default
            # Parameters may have names that a model reserves, such as `_x` and `model_config`.
            fields[f"parameter{len(fields)}"] = (hint, pydantic.Field(alias=parameter.name, **given))
        self.names = {parameter.name: key for key, parameter in zip(fields, parameters, strict=True)}
        try:
            self.model = pydantic.create_model(name, __config__=pydantic.ConfigDict(extra="forbid"), **fields)
            self.schema: Json = self.model.model_json_schema()
        except user_error as error:
            raise DefinitionError(f"`{name}`: pydantic has no JSON Schema for its type hints: {error}") from error
        self.schema.pop("title", None)

    def __call__(self, arguments: Mapping[str, Any]) -> Mapping[str, Any]:
        try:
            values = self.model.model_validate(arguments)
        except self.invalid as error:
            raise ArgumentError(_problems(error)) from error
        return {name: getattr(values, key) for name, key in self.names.items()}

    def __reduce__(self) -> Any:
        # Its model exists in this process only.
        return _Model, (self.name, self.function)


def _pydantic() -> Any:
    """Returns pydantic, its class of fields and its class of errors about types. It does not load them before they are used."""
    return (
        importlib.import_module("pydantic"),
        importlib.import_module("pydantic.fields").FieldInfo,
        importlib.import_module("pydantic.errors").PydanticUserError,
    )


def _with_fields(hint: Any, field: Callable[..., Any]) -> Any:
    """Returns a hint in which the texts of `Annotated` are descriptions, as pydantic writes them."""
    origin, arguments = typing.get_origin(hint), typing.get_args(hint)
    if origin is Literal or not arguments:
        return hint
    inner = tuple(_with_fields(one, field) for one in arguments)
    if origin is typing.Annotated:
        texts = [one for one in arguments[1:] if isinstance(one, str)]
        # A description of pydantic comes later, and counts.
        described = (inner[0], *(field(description=text) for text in texts[:1]), *arguments[1:])
        return cast(Any, typing.Annotated)[described]
    if origin is UnionType:
        return cast(Any, Union)[inner]
    return hint.copy_with(inner) if hasattr(hint, "copy_with") else origin[inner]


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


class Toolbox(Mapping[str, Tool[..., Any]]):
    """Tools in one dialect: writes the system prompt, reads replies, and writes results and repair messages.

    A tool is a function, a `Tool`, or a definition of OpenAI, Anthropic or MCP. `effects` sets the effect of tools by name;
    a definition has the effect `"write"`.

    Default dialect: block with escapes, so that no tool output can forge a call. Calls in reasoning at the beginning of a reply,
    between `<think>` and `</think>` unless the dialect has other markers, are ignored. `unclosed="run"` also runs calls without an
    end marker that the next call or the end of a complete text ended, for models that forget end markers.

    It can be pickled if its tools can.

    Raises `DefinitionError` with all problems of the definitions.
    """

    def __init__(
        self,
        tools: Iterable[Tool[..., Any] | Callable[..., Any] | Mapping[str, Any]] = (),
        *,
        dialect: Dialect | None = None,
        effects: Mapping[str, Effect] | None = None,
        unclosed: Literal["reject", "run"] = "reject",
    ) -> None:
        definitions: list[Json] = []
        known: dict[str, Effect] = {}
        functions: dict[str, Tool[..., Any]] = {}
        if isinstance(tools, (str, Mapping)) or not isinstance(tools, Iterable):
            raise _wrong_type("tools", "a list of functions, tools or definitions", tools)
        for one in tools:
            if isinstance(one, Mapping):
                definitions.append(dict(one))
                continue
            made = one if isinstance(one, Tool) else tool(one)
            definitions.append(made.definition())
            known[made.name] = made.effect
            functions[made.name] = made
        effects = {} if effects is None else effects
        if not isinstance(effects, Mapping):
            raise _wrong_type("effects", "a dict of effects by name", effects)
        _check(str, "a str", {f"effects[{name!r}]": effect for name, effect in effects.items()})
        known.update((str(name), effect) for name, effect in effects.items())
        self._set = ToolSet(
            json.dumps(definitions),
            list(known.items()),
            Dialect.block(escaped=True) if dialect is None else dialect,
            unclosed,
        )
        self._tools: dict[str, Tool[..., Any]] = {}
        described = self._set.tools()
        for name in effects:
            if name not in described:
                raise DefinitionError(f"unknown tool `{name}` in `effects`; tools: {', '.join(described)}")
        for name, (description, schema, effect) in described.items():
            given = functions.get(name)
            self._tools[name] = given or Tool(name, description, json.loads(schema), cast(Effect, effect))

    def __getitem__(self, name: str) -> Tool[..., Any]:
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
        _check(bool, "True or False", {"one_call": one_call, "without_dependencies": without_dependencies})
        return self._set.prompt(
            one_call=one_call, without_dependencies=without_dependencies, description_length=description_length
        )

    def parse(self, text: str | bytes, *, stop: Stop | None = None) -> Document:
        """Reads a complete reply, and validates its calls. Invalid calls are data; nothing is raised for text.

        `stop` is the finish reason of the reply, as the client has it, or another `Stop`. A call without an end marker may run only
        in a reply that is known to be complete. Default: nothing is known.
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

    def history(self, content: Content = None, tool_calls: Iterable[Call | object] | None = None) -> str:
        """Writes an earlier turn of the model as text: its content, and its calls.

        Both are as the clients of OpenAI and Anthropic have them, as objects or as dicts: `content` is a text or a list of parts, such
        as the `content` of a message of Anthropic and the `output` of a response of OpenAI, whose calls keep their places.
        `tool_calls` has the calls of a chat completion, or calls of this package.

        Text that the model wrote in this dialect needs no change; use this for turns of other programs.

        Raises `ValueError` for an invalid `Call`, and `TypeError` for another object.
        """
        parts: list[Part] = []
        if content is None or isinstance(content, str):
            parts += [(content, None)] if content else []
        elif isinstance(content, Iterable) and not isinstance(content, (bytes, Mapping)):
            for at, part in enumerate(content):
                parts += _content_part(f"content[{at}]", part)
        else:
            raise _wrong_type("content", "a str or a list of parts", content)
        if isinstance(tool_calls, (str, bytes, Mapping)):
            raise _wrong_type("tool_calls", "a list of calls", tool_calls)
        parts += [_past_call(f"tool_calls[{at}]", call) for at, call in enumerate(tool_calls or ())]
        return self._set.history(parts)

    def results(self, results: Iterable[Result], calls: Iterable[Call] | None = None) -> str:
        """Writes the results of calls as a message to the model. No output can forge a call or another result.

        With `calls`, the results are in their order, and a call without a result gets one with the status `unknown`.
        """
        written = _list_of(Result, "results", "a list of results, as `execute` returns it", results)
        for at, one in enumerate(written):
            _check(str, "a str", {f"results[{at}].{name}": getattr(one, name) for name in ("id", "name")})
            others = {f"results[{at}].{name}": getattr(one, name) for name in ("output", "error", "status")}
            _check((str, NoneType), "a str or None", others)
        given = [(one.name, one.id, one.status, one.output, one.error) for one in written]
        of_calls = () if calls is None else _list_of(Call, "calls", CALLS, calls)
        order = None if calls is None else [(call.name, call.id) for call in of_calls]
        return self._set.results(given, order)

    def render(
        self, name: str, arguments: Mapping[str, Any], *, id: str | None = None, dependencies: Iterable[str] = ()
    ) -> str:
        """Writes a call in the syntax of the dialect.

        Raises `RenderError` if the syntax cannot express it, or would read it differently.
        """
        if not isinstance(arguments, Mapping):
            raise _wrong_type("arguments", "a dict", arguments)
        for at, value in arguments.items():
            if not _is_writable([at, value]):
                raise RenderError(f"JSON has no value for the argument {at!r}: {value!r}")
        _check(str, "a str", {"name": name, "id": "" if id is None else id})
        ids = _list_of(str, "dependencies", "a list of ids", dependencies)
        return self._set.render(name, json.dumps(dict(arguments)), id, ids)

    def escape(self, text: str) -> str:
        """Escapes untrusted text (a document, user input), so that it contains no call."""
        return self._set.escape(text)

    def grammar(
        self,
        engine: Engine,
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
        _check(str, "a str", {"engine": engine, "choice": choice, "only": "" if only is None else only})
        _check(bool, "True or False", {"one_call": one_call, "ids": ids})
        return self._set.grammar(engine, choice=choice, only=only, one_call=one_call, ids=ids)


Part: TypeAlias = tuple[str, tuple[str | None, list[str], str] | None]
"""A part of an earlier turn: `(text, None)`, or `(name, (id, dependencies, arguments as JSON))`."""
Content: TypeAlias = str | Iterable[object] | None
"""The content of a turn."""


def _wrong_type(name: str, expected: str, found: object) -> TypeError:
    return TypeError(f"`{name}`: expected {expected}, found {type(found).__name__}")


def _check(kind: type | tuple[type, ...], expected: str, arguments: Mapping[str, object]) -> None:
    """Raises `TypeError` if an argument has another type."""
    for name, value in arguments.items():
        if not isinstance(value, kind):
            raise _wrong_type(name, expected, value)


CALLS = "the calls of a document, `document.calls`"


def _list_of(kind: type[R], name: str, expected: str, values: Iterable[R]) -> list[R]:
    """Returns an argument as a list. Raises `TypeError` if it or an item has another type."""
    if isinstance(values, (str, bytes)) or not isinstance(values, Iterable):
        raise _wrong_type(name, expected, values)
    listed = list(values)
    _check(kind, f"a {kind.__name__}", {f"{name}[{at}]": value for at, value in enumerate(listed)})
    return listed


def _attribute(value: object, name: str) -> Any:
    """Returns an attribute of an object, or a member of a dict."""
    return value.get(name) if isinstance(value, Mapping) else getattr(value, name, None)


def _content_part(place: str, part: object) -> list[Part]:
    """Returns a part of a content: of a chat completion, of a message of Anthropic, or an item of a response."""
    if isinstance(part, str):
        return [(part, None)]
    kind = _attribute(part, "type")
    if kind in ("tool_use", "function_call"):
        return [_past_call(place, part)]
    if kind in ("thinking", "redacted_thinking", "reasoning"):
        return []
    content = _attribute(part, "content")
    if kind == "message" and isinstance(content, Iterable):
        return [piece for at, one in enumerate(content) for piece in _content_part(f"{place}.content[{at}]", one)]
    text = _attribute(part, "text" if kind != "refusal" else "refusal")
    if isinstance(text, str):
        return [(text, None)]
    raise _wrong_type(place, "a text, or a call with a name and arguments", part if kind is None else kind)


def _past_call(place: str, call: object) -> Part:
    """Returns a call of this package, of a chat completion, of a message of Anthropic or of a response."""
    if isinstance(call, Call):
        if call.arguments is None:
            raise ValueError(f"the call `{call.id}` is invalid; pass the text of the reply to the model instead")
        return call.name, (call.id, list(call.dependencies), json.dumps(call.arguments))
    function = _attribute(call, "function")
    named = call if function is None else function
    name, arguments = _attribute(named, "name"), _attribute(named, "arguments")
    if not isinstance(name, str):
        raise _wrong_type(place, "a call with a name and arguments", call)
    if arguments is None:
        arguments = _attribute(named, "input") or ""
    text = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return name, (_attribute(call, "call_id") or _attribute(call, "id"), [], text)
