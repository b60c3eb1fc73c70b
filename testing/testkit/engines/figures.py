"""usage: figures.py FOLDER ROOT

Measures the grammars of FOLDER/figures.json with a vocabulary of 128,000 tokens made from the sources below ROOT, and prints a
table: the processor time to compile, and of the masks for a reply with calls."""

import collections
import json
import pathlib
import random
import re
import statistics
import sys
import time

import llguidance
import numpy
from llguidance.numpy import allocate_token_bitmask, fill_next_token_bitmask

import xgrammar_engine
from xgrammar_engine import xgrammar

SIZE = 128_000
LONGEST = 14


def vocabulary(root):
    """All bytes, then the most frequent beginnings of words; random words fill it."""
    counts = collections.Counter()
    for end in ("rs", "md"):
        for path in sorted(pathlib.Path(root).glob(f"[cdst]*/**/*.{end}")):
            if "target" in path.parts:
                continue
            for word in re.findall(r" ?\w+| ?[^\w\s]+|\s+", path.read_text(errors="ignore")):
                counts.update(word[:end] for end in range(1, min(len(word), LONGEST) + 1))
    tokens = dict.fromkeys(bytes([byte]) for byte in range(256))
    for word, _ in counts.most_common():
        if len(tokens) < SIZE and len(word.encode()) <= LONGEST:
            tokens[word.encode()] = None
    choices = random.Random(1)
    while len(tokens) < SIZE:
        letters = choices.choices(b"abcdefghijklmnopqrstuvwxyz", k=choices.randint(3, 10))
        tokens[bytes(letters)] = None
    return list(tokens)


class Tokenizer:
    """Takes the longest token at each place."""

    bos_token_id = None

    def __init__(self, tokens):
        self.numbers = {token: number for number, token in enumerate(tokens)}
        self.eos_token_id = len(tokens)
        self.tokens = [*tokens, b"<|end|>"]
        self.special_token_ids = [self.eos_token_id]

    def __call__(self, text):
        rest = text if isinstance(text, bytes) else text.encode()
        numbers = []
        while rest:
            length = next(n for n in range(LONGEST, 0, -1) if rest[:n] in self.numbers)
            numbers.append(self.numbers[rest[:length]])
            rest = rest[length:]
        return numbers


def measure_xgrammar(vocabulary, make, tokens):
    # A compiler keeps parts of grammars for others.
    engine = xgrammar_engine.Engine(vocabulary)
    begun = time.process_time()
    compiled = engine.compiler.compile_grammar(make())
    compile_time = time.process_time() - begun
    matcher = xgrammar.GrammarMatcher(compiled)

    def mask():
        matcher.fill_next_token_bitmask(engine.mask)

    return compile_time, masks(mask, matcher.accept_token, tokens)


def measure_llguidance(tokenizer, grammar, tokens):
    begun = time.process_time()
    matcher = llguidance.LLMatcher(tokenizer, grammar)
    compile_time = time.process_time() - begun
    assert not matcher.is_error(), matcher.get_error()
    bitmask = allocate_token_bitmask(1, tokenizer.vocab_size)

    def mask():
        fill_next_token_bitmask(matcher, bitmask, 0)

    return compile_time, masks(mask, matcher.consume_token, tokens)


def masks(mask, accept, tokens):
    times = []
    for token in tokens:
        begun = time.process_time()
        mask()
        times.append(time.process_time() - begun)
        assert accept(token), "the grammar rejects the text"
    return times


def main(folder, root):
    figures = json.loads(pathlib.Path(folder, "figures.json").read_text())
    tokens = vocabulary(root)
    tokenizer = Tokenizer(tokens)
    guidance = llguidance.LLTokenizer(llguidance.TokenizerWrapper(tokenizer))
    text, as_json = tokenizer(figures["text"]), tokenizer(figures["json"])
    schema, tag = json.dumps(figures["schema"]), json.dumps(figures["tag"])
    ebnf, lark = figures["gbnf"], figures["lark"]
    from_json = xgrammar.Grammar.from_json_schema
    strict = {"any_whitespace": False, "separators": (",", ":")}
    options = {"whitespace_flexible": False, "item_separator": ",", "key_separator": ":"}
    json_grammar = llguidance.LLMatcher.grammar_from_json_schema(schema, overrides=options)
    lark_grammar = llguidance.LLMatcher.grammar_from_lark(lark)
    rows = {
        "XGrammar, structural tag": lambda: measure_xgrammar(
            tokens, lambda: xgrammar.Grammar.from_structural_tag(tag), text
        ),
        "XGrammar, GBNF as EBNF": lambda: measure_xgrammar(
            tokens, lambda: xgrammar.Grammar.from_ebnf(ebnf), text
        ),
        "XGrammar, JSON schema": lambda: measure_xgrammar(
            tokens, lambda: from_json(schema, **strict), as_json
        ),
        "llguidance, Lark": lambda: measure_llguidance(guidance, lark_grammar, text),
        "llguidance, JSON schema": lambda: measure_llguidance(guidance, json_grammar, as_json),
    }
    print(f"{figures['tools']} tools, {len(tokens)} tokens in the vocabulary, 1 thread\n")
    print("| grammar | compile | mask, median | mask, maximum | tokens |")
    print("| --- | --- | --- | --- | --- |")
    for name, measure in rows.items():
        # The second time, so that nothing is loaded for the first time.
        measure()
        compile_time, times = measure()
        median, most = statistics.median(times) * 1e6, max(times) * 1e6
        print(f"| {name} | {compile_time * 1e3:.0f} ms | {median:.0f} µs | {most:.0f} µs | {len(times)} |")


main(sys.argv[1], sys.argv[2])
