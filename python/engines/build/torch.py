"""Stands in for torch while vLLM's source package is installed without kernels: its `setup.py` imports torch."""

import sys
import types

__path__: list[str] = []
__version__ = "0"


class version:
    cuda = hip = xpu = None


extension = types.ModuleType("torch.utils.cpp_extension")
vars(extension).update(CUDA_HOME=None, ROCM_HOME=None)
sys.modules["torch.utils"] = types.ModuleType("torch.utils")
sys.modules["torch.utils.cpp_extension"] = extension
