"""Errors of calls with keywords that a function does not take."""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable
from typing import ParamSpec, TypeVar

_Arguments = ParamSpec("_Arguments")
_Result = TypeVar("_Result")


def suggests_keywords(function: Callable[_Arguments, _Result]) -> Callable[_Arguments, _Result]:
    """Decorates a function: the TypeError of a call with an unknown keyword names the near one, or else all of them."""
    known = list(inspect.signature(function).parameters)

    @functools.wraps(function)
    def call(*args: _Arguments.args, **kwargs: _Arguments.kwargs) -> _Result:
        for name in kwargs:
            if name in known:
                continue
            near = difflib.get_close_matches(name, known, n=1)
            hint = f"did you mean {near[0]}=?" if near else f"it takes {', '.join(known)}"
            raise TypeError(f"{function.__name__}() got an unexpected keyword argument '{name}'; {hint}")
        return function(*args, **kwargs)

    return call
