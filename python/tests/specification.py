"""The examples of the specification."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

import plaincall as pc

ROOT = Path(__file__).parents[2]
TOPICS = ("block", "common", "emoji", "limits")


def examples(operation: str) -> list[Any]:
    """Returns the examples of the specification with this operation."""
    topics = [json.loads((ROOT / f"conformance/{topic}.json").read_text("utf-8")) for topic in TOPICS]
    cases = [case for topic in topics for case in topic["cases"] if case["operation"] == operation]
    return [pytest.param(case, id=case["id"]) for case in cases]


def dialect_of(options: dict[str, Any]) -> pc.Dialect:
    """Returns the dialect of an example."""
    options = dict(options)
    syntax = options.pop("syntax")
    if "anywhere" in options:
        options["markers_anywhere"] = options.pop("anywhere")
    for name in ("reasoning", "leading_reasoning"):
        if name in options:
            options[name] = tuple(options[name])
    dialect: pc.Dialect = getattr(pc.Dialect, syntax)(**options)
    return dialect
