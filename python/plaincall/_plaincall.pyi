"""The extension module. Import its public names from `plaincall`."""

from collections.abc import Sequence
from typing import Any, ClassVar, Literal, TypeAlias, final

from typing_extensions import Unpack

from plaincall._events import Event
from plaincall._gateway import ModelSettings
from plaincall.tools import Engine, Stop

__all__ = [
    "USAGE_WAIT",
    "Adapter",
    "Asked",
    "Call",
    "CallEnd",
    "CallStart",
    "DefinitionError",
    "Diagnostic",
    "Dialect",
    "DialectError",
    "Document",
    "ErrorResponse",
    "Grammar",
    "GrammarError",
    "Ignored",
    "NearMiss",
    "Parser",
    "Plan",
    "Reader",
    "Reasoning",
    "RenderError",
    "Table",
    "Text",
    "TokenCount",
    "ToolSet",
    "ValueDelta",
    "ValueEnd",
    "ValueStart",
    "__version__",
    "error_rates",
    "extract_table",
    "near_misses",
    "parse",
    "render_table",
    "unpickled_call",
    "unpickled_dialect",
    "unpickled_document",
]

_Syntax: TypeAlias = Literal["block", "emoji"]
_Termination: TypeAlias = Literal["explicit", "next_call", "end_of_stream"]
_Markers: TypeAlias = tuple[str, str]

__version__: str

class DialectError(ValueError):
    """The options of a dialect cannot be used together, or are not enough for the operation."""

class DefinitionError(ValueError):
    """A tool cannot be used. The message has a JSON Pointer into the definitions."""

class RenderError(ValueError):
    """The syntax cannot express a call, or it would be parsed differently."""

class GrammarError(ValueError):
    """There is no grammar for the tools."""

@final
class Text:
    """Text outside calls. In a document, adjacent text is one object.

    In an escaped dialect, `text` of a document has no escaping backslash, and `source` has it.
    """

    __match_args__ = ("text", "start", "end", "source")
    def __new__(cls, text: str, start: int, end: int, source: str) -> Text: ...
    @property
    def text(self) -> str: ...
    @property
    def start(self) -> int:
        """The start of its span, in bytes of the text."""
    @property
    def end(self) -> int:
        """The end of its span, in bytes of the text."""
    @property
    def source(self) -> str:
        """The exact text of the span."""
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Reasoning:
    """Text between reasoning markers."""

    __match_args__ = ("text", "start", "end", "source")
    def __new__(cls, text: str, start: int, end: int, source: str) -> Reasoning: ...
    @property
    def text(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def source(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class CallStart:
    """The start of a call: its start marker and header."""

    __match_args__ = ("name", "id", "dependencies", "syntax", "raw_args", "start", "end", "source")
    def __new__(
        cls,
        name: str,
        id: str | None,
        dependencies: tuple[str, ...],
        syntax: _Syntax,
        raw_args: str | None,
        start: int,
        end: int,
        source: str,
    ) -> CallStart: ...
    @property
    def name(self) -> str: ...
    @property
    def id(self) -> str | None:
        """The id, if the model wrote one."""
    @property
    def dependencies(self) -> tuple[str, ...]:
        """The ids that it depends on, as written."""
    @property
    def syntax(self) -> _Syntax: ...
    @property
    def raw_args(self) -> str | None:
        """The text after the name of an emoji call; `None` in the block syntax."""
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def source(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class ValueStart:
    """The start of a value."""

    __match_args__ = ("pointer", "start", "end", "source")
    def __new__(cls, pointer: str | None, start: int, end: int, source: str) -> ValueStart: ...
    @property
    def pointer(self) -> str | None:
        """The pointer of the argument, as written; `None` for the body of an emoji call."""
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def source(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class ValueDelta:
    """A piece of a value, as written."""

    __match_args__ = ("text", "start", "end", "source")
    def __new__(cls, text: str, start: int, end: int, source: str) -> ValueDelta: ...
    @property
    def text(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def source(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class ValueEnd:
    """The end of a value. Its source is the line end that belongs to the syntax, or empty."""

    __match_args__ = ("start", "end", "source")
    def __new__(cls, start: int, end: int, source: str) -> ValueEnd: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def source(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class CallEnd:
    """The end of a call. Its source is the end marker, or empty."""

    __match_args__ = ("termination", "start", "end", "source")
    def __new__(cls, termination: _Termination, start: int, end: int, source: str) -> CallEnd: ...
    @property
    def termination(self) -> _Termination: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def source(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Ignored:
    """Bytes that are not text, reasoning, a marker or a value."""

    __match_args__ = ("text", "start", "end", "source")
    def __new__(cls, text: str, start: int, end: int, source: str) -> Ignored: ...
    @property
    def text(self) -> str: ...
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def source(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Diagnostic:
    """A problem in the text, or of a call. It covers no input, so its source is empty."""

    __match_args__ = ("code", "severity", "message", "pointer", "start", "end", "source")
    def __new__(
        cls,
        code: str,
        severity: Literal["error", "warning"],
        message: str,
        pointer: str | None,
        start: int,
        end: int,
        source: str,
    ) -> Diagnostic: ...
    @property
    def code(self) -> str:
        """The stable code."""
    @property
    def severity(self) -> Literal["error", "warning"]: ...
    @property
    def message(self) -> str:
        """One sentence."""
    @property
    def pointer(self) -> str | None:
        """The pointer to the invalid argument."""
    @property
    def start(self) -> int: ...
    @property
    def end(self) -> int: ...
    @property
    def source(self) -> str: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Call:
    """A call, with the decision of whether it may run.

    An invalid call is data: it has `problems` and a `rejection`, and nothing is raised.
    """

    __match_args__ = ("name", "arguments", "id")
    @property
    def index(self) -> int:
        """The index in order of appearance, from 0."""
    @property
    def name(self) -> str:
        """The name of the tool, as written."""
    @property
    def id(self) -> str:
        """The id, written or assigned."""
    @property
    def is_id_automatic(self) -> bool:
        """Whether the id was assigned, not written."""
    @property
    def dependencies(self) -> tuple[str, ...]:
        """The ids of the calls that it depends on."""
    @property
    def arguments(self) -> dict[str, Any] | None:
        """The arguments as a new `dict`, or `None` if they are invalid, or those of an emoji call without tools.

        Changing it does not change the call.
        """
    @property
    def problems(self) -> tuple[Diagnostic, ...]:
        """The errors: of the text, and with tools those of the definition."""
    @property
    def rejection(self) -> str | None:
        """Why the call must not run, as a sentence for the model; `None` if it may run."""
    @property
    def held(self) -> str | None:
        """Text in a value that was probably meant to end the call earlier, or the start of another call.

        Run such a call only if a person approves it.
        """
    @property
    def may_run(self) -> bool:
        """Whether the call may run: it is complete and valid, and nothing in it was probably meant as its end."""
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All diagnostics of the text of the call, also warnings."""
    @property
    def syntax(self) -> _Syntax: ...
    @property
    def termination(self) -> _Termination:
        """How the call ended."""
    @property
    def raw_args(self) -> str | None:
        """The text after the name in the header of an emoji call; `None` in the block syntax."""
    @property
    def body(self) -> str | None:
        """The body of an emoji call; `None` in the block syntax."""
    @property
    def start(self) -> int:
        """The start, in bytes of the text."""
    @property
    def end(self) -> int:
        """The end, in bytes of the text."""
    @property
    def source(self) -> str | None:
        """The exact text, with markers; `None` if a value was over the limit and not kept."""
    @property
    def before(self) -> str | None:
        """The text before it that looks like the beginning of a call, as JSON: with other tools, `execute` reads it. Otherwise `None`."""
    def __copy__(self) -> Call: ...
    def __deepcopy__(self, memo: object, /) -> Call: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Dialect:
    """The rules by which a text is read and written: the syntax, its markers and options.

    Create one with `Dialect.block()`, `Dialect.emoji()` or `Dialect.auto()` (the syntax of the first call). Dialects are
    immutable and can be shared, hashed and pickled. The first use of one compiles it, so create it once.

    `escaped` enables escapes: a backslash before the last character of a marker makes it content. `key` is part of every
    marker. `reasoning` has the markers around reasoning, in which calls are ignored; those of `leading_reasoning` count at the
    beginning of a text only. `in_reasoning` begins inside reasoning. Tools and tables read `leading_reasoning=Dialect.THINK` unless
    other markers are set; `no_reasoning` switches it off. `start`, `end` and `arg` replace the markers
    `!!!GADGET_START:`, `!!!GADGET_END` and `!!!ARG:` of the block syntax. `markers_anywhere` recognizes block markers anywhere in a
    call. `strict` accepts only the canonical form of the emoji marker, and `self_closing` accepts ` /]` as the end of an emoji
    call without a body.

    Raises `DialectError` for options that cannot be used together.
    """

    THINK: ClassVar[tuple[str, str]] = ...
    """The most common markers around reasoning."""
    @staticmethod
    def block(
        *,
        start: str | None = None,
        end: str | None = None,
        arg: str | None = None,
        markers_anywhere: bool = False,
        escaped: bool = False,
        key: str | None = None,
        reasoning: _Markers | None = None,
        leading_reasoning: _Markers | None = None,
        in_reasoning: bool = False,
        no_reasoning: bool = False,
    ) -> Dialect:
        """Returns a dialect of the block syntax."""
    @staticmethod
    def emoji(
        *,
        strict: bool = False,
        self_closing: bool = False,
        escaped: bool = False,
        key: str | None = None,
        reasoning: _Markers | None = None,
        leading_reasoning: _Markers | None = None,
        in_reasoning: bool = False,
        no_reasoning: bool = False,
    ) -> Dialect:
        """Returns a dialect of the emoji-bracket syntax."""
    @staticmethod
    def auto(
        *,
        start: str | None = None,
        end: str | None = None,
        arg: str | None = None,
        markers_anywhere: bool = False,
        strict: bool = False,
        self_closing: bool = False,
        escaped: bool = False,
        key: str | None = None,
        reasoning: _Markers | None = None,
        leading_reasoning: _Markers | None = None,
        in_reasoning: bool = False,
        no_reasoning: bool = False,
    ) -> Dialect:
        """Returns a dialect that takes the syntax of the first call."""
    @property
    def syntax(self) -> _Syntax | None:
        """The syntax, or `None` in the automatic dialect."""
    @property
    def escaped(self) -> bool:
        """Whether a backslash makes a marker content."""
    def __copy__(self) -> Dialect: ...
    def __deepcopy__(self, memo: object, /) -> Dialect: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Document:
    """A complete text: its parts, its calls and its diagnostics."""

    @property
    def syntax(self) -> _Syntax | None:
        """The syntax of the dialect; in the automatic dialect that of the first call, or `None`."""
    @property
    def segments(self) -> tuple[Text | Reasoning | Call, ...]:
        """The parts, in order. Their spans cover the text without gaps."""
    @property
    def calls(self) -> tuple[Call, ...]:
        """The calls, in order."""
    @property
    def diagnostics(self) -> tuple[Diagnostic, ...]:
        """All diagnostics, ordered by the ends of their spans. With tools, also those of their definitions."""
    @property
    def text(self) -> str:
        """The text outside calls and reasoning."""
    def to_json(self) -> str:
        """Returns the document as JSON, as `plaincall parse` prints it."""
    def __copy__(self) -> Document: ...
    def __deepcopy__(self, memo: object, /) -> Document: ...
    def __eq__(self, other: object, /) -> bool: ...
    def __ne__(self, other: object, /) -> bool: ...
    def __hash__(self) -> int: ...

@final
class Parser:
    """Finds calls in a text while it arrives.

    Feed it `str` or `bytes`; the bytes of a character may come in two chunks. The events are the same for every split, except
    for where text is split. No text is an error. Default dialect: automatic.

    Raises `DialectError` for an invalid dialect.
    """

    def __new__(cls, dialect: Dialect | None = None) -> Parser: ...
    def feed(self, chunk: str | bytes | bytearray) -> list[Event]:
        """Reads the next chunk, and returns its events. A signal that stops it ends the text.

        Raises `ValueError` after `finish`.
        """
    def finish(self) -> list[Event]:
        """Ends the text, and returns its last events.

        Raises `ValueError` the second time.
        """

@final
class Reader:
    """Reads the replies of one conversation while the model writes. `Toolbox.reader` creates it.

    `feed` returns the events of the parser, and a `Call` after the end of each call. A reasoning end marker that nothing
    opened rejects the calls before it in the same chunk; calls of earlier chunks have been returned.
    """

    def feed(self, chunk: str | bytes | bytearray) -> list[Event | Call]:
        """Reads the next chunk of the reply. A signal that stops it ends the reply; `begin_reply` begins the next one.

        Raises `ValueError` after `finish`.
        """
    def finish(self, *, stop: Stop | None = None) -> list[Event | Call]:
        """Ends the reply, and returns its last events and calls. `stop` states how it ended, as in `parse`.

        Raises `ValueError` the second time.
        """
    def begin_reply(self) -> None:
        """Begins the next reply of the conversation: ids may be used again, numbering continues."""

@final
class Grammar:
    """A grammar with which an inference engine keeps a model from writing invalid calls."""

    @property
    def text(self) -> str:
        """The grammar in the notation of the engine."""
    @property
    def notes(self) -> list[str]:
        """The keywords that the grammar does not enforce, one sentence each."""
    @property
    def request_fields(self) -> dict[str, Any]:
        """The fields to add to a chat request: `extra_body` of the `openai` client."""

@final
class ToolSet:
    """Definitions of tools in one dialect. `plaincall.Toolbox` is this class with Python functions."""

    def __new__(
        cls, definitions: str, effects: Sequence[tuple[str, str]], dialect: Dialect, unclosed: str
    ) -> ToolSet: ...
    @property
    def dialect(self) -> Dialect: ...
    def tools(self) -> dict[str, tuple[str, str, str]]: ...
    def prompt(
        self, *, one_call: bool = False, without_dependencies: bool = False, description_length: int | None = None
    ) -> str: ...
    def parse(self, text: str | bytes | bytearray, *, stop: Stop | None = None) -> Document: ...
    def reader(self) -> Reader: ...
    def repair(self, document: Document) -> str | None: ...
    def history(self, parts: Sequence[tuple[str, tuple[str | None, list[str], str] | None]]) -> str: ...
    def results(
        self,
        given: Sequence[tuple[str, str, str | None, str | None, str | None]],
        calls: Sequence[tuple[str, str]] | None = None,
    ) -> str: ...
    def render(self, name: str, arguments: str, id: str | None, dependencies: Sequence[str]) -> str: ...
    def escape(self, text: str) -> str: ...
    def grammar(
        self,
        engine: Engine,
        *,
        choice: str = "auto",
        only: str | None = None,
        one_call: bool = False,
        ids: bool = False,
    ) -> Grammar: ...

@final
class Plan:
    """Decides which call of a reply starts next, and which are skipped or rejected. `plaincall.execute` uses it."""

    def __new__(cls, tools: ToolSet, concurrent: int | None = None) -> Plan: ...
    def add(self, call: Call, can_approve: bool) -> None: ...
    def end(self) -> None: ...
    def next(self) -> tuple[Literal["ready", "start", "skipped", "rejected"], int, str | None] | None: ...
    def admit(self, call: int) -> None: ...
    def deny(self, call: int, reason: str) -> None: ...
    def finish(self, call: int, succeeded: bool) -> None: ...
    @staticmethod
    def failure(
        name: Literal["not_approved", "approval", "timed_out", "running", "cancelled", "unwritable", "no_function"],
        detail: str | None = None,
    ) -> str: ...

USAGE_WAIT: float
"""How long to wait for the usage after the end of a reply, in seconds, without the time that the client needs to read."""

@final
class Adapter:
    """Translates requests with tools to plain text, and replies back. It does no I/O."""

    def __new__(
        cls,
        secret: bytes,
        **settings: Unpack[ModelSettings],
    ) -> Adapter:
        """Creates an adapter. Instances that serve the same conversations need the same secret: 32 random bytes.

        `None` as a setting is its default. Raises `ValueError` for invalid settings.
        """
    def upstream_headers(self, headers: Sequence[tuple[str, str]], is_translated: bool) -> list[tuple[str, str]]:
        """Returns the headers of a request to the model server for those of the client's request."""
    @staticmethod
    def translates(method: str, target: str) -> bool:
        """Returns whether a request of any content type must be passed to `ask`. All others are forwarded unchanged."""
    def ask(self, target: str, body: bytes, seed: bytes, now: int) -> bytes | Asked | TokenCount | ErrorResponse | None:
        """Translates a request to this path and query, both encoded as in the request.

        Returns `None` if it and its answer are forwarded unchanged, `bytes` if only its body changes, the translated request, the
        count of its tokens, or the response that rejects it.

        `seed` is 16 or more random bytes for this request only; `now` is in seconds since 1970.
        """

@final
class Asked:
    """A translated request whose answer is being read."""

    @property
    def target(self) -> str:
        """The path and the query of the next request to the model server."""
    @property
    def is_streamed(self) -> bool:
        """Whether the client asked for an event stream."""
    @property
    def changed_tools(self) -> list[str]:
        """The tools that could not be offered unchanged: a sentence for each, without content of the request."""
    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers of the response to the client, unless it is an `ErrorResponse`."""
    @property
    def body(self) -> bytes:
        """The body of the next request to the model server."""
    def begin_answer(self, status: int, headers: Sequence[tuple[str, str]]) -> None:
        """Begins the model server's answer with its status and headers."""
    def feed(self, chunk: bytes) -> tuple[bytes, int]:
        """Feeds the next bytes of the model server's answer.

        Returns the bytes for the client, and whether to read on: 0 to read on, 1 to read on for the usage only, for at most
        `USAGE_WAIT` seconds, 2 to stop.
        """
    def keep_alive(self) -> bytes | None:
        """Returns what keeps the connection to the client open, or `None` before any output.

        Send it after some seconds without output.
        """
    def end(self, error: str | None = None) -> tuple[bytes, Literal[True] | ErrorResponse | None]:
        """Ends the model server's answer, with an error if there was one.

        Returns the last bytes for the client, and `None` if the reply is complete, `True` if `body` must be sent to repair it, or
        the response that rejects the request. If bytes were sent before, the error is in the last bytes too.
        """
    def connection_error(self, error: str) -> tuple[bytes, Literal[True] | ErrorResponse | None] | None:
        """Ends the answer, or a request without one, because the connection broke.

        Returns the same as `end`, or `None` if the client must get the error of its own library: there is no other reply.
        """

@final
class TokenCount:
    """A request for a number of tokens, which the model server counts or which is estimated."""

    @property
    def request(self) -> tuple[str, bytes] | None:
        """The target and the body of the next request to the model server, or `None` if no answer is needed any more."""
    def feed(self, chunk: bytes) -> bool:
        """Takes the next bytes of the model server's answer to the request, unless it is an error. Returns whether to read on."""
    def end(self) -> None:
        """Ends the answer."""
    @property
    def response(self) -> ErrorResponse:
        """The response to the client."""

@final
class ErrorResponse:
    """A response to the client that no model wrote: an error, a redirect, or a number of tokens."""

    @property
    def status(self) -> int:
        """The HTTP status."""
    @property
    def headers(self) -> list[tuple[str, str]]:
        """The headers, with the content type."""
    @property
    def body(self) -> bytes:
        """The body: JSON in the format of the client's API."""

@final
class NearMiss:
    """Text that looks like a marker or a call in another format, and is neither."""

    @property
    def source(self) -> str:
        """The text."""
    @property
    def suggestion(self) -> str:
        """The marker that was probably meant; empty for a call in another format."""
    @property
    def start(self) -> int:
        """The start, in bytes of the text."""
    @property
    def end(self) -> int:
        """The end, in bytes of the text."""

@final
class Table:
    """A table that is made while it is read, in batches of at most 8,192 rows. It implements the Arrow PyCapsule interface.

    Each time it is read, the input is read again, one batch after another.
    """

    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...

def extract_table(
    data: object, column: str, tools: ToolSet | None, dialect: Dialect | None, stop: Stop | None, tool_calls: bool
) -> Table: ...
def render_table(data: object, calls: str, content: str, tools: ToolSet | None, dialect: Dialect | None) -> Table: ...
def error_rates(data: object, calls: str) -> dict[str, Any]: ...
def near_misses(text: str | bytes | bytearray, dialect: Dialect | None = None) -> list[NearMiss]:
    """Finds text that looks like a marker or a call in another format, and is neither. Default dialect: automatic.

    Raises `DialectError` for an invalid dialect.
    """

def parse(
    text: str | bytes | bytearray,
    dialect: Dialect | None = None,
    *,
    stop: Stop | None = None,
) -> Document:
    """Finds the calls in a complete text. No text is an error.

    `stop` is the finish reason of the reply, as an API has it (`"stop"`, `"length"`, `"end_turn"`, `"max_tokens"`, …), or
    `"natural"` (the text is complete), `"end_of_file"`, `"length"` or `"broken"` (unknown). It decides whether a call without an end
    marker may run. Default: unknown. Default dialect: automatic. `table` is faster for many texts.

    Raises `DialectError` for an invalid dialect.
    """

def unpickled_call(attributes: dict[str, Any]) -> Call: ...
def unpickled_dialect(function: str, arguments: dict[str, Any]) -> Dialect: ...
def unpickled_document(text: str | bytes, rules: Dialect | ToolSet | None, stop: Stop) -> Document: ...
