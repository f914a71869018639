"""The runtime: artifacts, modules, functions, containers."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any

from headrace import _arguments, _core, _node, _public
from headrace._container import ADT, Array, Map, ShapeTuple, String
from headrace._core import Module, NDArray, PackedFunc
from headrace._ffi import api, convert
from headrace._node import Object
from headrace._params import (
    load_param_dict,
    load_param_dict_from_file,
    save_param_dict,
    save_param_dict_to_file,
)
from headrace.nd import cpu

__all__ = [
    "ADT",
    "Array",
    "DataType",
    "Map",
    "Module",
    "NDArray",
    "Object",
    "PackedFunc",
    "ShapeTuple",
    "String",
    "convert",
    "cpu",
    "create_module",
    "load_binary",
    "load_module",
    "load_param_dict",
    "load_param_dict_from_file",
    "save_param_dict",
    "save_param_dict_to_file",
    "seal_library",
    "system_lib",
]


class DataType(str):
    """A dtype by its name, with its size. Dtypes are str here, and so is this.

    Parameters
    ----------
    dtype : str
        Such as "float32".

    Raises
    ------
    UserError
        For what is not a dtype.
    """

    __slots__ = ()

    def __new__(cls, dtype: str) -> DataType:
        return super().__new__(cls, _node.make("relay.TensorType", {"shape": [], "dtype": dtype}).dtype)

    @property
    def bits(self) -> int:
        """The bits of an element that mean something: 1 of a bool."""
        scalar = self.partition("x")[0]
        return _BITS[scalar] if scalar in _BITS else int(scalar.lstrip("abcdefghijklmnopqrstuvwxyz"))

    @property
    def lanes(self) -> int:
        """How many numbers an element is: 8 of "float32x8", else 1."""
        return int(self.partition("x")[2] or 1)

    def itemsize(self) -> int:
        """The bytes of an element."""
        return (self.bits * self.lanes + 7) // 8


_BITS = {"bool": 1, "handle": 64, "void": 0}  # for dtypes whose names do not say it


def load_module(path: str | PathLike[str], fmt: str | None = None) -> Module:
    """Opens a module. Of an artifact, lib["default"](headrace.cpu()) makes a graph executor.

    Parameters
    ----------
    path : path
        The file.
    fmt : str, optional
        Its format; without it, the ending of the path, and "so" for a path that has none. "so" is an artifact, "o" an
        object of one; any other is loaded by the global function "runtime.module.loadfile_<fmt>", which gets path and
        format and gives a Module.

    Returns
    -------
    Module

    Raises
    ------
    UserError
        When nothing loads that format, or the file is not what it should be.
    """
    name = _arguments.path(path, "path")
    return _core.load_module(name, "" if fmt is None else _arguments.text(fmt, "fmt"))


def load_binary(type_key: str, data: bytes) -> Module:
    """The module that `Module.save_to_binary` gave the bytes of.

    Parameters
    ----------
    type_key : str
        Its kind, `Module.type_key`: "graph_executor_factory" for compiled modules; any other is loaded by the global
        function "runtime.module.loadbinary_<type_key>", which gets the bytes and gives a Module.
    data : bytes
        The bytes.

    Returns
    -------
    Module

    Raises
    ------
    UserError
        When nothing loads that kind, or the bytes are none of it.
    """
    if not isinstance(data, bytes):
        raise _core.UserError(f"data: expected bytes, got {_arguments.kind(data)}")
    return _core.load_binary(_arguments.text(type_key, "type_key"), data)


def create_module(type_key: str, functions: Mapping[str, Callable[..., Any]], binary: bytes | None = None) -> Module:
    """A module of functions.

    Parameters
    ----------
    type_key : str
        Its kind. What is saved of it is loaded by "runtime.module.loadbinary_<type_key>".
    functions : dict of str to function
        The functions by name.
    binary : bytes, optional
        What to save of it; without, it cannot be saved, and nothing that imports it.

    Returns
    -------
    Module
    """
    if not isinstance(functions, Mapping):
        raise _core.UserError(f"functions: expected a dict of functions by name, got {_arguments.kind(functions)}")
    packed = {}
    for name, function in functions.items():
        if not callable(function):
            raise _core.UserError(f"functions: expected a function for '{name}', got {_arguments.kind(function)}")
        packed[_arguments.text(name, "functions")] = convert(function)
    if binary is not None and not isinstance(binary, bytes):
        raise _core.UserError(f"binary: expected bytes, got {_arguments.kind(binary)}")
    return _core.create_module(_arguments.text(type_key, "type_key"), packed, binary)


def system_lib(symbol_prefix: str = "") -> Module:
    """The functions that code in this process registered (include/headrace/system_lib.h).

    Parameters
    ----------
    symbol_prefix : str
        What the names of those begin with that the module has, under the rest of their names.

    Returns
    -------
    Module
    """
    return _core.system_lib(_arguments.text(symbol_prefix, "symbol_prefix"))


def seal_library(library: str | PathLike[str], output: str | PathLike[str] | None = None) -> None:
    """Makes an artifact of a shared object that was linked from a saved "o": adds what `load_module` verifies.

    Parameters
    ----------
    library : path
        The shared object.
    output : path, optional
        The artifact; without it, `library` is replaced.

    Raises
    ------
    UserError
        When the file holds no whole artifact.
    """
    name = _arguments.path(library, "library")
    api("runtime.SealLibrary")(name, name if output is None else _arguments.path(output, "output"))


_public.facade(__name__, {}, unlisted="container module")
_public.settle(__name__)
