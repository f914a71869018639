"""Counting the multiplications of a program."""

from __future__ import annotations

import math
from typing import Any

from headrace import _arguments, _core, _public
from headrace._ffi import api
from headrace.ir import IRModule
from headrace.relay import _classes as nodes

__all__ = ["get_total_mac_number"]

_PRODUCTS = ("nn.dense", "nn.matmul", "nn.batch_matmul")
_CONVOLUTIONS = tuple(f"nn.conv{rank}d{kind}" for rank in (1, 2, 3) for kind in ("", "_transpose"))


def get_total_mac_number(expr: Any) -> int:
    """How many multiplications and additions convolutions and products of matrices take.

    Parameters
    ----------
    expr : RelayExpr
        The program; it is typed where it has no types yet.

    Returns
    -------
    int
        Of `nn.conv1d` to `nn.conv3d`, their transposes, `nn.dense`, `nn.matmul` and `nn.batch_matmul`; other ops count
        nothing. Of a transpose as Relay counts: each element of the result by each weight of its channel.

    Raises
    ------
    UserError
        When a dimension is not a number yet.
    """
    expr = _arguments.expression(expr, "get_total_mac_number: expr")
    if expr.checked_type_ is None:
        expr = api("relay.analysis.infer_type_expr")(expr, IRModule())
    total = 0
    for call in api("relay.analysis.post_order")(expr):
        name = call.op.name if isinstance(call, nodes.Call) and isinstance(call.op, nodes.Op) else ""
        if name in _PRODUCTS:
            is_turned = name != "nn.dense" and call.attrs.transpose_a
            total += math.prod(_shape(call)) * _shape(call.args[0])[-2 if is_turned else -1]
        elif name in _CONVOLUTIONS:
            total += _of_convolution(call)
    return total


def _of_convolution(call: Any) -> int:
    shape = _shape(call)
    channels = _channels(shape, call.attrs.out_layout or call.attrs.data_layout)
    return math.prod(shape) // channels * math.prod(_shape(call.args[1])) if channels else 0


def _channels(shape: tuple[int, ...], layout: str) -> int:
    letters = [letter for letter in layout if letter.isalpha()]
    return math.prod(size for size, letter in zip(shape, letters, strict=True) if letter.upper() == "C")


def _shape(expr: Any) -> tuple[int, ...]:
    try:
        return expr.checked_type.concrete_shape
    except _core.UserError as error:
        raise _core.UserError(f"get_total_mac_number: {error}") from None


_public.publish(__name__, "headrace.relay.analysis")
