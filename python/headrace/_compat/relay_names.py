"""Names in `headrace.relay` beside the table in `places`: functions of ops, and families of ops of users."""

from __future__ import annotations

import types
from typing import Any

from headrace.relay import _op_functions, _root_ops


def find(place: types.ModuleType, name: str) -> Any:
    """The function of an op without a family, which the module keeps, or the module of a family of ops of users."""
    if name not in _root_ops.__all__:
        return _op_functions.find(place, "", name)
    function = getattr(_root_ops, name)
    setattr(place, name, function)
    return function


def names() -> set[str]:
    """The names that `find` knows."""
    return _op_functions.names_within("")
