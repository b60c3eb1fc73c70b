"""The examples of the pages about parsing and tools run."""

from __future__ import annotations

import pytest
from examples import run_examples


@pytest.mark.parametrize("page", ["python/README.md", "docs/python.md", "docs/python-tools.md"])
def test_examples_run(page: str) -> None:
    assert run_examples(page) > 0
