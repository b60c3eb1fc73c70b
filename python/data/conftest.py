"""The tests of tables use what those of the package use."""

import importlib.util
import sys
from pathlib import Path

TESTS = Path(__file__).parents[1] / "tests"
sys.path.insert(0, str(TESTS))
# Its `conftest` has the same name as this module.
spec = importlib.util.spec_from_file_location("specification", TESTS / "conftest.py")
assert spec is not None and spec.loader is not None
sys.modules["specification"] = module = importlib.util.module_from_spec(spec)
spec.loader.exec_module(module)
