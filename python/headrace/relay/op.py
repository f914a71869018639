"""Operators: `op.get(name)`, and the functions of ops as attributes."""

from __future__ import annotations

from typing import Any

from headrace._ffi import api
from headrace.ir import Op
from headrace.relay import _op_functions as _ops

get = Op.get


def register_legalize(op_name: str, legalize_op: Any = None, level: int = 10) -> Any:
    """Sets what `relay.transform.Legalize` makes of calls of an op.

    Parameters
    ----------
    op_name : str
        The op.
    legalize_op : function, optional
        Of (attrs, inputs, types): attributes, arguments, and the types of the arguments and of the result. It gives an
        expression, or None to leave the call alone. Without it, a decorator is returned.
    level : int
        Taken for the sake of old programs; the last one that is set counts.

    Returns
    -------
    The function, or the decorator
    """

    def decorate(function: Any) -> Any:
        api("relay.op.RegisterLegalize")(op_name, function, "FTVMLegalize")
        return function

    return decorate if legalize_op is None else decorate(legalize_op)


def reset_legalize(op_name: str) -> None:
    """Takes away what `register_legalize` set.

    Parameters
    ----------
    op_name : str
        The op.
    """
    api("relay.op.RegisterLegalize")(op_name, None, "FTVMLegalize")


def __getattr__(name: str) -> Any:
    function = None if name.startswith("__") else _ops.find_function("", name)
    if function is None:
        from headrace import relay

        return getattr(relay, name)
    return function
