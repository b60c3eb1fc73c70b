"""usage: xgrammar_verdicts.py FOLDER

Compares XGrammar's verdicts on the texts of FOLDER/texts.jsonl with llguidance's, and writes texts of its own to
FOLDER/xgrammar.jsonl."""

import collections
import json
import random
import sys

import numpy
import xgrammar_engine

# The longest text, in bytes, and the number of texts for each grammar.
LONGEST = 6000
WALKS = 3


def walk(engine, compiled, choices, wishes, ends):
    """Writes a random text; None if it does not end in time. It often tries one of `wishes`, and later one of `ends`."""
    matcher = xgrammar_engine.xgrammar.GrammarMatcher(compiled)
    text, wish = bytearray(), b""
    limit = choices.choice([60, 200, 500])
    while len(text) < LONGEST:
        allowed = engine.allowed(matcher)
        is_late = len(text) > limit
        bytes_allowed = numpy.flatnonzero(allowed[:256]).tolist()
        if allowed[engine.end] and (is_late or not bytes_allowed or choices.random() < 0.03):
            # Its free text may be any bytes. A server replaces them in the same way.
            return text.decode(errors="replace")
        if not bytes_allowed:
            raise SystemExit(f"XGrammar allows nothing after {bytes(text)!r}")
        if not wish and choices.random() < (0.9 if is_late else 0.15):
            wish = choices.choice(ends if is_late else wishes).encode()
        if wish and allowed[wish[0]]:
            byte, wish = wish[0], wish[1:]
        else:
            wish = b""
            plain = [one for one in bytes_allowed if 32 <= one < 127 or one == 10]
            byte = choices.choice(plain if plain and choices.random() < 0.97 else bytes_allowed)
        assert matcher.accept_token(byte), (bytes(text), byte)
        text.append(byte)
    return None


def main(folder):
    engine = xgrammar_engine.Engine([bytes([byte]) for byte in range(256)])
    tally = collections.Counter()
    with open(f"{folder}/texts.jsonl") as records, open(f"{folder}/xgrammar.jsonl", "w") as walks:
        for number, line in enumerate(records):
            record = json.loads(line)
            for notation, key in (("gbnf", "accepted"), ("tag", "accepted_by_tag")):
                if record[notation] is None:
                    continue
                grammar = record[notation]
                grammar = grammar if notation == "gbnf" else json.dumps(grammar)
                compiled = engine.compile(notation, grammar)
                for text in record["texts"]:
                    if text[key] is None:
                        tally[f"{notation}: not compared"] += 1
                        continue
                    verdict = engine.accepts(compiled, text["text"])
                    tally[f"{notation}: {'accepted' if verdict else 'rejected'}"] += 1
                    if verdict != text[key]:
                        raise SystemExit(
                            f"{notation}, line {number + 1}: XGrammar says {verdict}, llguidance {text[key]}:\n"
                            f"{text['text']!r}\n{grammar}"
                        )
                if "walk" in record:
                    choices = random.Random(number)
                    arguments = engine, compiled, choices, record["wishes"], record["ends"]
                    texts = [walk(*arguments) for _ in range(WALKS)]
                    texts = [text for text in texts if text is not None]
                    walked = {"walk": record["walk"], "notation": notation, "texts": texts}
                    walks.write(json.dumps(walked) + "\n")
                    tally[f"{notation}: written"] += len(texts)
    print(dict(tally))


main(sys.argv[1])
