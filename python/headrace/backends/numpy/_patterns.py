"""Patterns that are computed as one: dense layers with a bias, and with relu after it."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.backends.numpy._ops import FLOATS, Arrays, Attrs, Op, tensor_types
from headrace.relay.dataflow_pattern import is_op, wildcard


def table() -> list[tuple[Any, ...]]:
    """The patterns, the longest first."""
    dense = is_op("nn.dense")(wildcard(), wildcard())
    biased = is_op("nn.bias_add")(dense, wildcard())
    return [
        ("numpy.dense_bias_relu", is_op("nn.relu")(biased), lambda relu: _takes(relu.args[0])),
        ("numpy.dense_bias", biased, _takes),
    ]


def refusal_of(function: Any) -> str:
    """Why a function is not one of the patterns applied to its parameters, or "". A program may write any body."""
    name = str(function.attrs["Composite"]) if function.attrs and "Composite" in function.attrs else ""
    for known, pattern, takes in table():
        if known == name:
            is_one = pattern.match(function.body) and takes(function.body)
            is_plain = is_one and set(operands_of(function.body)) <= set(function.params)
            return "" if is_plain else f"the function '{name}' does not compute what this backend means by the name"
    return f"the function '{name}' is not a pattern of this backend" if name else "the region calls a function"


def operands_of(body: Any) -> list[Any]:
    """The input, the weight and the bias in the body of a function that one of the patterns made."""
    biased = body.args[0] if body.op.name == "nn.relu" else body
    dense, bias = biased.args
    return [*dense.args, bias]


def _takes(biased: Any) -> bool:
    """Whether the bias is that of the last axis, in a dtype that matmul computes."""
    rank = len(biased.checked_type.shape)
    types = [one for arg in [*biased.args[0].args, biased] for one in tensor_types(arg.checked_type)]
    is_known = all(dtype == types[0][0] and -1 not in shape for dtype, shape in types)
    return is_known and types[0][0] in FLOATS and biased.attrs.axis in (-1, rank - 1)


def _dense_bias(arrays: Arrays, attrs: Attrs) -> np.ndarray:
    x, weight, bias = arrays
    result = np.matmul(x, weight.T)
    result += bias
    return result


def _dense_bias_relu(arrays: Arrays, attrs: Attrs) -> np.ndarray:
    result = _dense_bias(arrays, attrs)
    return np.maximum(result, 0, out=result)


COMPOSITES: dict[str, Op] = {"numpy.dense_bias": Op(_dense_bias), "numpy.dense_bias_relu": Op(_dense_bias_relu)}
