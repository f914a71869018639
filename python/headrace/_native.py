"""Chooses the extension module that the package stands on, before any other of its modules is imported.

Where the compiler is installed that is `headrace._core`. The wheel headrace-runtime alone has only `headrace._runtime`,
with the same names for what loads and runs; it then takes the place of `_core`, and a name that only the compiler has
raises MissingError.
"""

from __future__ import annotations

import importlib
import sys
import types
from typing import Any


def _chosen() -> types.ModuleType:
    try:
        return importlib.import_module("headrace._core")
    except ModuleNotFoundError as error:
        if error.name != "headrace._core":
            raise
    runtime = importlib.import_module("headrace._runtime")
    runtime.__getattr__ = _refuse
    sys.modules["headrace._core"] = runtime
    return runtime


def _refuse(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module 'headrace._runtime' has no attribute '{name}'")
    raise missing(f"'{name}'")


def missing(what: str) -> Exception:
    """The error for something that comes with the compiler."""
    text = f"{what}: this is the runtime alone, which loads and runs compiled models; the compiler comes with"
    return module.MissingError(f"{text} pip install headrace=={module.__version__}")


module = _chosen()
is_runtime_alone = module.__name__ == "headrace._runtime"
