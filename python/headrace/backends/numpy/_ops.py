"""The ops: for each, the dtypes that it takes, what a step keeps of its attributes, and how numpy computes it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

Arrays = Sequence[np.ndarray]
Attrs = dict[str, Any]

FLOATS = ("float32", "float64")
NUMBERS = (*FLOATS, "int32", "int64")
ALL = (*NUMBERS, "bool")


@dataclass(frozen=True)
class Op:
    """`compute(arrays, attrs)` gives the result; `attrs_of(call)` its attributes, as JSON holds them."""

    compute: Callable[[Arrays, Attrs], Any]
    dtypes: tuple[str, ...] = FLOATS
    attrs_of: Callable[[Any], Attrs] = lambda call: {}
    gives_bool: bool = False  # else the dtype of the last operand


def tensor_types(value_type: Any) -> list[tuple[str, tuple[int, ...]]]:
    """(dtype, shape) of each tensor of a value. A size that only a run knows is -1."""
    if hasattr(value_type, "fields"):
        return [one for field in value_type.fields for one in tensor_types(field)]
    return [(value_type.dtype, tuple(getattr(dim, "value", -1) for dim in value_type.shape))]


def verdict(call: Any) -> bool | str:
    """True, or why this backend does not compute the call."""
    op = OPS.get(call.op.name)
    if op is None:
        return "it is not an op of this backend"
    operands = [one for arg in call.args for one in tensor_types(arg.checked_type)]
    if not operands:
        return "it has no operands"
    for dtype, shape in [*operands, *tensor_types(call.checked_type)]:
        if dtype not in op.dtypes and not (dtype == "bool" and op.gives_bool):
            return f"it is computed in {', '.join(op.dtypes)} here, and not in {dtype}"
        if -1 in shape:
            return "it has a tensor whose shape only a run knows"
    if not op.gives_bool and tensor_types(call.checked_type)[0][0] != operands[-1][0]:
        return "it has a result of another dtype than its operands"
    return True


def _unary(compute: Callable[[np.ndarray], Any], dtypes: tuple[str, ...] = FLOATS) -> Op:
    return Op(lambda arrays, attrs: compute(arrays[0]), dtypes)


def _binary(compute: Callable[..., Any], dtypes: tuple[str, ...] = NUMBERS, gives_bool: bool = False) -> Op:
    return Op(lambda arrays, attrs: compute(arrays[0], arrays[1]), dtypes, gives_bool=gives_bool)


def _named(*names: str) -> Callable[[Any], Attrs]:
    """The attributes of these names as they are."""

    def attrs_of(call: Any) -> Attrs:
        values = {name: getattr(call.attrs, name) for name in names}
        return {name: list(value) if isinstance(value, tuple) else value for name, value in values.items()}

    return attrs_of


def _reduced_axes(call: Any) -> Attrs:
    rank = len(call.args[0].checked_type.shape)
    axis = call.attrs.axis
    every = set(range(rank))
    axes = every if axis is None else {one % rank for one in ([axis] if isinstance(axis, int) else axis)}
    if call.attrs.exclude:
        axes = every - axes
    return {"axes": sorted(axes), "keepdims": bool(call.attrs.keepdims)}


def _reduction(compute: Callable[..., Any], dtypes: tuple[str, ...] = NUMBERS, keeps_dtype: bool = False) -> Op:
    def reduce(arrays: Arrays, attrs: Attrs) -> Any:
        more = {"dtype": arrays[0].dtype} if keeps_dtype else {}
        return compute(arrays[0], axis=tuple(attrs["axes"]), keepdims=attrs["keepdims"], **more)

    return Op(reduce, dtypes, _reduced_axes)


def _result_shape(call: Any) -> Attrs:
    return {"shape": list(tensor_types(call.checked_type)[0][1])}


def _axes_in_order(call: Any) -> Attrs:
    rank = len(call.args[0].checked_type.shape)
    axes = call.attrs.axes
    return {"axes": [axis % rank for axis in axes] if axes else list(reversed(range(rank)))}


def _max(x: np.ndarray, axis: int) -> Any:
    return x.max(axis, keepdims=True, initial=-np.inf)  # also where the axis has no elements


def _softmax(x: np.ndarray, axis: int) -> np.ndarray:
    exps = np.exp(x - _max(x, axis))
    return exps / exps.sum(axis, keepdims=True)


def _log_softmax(x: np.ndarray, axis: int) -> np.ndarray:
    shifted = x - _max(x, axis)
    return shifted - np.log(np.exp(shifted).sum(axis, keepdims=True))


def _matmul(arrays: Arrays, attrs: Attrs) -> np.ndarray:
    a, b = arrays
    return np.matmul(
        np.swapaxes(a, -1, -2) if attrs["transpose_a"] else a, np.swapaxes(b, -1, -2) if attrs["transpose_b"] else b
    )


def _bias_add(arrays: Arrays, attrs: Attrs) -> np.ndarray:
    x, bias = arrays
    shape = [1] * x.ndim
    shape[attrs["axis"]] = bias.size
    return x + bias.reshape(shape)


_RESHAPE = Op(lambda arrays, attrs: arrays[0].reshape(attrs["shape"]), ALL, _result_shape)
_MATMUL = Op(_matmul, FLOATS, _named("transpose_a", "transpose_b"))

OPS: dict[str, Op] = {
    "abs": _unary(np.abs, NUMBERS),
    "ceil": _unary(np.ceil),
    "cos": _unary(np.cos),
    "exp": _unary(np.exp),
    "floor": _unary(np.floor),
    "log": _unary(np.log),
    "negative": _unary(np.negative, NUMBERS),
    "nn.relu": _unary(lambda x: np.maximum(x, x.dtype.type(0)), NUMBERS),
    "rsqrt": _unary(lambda x: 1 / np.sqrt(x)),
    "sigmoid": _unary(lambda x: 1 / (1 + np.exp(-x))),
    "sin": _unary(np.sin),
    "sqrt": _unary(np.sqrt),
    "tanh": _unary(np.tanh),
    "add": _binary(np.add),
    "divide": _binary(np.divide, FLOATS),
    "equal": _binary(np.equal, NUMBERS, gives_bool=True),
    "greater": _binary(np.greater, NUMBERS, gives_bool=True),
    "less": _binary(np.less, NUMBERS, gives_bool=True),
    "maximum": _binary(np.maximum),
    "minimum": _binary(np.minimum),
    "multiply": _binary(np.multiply),
    "power": _binary(np.power, FLOATS),
    "subtract": _binary(np.subtract),
    "nn.batch_matmul": _MATMUL,
    "nn.dense": Op(lambda arrays, attrs: np.matmul(arrays[0], arrays[1].T)),
    "nn.matmul": _MATMUL,
    "nn.bias_add": Op(_bias_add, NUMBERS, _named("axis")),
    "max": _reduction(np.max),
    "mean": _reduction(np.mean, FLOATS),
    "min": _reduction(np.min),
    "prod": _reduction(np.prod, keeps_dtype=True),
    "sum": _reduction(np.sum, keeps_dtype=True),
    "nn.log_softmax": Op(lambda arrays, attrs: _log_softmax(arrays[0], attrs["axis"]), FLOATS, _named("axis")),
    "nn.softmax": Op(lambda arrays, attrs: _softmax(arrays[0], attrs["axis"]), FLOATS, _named("axis")),
    "clip": Op(
        lambda arrays, attrs: np.clip(arrays[0], attrs["a_min"], attrs["a_max"]), FLOATS, _named("a_min", "a_max")
    ),
    "nn.leaky_relu": Op(
        lambda arrays, attrs: np.where(arrays[0] > 0, arrays[0], arrays[0] * arrays[0].dtype.type(attrs["alpha"])),
        FLOATS,
        _named("alpha"),
    ),
    "concatenate": Op(lambda arrays, attrs: np.concatenate(arrays, attrs["axis"]), ALL, _named("axis")),
    "expand_dims": _RESHAPE,
    "nn.batch_flatten": _RESHAPE,
    "reshape": _RESHAPE,
    "squeeze": _RESHAPE,
    "transpose": Op(lambda arrays, attrs: arrays[0].transpose(attrs["axes"]), ALL, _axes_in_order),
    "where": Op(lambda arrays, attrs: np.where(arrays[0], arrays[1], arrays[2]), ALL),
}
