"""Makes tables of recorded replies: `python figures.py replies.jsonl [BASELINE ARM]`.

Intervals are bootstrapped over sets of tools, because questions about the same tools are not independent. With a baseline, arms are
compared with it by McNemar's exact test on the same questions.
"""

from __future__ import annotations

import json
import math
import random
import sys
from collections import defaultdict
from collections.abc import Callable
from pathlib import Path
from typing import Any

Line = dict[str, Any]
ROUNDS = 2000


def needs_call(line: Line) -> bool:
    return not line["id"].startswith("irrelevance")


def interval(lines: list[Line], value: Callable[[Line], bool]) -> str:
    """Returns the share in percent, and the interval that holds 95 % of the resampled shares."""
    sets: dict[str, list[bool]] = defaultdict(list)
    for line in lines:
        sets[line["tool_set"]].append(value(line))
    groups, source = list(sets.values()), random.Random(1)
    if not groups:
        return "–"
    shares = []
    for _ in range(ROUNDS):
        drawn = [result for group in source.choices(groups, k=len(groups)) for result in group]
        shares.append(100 * sum(drawn) / len(drawn))
    shares.sort()
    share = 100 * sum(map(sum, groups)) / sum(map(len, groups))
    return f"{share:.0f} ({shares[ROUNDS // 40]:.0f}–{shares[-ROUNDS // 40]:.0f})"


def mcnemar(lines: list[Line], baseline: list[Line]) -> str:
    """Returns the questions that only one of both solves, and the exact two-sided probability of that by chance."""
    other = {line["id"]: line.get("exact", False) for line in baseline}
    pairs = [(line.get("exact", False), other[line["id"]]) for line in lines if line["id"] in other]
    won, lost = sum(a and not b for a, b in pairs), sum(b and not a for a, b in pairs)
    tail = sum(math.comb(won + lost, k) for k in range(min(won, lost) + 1)) / 2 ** (won + lost)
    chance = min(1.0, 2 * tail)
    return f"+{won} −{lost}, p < 0.01" if chance < 0.01 else f"+{won} −{lost}, p = {chance:.2f}"


def show(replies: Path, baseline: str | None) -> None:
    arms: dict[str, list[Line]] = defaultdict(list)
    for text in replies.read_text("utf-8").splitlines():
        line = json.loads(text)
        arms[line["arm"]].append(line)
    head = ["arm", "questions", "exact calls, %", "right tool, %", "restraint, %", "ends, %", "leaks", "tokens in", "out", "s"]
    rows = [head + (["against " + baseline] if baseline else [])]
    for arm, lines in arms.items():
        calls, others = [line for line in lines if needs_call(line)], [line for line in lines if not needs_call(line)]
        # Some arms cannot express an example: such a question counts as a failure that takes no time.
        asked = [line for line in lines if "error" not in line]
        # Where a call is required, only calls without an end would count.
        others = [] if "required" in arm.split() else others
        mean = lambda get: sum(map(get, asked)) / max(len(asked), 1)  # noqa: E731
        row = [arm, str(len(lines)) if asked == lines else f"{len(asked)} of {len(lines)}"]
        row += [interval(calls, lambda line: line.get("exact", False)), interval(calls, lambda line: line.get("right_tool", False))]
        row += [interval(others, lambda line: line.get("exact", False)), interval(asked, lambda line: line["ends"])]
        row += [str(sum(line.get("leaks", False) for line in lines))]
        row += [f"{mean(lambda line: line.get('tokens', [0, 0])[at]):.0f}" for at in (0, 1)]
        row += [f"{mean(lambda line: line.get('seconds', 0)):.1f}"]
        rows.append(row + ([mcnemar(calls, [line for line in arms[baseline] if needs_call(line)])] if baseline else []))
    for at, row in enumerate(rows):
        print("| " + " | ".join(row) + " |")
        if at == 0:
            print("|" + " --- |" * len(row))


if __name__ == "__main__":
    show(Path(sys.argv[1]), sys.argv[2] if len(sys.argv) > 2 else None)
