"""XGrammar without torch and transformers, which it needs only for real models."""

import os
import sys
import types

import numpy

os.environ["TVM_FFI_DISABLE_TORCH_C_DLPACK"] = "1"


class Absent(types.ModuleType):
    """A package of which xgrammar, at its import, uses the names of types and one tensor."""

    __path__ = []
    int32 = numpy.int32

    def tensor(self, *values, **options):
        return None

    def __getattr__(self, name):
        if name.startswith("__"):
            raise AttributeError(name)
        return type(name, (), {})


for package in ("torch", "transformers"):
    sys.modules[package] = Absent(package)

import xgrammar  # noqa: E402

NOTATIONS = {"gbnf": xgrammar.Grammar.from_ebnf, "tag": xgrammar.Grammar.from_structural_tag}


class Engine:
    """A compiler for a vocabulary, whose last token ends the text."""

    def __init__(self, vocabulary):
        self.end = len(vocabulary)
        info = xgrammar.TokenizerInfo(
            [*vocabulary, b"</s>"], xgrammar.VocabType.RAW, stop_token_ids=[self.end]
        )
        self.compiler = xgrammar.GrammarCompiler(info, max_threads=1, cache_enabled=False)
        self.mask = numpy.zeros((1, (self.end + 32) // 32), dtype=numpy.int32)

    def compile(self, notation, grammar):
        return self.compiler.compile_grammar(NOTATIONS[notation](grammar))

    def allowed(self, matcher):
        """Returns whether each token is allowed."""
        if not matcher.fill_next_token_bitmask(self.mask):
            return numpy.ones(self.end + 1, dtype=numpy.uint8)
        return numpy.unpackbits(self.mask.view(numpy.uint8), bitorder="little")[: self.end + 1]

    def accepts(self, compiled, text):
        """Returns whether a text is complete."""
        matcher = xgrammar.GrammarMatcher(compiled)
        return matcher.accept_string(text) and bool(self.allowed(matcher)[self.end])
