"""Empty modules in place of packages that need a GPU or are large, so that published code that imports them can run."""

from __future__ import annotations

import abc
import importlib.abc
import importlib.machinery
import sys
import types
from collections.abc import Iterable, Iterator, Sequence
from typing import Any, ClassVar

ROOTS = (
    "IPython",
    "PIL",
    "aiohttp",
    "cachetools",
    "cpuinfo",
    "huggingface_hub",
    "ijson",
    "llguidance",
    "mistral_common",
    "model_hosting_container_standards",
    "openai_harmony",
    "pybase64",
    "requests",
    "safetensors",
    "tokenizers",
    "torch",
    "tqdm",
    "transformers",
    "triton",
    "urllib3",
    # vLLM's operators, which are registered in torch.
    "vllm.ir",
    "uvloop",
    "watchfiles",
    "zmq",
)
"""The packages and modules that are empty. Everything else is real."""


class _Class(abc.ABCMeta):
    """A class that has every attribute, and is a decorator."""

    def __getattr__(cls, name: str) -> Any:
        if name == "__class_validators__":
            return []
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything

    def __call__(cls, *arguments: Any, **options: Any) -> Any:
        if len(arguments) == 1 and not options and callable(arguments[0]):
            return arguments[0]
        return super().__call__()

    def __or__(cls, other: Any) -> Any:
        return cls

    def __ror__(cls, other: Any) -> Any:
        return cls

    def __getitem__(cls, key: Any) -> Any:
        return cls


class Anything(metaclass=_Class):
    """A value that has every attribute, and takes part in what modules compute when they are imported."""

    @classmethod
    def __get_pydantic_core_schema__(cls, source: Any, handler: Any) -> Any:
        from pydantic_core import core_schema

        return core_schema.any_schema()

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything

    def __call__(self, *arguments: Any, **options: Any) -> Any:
        return arguments[0] if arguments and callable(arguments[0]) else self

    def __mro_entries__(self, bases: Any) -> tuple[()]:
        return ()

    def __add__(self, other: Any) -> Any:
        return other

    __radd__ = __add__

    def __or__(self, other: Any) -> Any:
        return self

    __ror__ = __mul__ = __rmul__ = __sub__ = __rsub__ = __truediv__ = __floordiv__ = __getitem__ = __or__

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Anything)

    def __hash__(self) -> int:
        return 0

    def __bool__(self) -> bool:
        return False

    __lt__ = __gt__ = __ge__ = lambda self, other: False

    def __len__(self) -> int:
        return 0

    __int__ = __index__ = __len__

    def __float__(self) -> float:
        return 0.0

    def __iter__(self) -> Iterator[Any]:
        return iter(())

    def __enter__(self) -> Any:
        return self

    def __exit__(self, *error: Any) -> None:
        pass


class _Module(types.ModuleType):
    __version__ = "0.0.0"
    __path__: ClassVar[list[str]] = []

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Anything


class _Long:
    min, max = -(2**63), 2**63 - 1


class _Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    def __init__(self, roots: Iterable[str]) -> None:
        self.roots = frozenset(roots)

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: types.ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        parts = fullname.split(".")
        if not any(".".join(parts[:end]) in self.roots for end in (1, 2)):
            return None
        return importlib.machinery.ModuleSpec(fullname, self, is_package=True)

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> types.ModuleType:
        return _Module(spec.name)

    def exec_module(self, module: types.ModuleType) -> None:
        if module.__name__ == "torch":
            vars(module)["iinfo"] = lambda kind: _Long


def install(roots: Iterable[str] = ROOTS) -> None:
    """Makes these packages empty."""
    sys.meta_path.insert(0, _Finder(roots))
