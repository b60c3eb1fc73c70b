"""The command, if there is one."""

from __future__ import annotations

import os

import pytest


@pytest.fixture(scope="session")
def command() -> str:
    """The `plaincall` command of the same sources. `cargo xtask python` sets it."""
    path = os.environ.get("PLAINCALL")
    if path is None:
        pytest.skip("PLAINCALL does not name the command")
    return path
