"""Constructors of scalars by their dtypes: `int32(3)`."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Number
from typing import Any

from headrace import _node, _public
from headrace._prim_expr import number, to_expr

_DTYPES = (
    *(f"{kind}{bits}" for kind in ("int", "uint") for bits in (8, 16, 32, 64)),
    *("float16", "bfloat16", "float32", "float64", "bool"),
)


def _make(dtype: str) -> Callable[..., Any]:
    def function(expr: Any = None, is_size_var: bool = False) -> Any:
        if expr is None:
            return _node.class_of("tir.Var")("v", dtype)
        if isinstance(expr, Number):
            return number(expr, dtype)
        return to_expr(expr).astype(dtype)

    function.__name__ = function.__qualname__ = dtype
    function.__doc__ = f"""A scalar of dtype {dtype}.

    Parameters
    ----------
    expr : PrimExpr or number, optional
        A number that {dtype} holds, for a constant; or an expression, which is cast. Without it: a new variable.
    is_size_var : bool
        Accepted for the sake of old programs: a size is a variable like others.

    Returns
    -------
    PrimExpr

    Raises
    ------
    UserError
        For a number that {dtype} does not hold, and for what is not a scalar.
    """
    return function


__all__ = []
for _dtype in _DTYPES:
    globals()[_dtype] = _make(_dtype)
    # Not from `import *`, where it would hide Python's.
    __all__ += [] if _dtype == "bool" else [_dtype]
globals()["bool"].__module__ = "headrace.tir"

_public.publish(__name__, "headrace.tir")
