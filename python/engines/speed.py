"""Compares the package's speed with the Python parsers of vLLM and SGLang: `cargo xtask bench python`.

Prints Markdown: the parsers, and what the transport adds to a streamed reply. The times are processor time.
"""

from __future__ import annotations

import argparse
import json
import statistics
import sys
import time
from collections.abc import Callable, Iterator
from importlib.metadata import version
from pathlib import Path
from types import SimpleNamespace
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1] / "tests"))

import httpx2
import pyarrow
import stubs
from scripted import QUESTION, WEATHER, Model, stream_of

stubs.install()

from sglang.srt.entrypoints.openai.protocol import Tool as SglangTool  # noqa: E402
from sglang.srt.function_call.function_call_parser import FunctionCallParser  # noqa: E402
from vllm.entrypoints.openai.chat_completion.protocol import ChatCompletionRequest  # noqa: E402
from vllm.parser.engine.events import EventType  # noqa: E402
from vllm.parser.engine.streaming_parser_engine import StreamingParserEngine  # noqa: E402
from vllm.parser.minimax_m2 import MinimaxM2Parser  # noqa: E402
from vllm.parser.parser_manager import ParserManager  # noqa: E402
from vllm.parser.qwen3 import Qwen3Parser  # noqa: E402
from vllm.plugins import load_general_plugins  # noqa: E402

import plaincall as pc  # noqa: E402
import plaincall.httpx2  # noqa: E402

PROSE = "I will now write the next file, since the tests of the last one pass. It has one function.\n"
VALUE = '''def total(rows: list[dict], key: str = "amount") -> float:
    """Adds the values."""
    result = 0.0
    for row in rows:
        if key in row:
            result += float(row[key])
    return round(result, 2)'''
TOOL: Any = {
    "type": "function",
    "function": {
        "name": "write_file",
        "parameters": {
            "type": "object",
            "properties": {"path": {"type": "string"}, "content": {"type": "string"}},
            "required": ["path", "content"],
        },
    },
}
COUNT = 100
EXPECTED = [("write_file", {"path": f"src/part_{at}.py", "content": VALUE}) for at in range(COUNT)]

Calls = list[tuple[str, dict[str, Any]]]
"""The calls that a parser kept."""


def block(at: int, name: str, arguments: dict[str, str]) -> str:
    values = "".join(f"!!!ARG:{key}\n{value}\n" for key, value in arguments.items())
    return f"!!!GADGET_START:{name}\n{values}!!!GADGET_END\n"


def hermes(at: int, name: str, arguments: dict[str, str]) -> str:
    return f"<tool_call>\n{json.dumps({'name': name, 'arguments': arguments})}\n</tool_call>\n"


def qwen3(at: int, name: str, arguments: dict[str, str]) -> str:
    values = "".join(f"<parameter={key}>\n{value}\n</parameter>\n" for key, value in arguments.items())
    return f"<tool_call>\n<function={name}>\n{values}</function>\n</tool_call>\n"


def minimax(at: int, name: str, arguments: dict[str, str]) -> str:
    values = "".join(f'<parameter name="{key}">{value}</parameter>\n' for key, value in arguments.items())
    return f'<minimax:tool_call>\n<invoke name="{name}">\n{values}</invoke>\n</minimax:tool_call>\n'


def text_of(write: Callable[[int, str, dict[str, str]], str]) -> str:
    return "".join(PROSE + write(at, name, arguments) for at, (name, arguments) in enumerate(EXPECTED))


def plaincall_parser(chunks: list[str]) -> Calls:
    parser = pc.Parser(pc.Dialect.block())
    calls: Calls = []
    value: list[str] = []
    for chunk in [*chunks, None]:
        for event in parser.finish() if chunk is None else parser.feed(chunk):
            kind = type(event)
            if kind is pc.ValueDelta:
                value.append(event.text)
            elif kind is pc.ValueStart:
                value = []
                pointer = event.pointer
            elif kind is pc.ValueEnd:
                calls[-1][1][pointer] = "".join(value)
            elif kind is pc.CallStart:
                calls.append((event.name, {}))
    return calls


TOOLBOX = pc.Toolbox([TOOL])


def plaincall_reader(chunks: list[str]) -> Calls:
    reader = TOOLBOX.reader()
    calls: Calls = []
    for chunk in [*chunks, None]:
        for event in reader.finish(stop="natural") if chunk is None else reader.feed(chunk):
            if type(event) is pc.Call and event.may_run:
                calls.append((event.name, event.arguments))
    return calls


REQUEST = ChatCompletionRequest(model="m", messages=QUESTION, tools=[TOOL])
# The markers are not single tokens, so that they are found in the text, as in a chunk of several tokens.
TOKENIZER = SimpleNamespace(
    get_vocab=dict, vocab={}, encode=lambda text, **options: [7], decode=lambda ids, **options: ""
)
THINKING_OFF = {"enable_thinking": False}


def of_pieces(pieces: dict[int, list[str]]) -> Calls:
    kept: Calls = []
    for name, *arguments in pieces.values():
        try:
            kept.append((name, json.loads("".join(arguments))))
        except ValueError:
            kept.append((name, {}))
    return kept


def vllm(name: str) -> Callable[[list[str]], dict[int, list[str]]]:
    """Returns a run of a tool parser of vLLM as its server calls it: through the object that `ParserManager` makes."""
    made = ParserManager.get_parser(tool_parser_name=name, enable_auto_tools=True)
    assert made is not None

    def run(chunks: list[str]) -> dict[int, list[str]]:
        parser = made(TOKENIZER, REQUEST.tools, chat_template_kwargs=THINKING_OFF)
        pieces: dict[int, list[str]] = {}
        last = len(chunks) - 1
        for at, chunk in enumerate(chunks):
            delta = parser.parse_delta(chunk, [7], REQUEST, [1], finished=at == last)
            if delta is not None and delta.tool_calls:
                for call in delta.tool_calls:
                    if call.function.name:
                        pieces[call.index] = [call.function.name]
                    if call.function.arguments:
                        pieces[call.index].append(call.function.arguments)
        return pieces

    return run


def engine(parser: Any) -> Callable[[list[str]], dict[int, list[str]]]:
    """Returns a run of the engine alone, which makes events: no deltas, and no JSON of arguments."""

    def run(chunks: list[str]) -> dict[int, list[str]]:
        made = parser(TOKENIZER, REQUEST.tools, chat_template_kwargs=THINKING_OFF)
        core = StreamingParserEngine(made.parser_engine_config, TOKENIZER)
        pieces: dict[int, list[str]] = {}
        for chunk in [*chunks, None]:
            for event in core.finish() if chunk is None else core.feed(chunk, [7]):
                kind = event.type
                if kind is EventType.ARG_VALUE_CHUNK:
                    pieces[event.tool_index].append(event.value)
                elif kind is EventType.TOOL_NAME:
                    pieces[event.tool_index][0] += event.value
                elif kind is EventType.TOOL_CALL_START:
                    pieces[event.tool_index] = [""]
        return pieces

    def converted(pieces: dict[int, list[str]]) -> dict[int, list[str]]:
        made = parser(TOKENIZER, REQUEST.tools, chat_template_kwargs=THINKING_OFF)
        convert = made.parser_engine_config.arg_converter
        return {at: [name, convert("".join(written), False)] for at, (name, *written) in pieces.items()}

    AFTERWARDS[run] = converted
    return run


AFTERWARDS: dict[Any, Callable[[dict[int, list[str]]], dict[int, list[str]]]] = {}
"""What makes JSON from the arguments of a run, without counting in its time."""


def sglang(name: str) -> Callable[[list[str]], dict[int, list[str]]]:
    """Returns a run of a detector of SGLang as its server calls it: through `FunctionCallParser`."""
    tools = [SglangTool.model_validate(TOOL)]

    def run(chunks: list[str]) -> dict[int, list[str]]:
        parser = FunctionCallParser(tools, name)
        pieces: dict[int, list[str]] = {}
        for chunk in [*chunks, None]:
            _, calls = parser.parse_stream_end() if chunk is None else parser.parse_stream_chunk(chunk)
            for call in calls:
                if call.name:
                    pieces[call.tool_index] = [call.name]
                if call.parameters:
                    pieces.setdefault(call.tool_index, [""]).append(call.parameters)
        return pieces

    return run


Run = Callable[[list[str]], Any]
PARSERS: list[tuple[str, str, Run]] = []


def prepare() -> None:
    load_general_plugins()
    PARSERS.extend(
        [
            ("Plaincall, `Parser`", text_of(block), plaincall_parser),
            ("Plaincall, `Toolbox.reader`: validated", text_of(block), plaincall_reader),
            ("vLLM, with the parser of this package", text_of(block), vllm("plaincall")),
            ("vLLM, `qwen3_coder` (its engine)", text_of(qwen3), vllm("qwen3_coder")),
            ("vLLM, `minimax_m2` (its engine)", text_of(minimax), vllm("minimax_m2")),
            ("vLLM, engine of `qwen3_coder` alone: events", text_of(qwen3), engine(Qwen3Parser)),
            ("vLLM, engine of `minimax_m2` alone: events", text_of(minimax), engine(MinimaxM2Parser)),
            ("vLLM, `hermes`", text_of(hermes), vllm("hermes")),
            ("SGLang, `qwen3_coder`", text_of(qwen3), sglang("qwen3_coder")),
            ("SGLang, `qwen25`", text_of(hermes), sglang("qwen25")),
        ]
    )


def seconds(run: Callable[[], object], least: float) -> float:
    """Returns the processor time of one run, from as many as take this long together."""
    begun = time.process_time()
    count = 0
    while True:
        run()
        count += 1
        spent = time.process_time() - begun
        if spent >= least:
            return spent / count


def compare(rounds: int, least: float) -> None:
    print(f"vLLM {version('vllm')}, SGLang {version('sglang')}, Python {sys.version.split()[0]}; {rounds} rounds\n")
    print("| chunk | parser | µs per chunk | MB/s | time, Plaincall's `Parser` = 1 | calls kept |")
    print("| --- | --- | --- | --- | --- | --- |")
    for length in (4, 64, 4096):
        cut = [[text[at : at + length] for at in range(0, len(text), length)] for _, text, _ in PARSERS]
        times: list[list[float]] = [[] for _ in PARSERS]
        for _ in range(rounds):
            for at, (_, _, run) in enumerate(PARSERS):
                times[at].append(seconds(lambda run=run, chunks=cut[at]: run(chunks), least))  # type: ignore[misc]
        own = statistics.median(times[0])
        for (name, text, run), chunks, measured in zip(PARSERS, cut, times, strict=True):
            taken = statistics.median(measured)
            result = AFTERWARDS.get(run, lambda pieces: pieces)(run(chunks))
            kept = of_pieces(result) if isinstance(result, dict) else result
            equal = sum(one == expected for one, expected in zip(kept, EXPECTED, strict=False))
            print(
                f"| {length} | {name} | {taken / len(chunks) * 1e6:.2f} | {len(text) / taken / 1e6:.3g} "
                f"| {taken / own:.1f} | {equal}/{COUNT} |"
            )


def table(rounds: int, least: float) -> None:
    """Prints a line of the same table for `table`, whose rows are whole replies."""
    text, count = text_of(block), 100
    data = pyarrow.table({"text": [text] * count}).combine_chunks()

    def run() -> pyarrow.Table:
        return pyarrow.table(pc.table(data, dialect=pc.Dialect.block()))

    taken = statistics.median(seconds(run, least) for _ in range(rounds)) / count
    calls = run()["calls"][0].as_py()
    kept = [(call["name"], json.loads(call["arguments"])) for call in calls if call["may_run"]]
    equal = sum(one == expected for one, expected in zip(kept, EXPECTED, strict=False))
    print(
        f"| whole | Plaincall, `table`: a row for each reply | {taken * 1e6:.2f} | {len(text) / taken / 1e6:.3g} | | {equal}/{COUNT} |"
    )


class Recorded(Model):
    """A model whose pieces are made before."""

    def __init__(self, pieces: list[bytes]) -> None:
        super().__init__()
        self.pieces = pieces

    def answer(self, path: str, headers: dict[str, str], body: bytes) -> tuple[int, str, Iterator[bytes]]:
        return 200, "text/event-stream", iter(self.pieces)


def streamed(transport: Any) -> None:
    request = {"model": "m", "messages": QUESTION, "tools": [WEATHER], "stream": True}
    client = httpx2.Client(transport=transport)
    with client.stream("POST", "http://model.test/v1/chat/completions", json=request) as response:
        for _ in response.iter_bytes():
            pass


def transport(rounds: int) -> None:
    print("\n| reply | the transport adds, µs per streamed chunk | the request without it |")
    print("| --- | --- | --- |")
    words = "word " * 20_000
    argument = f"!!!GADGET_START:get_weather\n!!!ARG:city\n{words}\n!!!GADGET_END\n"
    for name, reply in (("100 KB of prose", words), ("one argument of 100 KB", argument)):
        pieces = list(stream_of(reply))
        inner = Recorded(pieces).sync_transport(httpx2)
        bare, added = [], []
        for _ in range(rounds):
            bare.append(seconds(lambda inner=inner: streamed(inner), 0.2))  # type: ignore[misc]
            whole = seconds(lambda inner=inner: streamed(plaincall.httpx2.Transport(inner)), 0.2)  # type: ignore[misc]
            added.append(whole - bare[-1])
        per = [statistics.median(one) / len(pieces) * 1e6 for one in (added, bare)]
        print(f"| {name}, {len(pieces)} chunks | {per[0]:.2f} | {per[1]:.2f} |")


def main() -> None:
    options = argparse.ArgumentParser()
    options.add_argument("--rounds", type=int, default=7)
    options.add_argument("--seconds", type=float, default=0.1, help="the least processor time of a sample")
    chosen = options.parse_args()
    prepare()
    compare(chosen.rounds, chosen.seconds)
    table(chosen.rounds, chosen.seconds)
    transport(chosen.rounds)


if __name__ == "__main__":
    main()
