"""Scalar expressions and loop programs."""

from __future__ import annotations

from typing import Any

from headrace import _node, ir

_node.constructor("tir.Var", "name_hint dtype", "A scalar variable, such as a symbolic dimension.")
_node.default("tir.Var", dtype="int64")

for _key in _node.all_keys("tir"):
    globals()[_key.rpartition(".")[2]] = _node.class_of(_key)
for _key in ("IntImm", "FloatImm", "StringImm", "Any", "PrimExpr"):
    globals()[_key] = _node.class_of(f"ir.{_key}")

Var = _node.class_of("tir.Var")


def var(name: str, dtype: str = "int64") -> Any:
    """A scalar variable, such as a symbolic dimension.

    Parameters
    ----------
    name : str
        What it is printed as.
    dtype : str
        Of dimensions, int64.

    Returns
    -------
    Var
    """
    return Var(name, dtype)


def const(value: Any, dtype: str = "int64") -> Any:
    """A constant.

    Parameters
    ----------
    value : int or float
        The number.
    dtype : str
        An integer's or a float's.

    Returns
    -------
    IntImm or FloatImm
    """
    return (ir.FloatImm if "float" in dtype else ir.IntImm)(dtype, value)
