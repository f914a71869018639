"""The runtime alone: artifacts, modules, functions."""

from __future__ import annotations

from os import PathLike

from headrace import _arguments, _core
from headrace._core import Module, PackedFunc, cpu

__all__ = ["Module", "PackedFunc", "cpu", "load_module"]


def load_module(path: str | PathLike[str]) -> Module:
    """Opens an artifact. lib["default"](headrace.cpu()) makes a graph executor."""
    return _core.load_module(_arguments.path(path, "path"))
