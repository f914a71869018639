"""The runtime: artifacts, modules, functions, containers."""

from __future__ import annotations

from os import PathLike

from headrace import _arguments, _core
from headrace._container import ADT, Array, Map
from headrace._core import Module, NDArray, PackedFunc, cpu
from headrace._ffi import convert
from headrace._node import Object

__all__ = ["ADT", "Array", "Map", "Module", "NDArray", "Object", "PackedFunc", "convert", "cpu", "load_module"]


def load_module(path: str | PathLike[str], fmt: str | None = None) -> Module:
    """Opens an artifact. lib["default"](headrace.cpu()) makes a graph executor.

    Parameters
    ----------
    path : path
        The file.
    fmt : str, optional
        "so", the one format there is.

    Returns
    -------
    Module
    """
    if fmt not in (None, "", "so"):
        raise _core.UserError(f"load_module: there is no format '{fmt}'; artifacts are so")
    return _core.load_module(_arguments.path(path, "path"))
