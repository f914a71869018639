"""Functions that cross between Python and C++, by name."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal, overload

from headrace import _core, _native, _public

__all__ = [
    "convert",
    "get_global_func",
    "list_global_func_names",
    "register_func",
]


# The functions of Python that register_func registered, by name, as they were given.
registered: dict[str, Callable[..., Any]] = {}


def register_func(
    func_name: str | Callable[..., Any], f: Callable[..., Any] | None = None, override: bool = False
) -> Any:
    """Registers a global function, which C++ and Python find by name.

    Parameters
    ----------
    func_name : str or function
        The name; or, as a bare decorator, the function, which gives its own name.
    f : function, optional
        The function; without it, a decorator is returned.
    override : bool
        Whether a function of that name may be replaced.

    Returns
    -------
    function
        `f`, or the decorator.

    Raises
    ------
    UserError
        When the name is taken and `override` is not set.
    """
    if callable(func_name):
        return register_func(func_name.__name__, func_name, override)
    if not isinstance(func_name, str):
        raise _core.UserError(f"func_name: expected a str, got {type(func_name).__name__}")

    def register(function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise _core.UserError(f"f: expected a function for '{func_name}', got {type(function).__name__}")
        _core.register_global(func_name, function, override)
        registered[func_name] = function
        return function

    return register if f is None else register(f)


@overload
def get_global_func(name: str, allow_missing: Literal[False] = False) -> _core.PackedFunc: ...
@overload
def get_global_func(name: str, allow_missing: bool) -> _core.PackedFunc | None: ...
def get_global_func(name: str, allow_missing: bool = False) -> _core.PackedFunc | None:
    """The global function of that name.

    Parameters
    ----------
    name : str
        Such as "relay._transform.FoldConstant".
    allow_missing : bool
        Give None, instead of an error, when there is none.

    Returns
    -------
    PackedFunc or None

    Raises
    ------
    UserError
        That names the function, when there is none.
    """
    if not isinstance(name, str):
        raise _core.UserError(f"name: expected a str, got {type(name).__name__}")
    found = _core.find_global(name)
    if found is None and not allow_missing:
        if _native.is_runtime_alone:
            raise _native.missing(f"there is no global function '{name}'")
        raise _core.UserError(f"there is no global function '{name}'")
    return found


def list_global_func_names() -> list[str]:
    """The names of all global functions.

    Returns
    -------
    list of str
        Sorted.
    """
    return sorted(_core.global_names())


def convert(value: Any) -> Any:
    """A Python value as C++ holds it: lists become Array, dicts Map, functions PackedFunc.

    Parameters
    ----------
    value : object
        The value.

    Returns
    -------
    object
    """
    if isinstance(value, (list, tuple)):
        return _core.make_array(value)
    if isinstance(value, dict):
        return _core.make_map(value)
    if callable(value) and not isinstance(value, (_core.PackedFunc, _core.Object)):
        return _core.PackedFunc(value)
    return value


def api(name: str) -> _core.PackedFunc:
    """A function that Headrace itself registers."""
    return get_global_func(name)


_public.publish(__name__, "headrace")
