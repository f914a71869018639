"""Tensors that are computed element by element: placeholders, computes, reductions, and the forms made of them."""

from __future__ import annotations

import inspect
import weakref
from collections.abc import Callable, Iterable, Mapping, Sequence
from numbers import Integral
from typing import Any

from headrace import _core, _node, _public
from headrace._ffi import api
from headrace._prim_expr import _Operators, binary, is_expr, to_expr, to_exprs

__all__ = [
    "IterVar",
    "Reduction",
    "Tensor",
    "compute",
    "compute_form",
    "create_prim_func",
    "max",
    "min",
    "placeholder",
    "prod",
    "reduce_axis",
    "sum",
]

_NONE, _SUM, _PROD, _MAX, _MIN = range(5)  # as tir::Combiner


class IterVar(_Operators):
    """An axis that a reduction runs over; stands for its index. `reduce_axis` makes one.

    Parameters
    ----------
    var : Var
        Counts from 0.
    begin, extent : PrimExpr
        The index is `begin + var`, and `var` ends before `extent`.
    """

    def __init__(self, var: Any, begin: Any, extent: Any) -> None:
        self.var = var
        self.begin = begin
        self.extent = extent

    def asobject(self) -> Any:
        """The index."""
        return self.begin + self.var

    def __repr__(self) -> str:
        return f"IterVar({self.var}, {self.begin}, {self.extent})"


class Reduction:
    """The result of `sum`, `prod`, `max` or `min` over axes. It is the whole value of a `compute`, never an operand.

    Parameters
    ----------
    combiner : int
        As in `ComputeStage`.
    value : PrimExpr
        What is combined.
    axes : sequence of IterVar
        What it is combined over.
    """

    no_scalar = "a reduction is the whole value of a compute; compute it first, and read its tensor in the next one"

    def __init__(self, combiner: int, value: Any, axes: Sequence[IterVar]) -> None:
        self.combiner = combiner
        self.value = value
        self.axes = axes

    def _refuse(self, *_: Any) -> Any:
        raise _core.UserError(f"a Reduction is not a scalar expression: {self.no_scalar}")

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = __neg__ = _refuse
    __truediv__ = __rtruediv__ = __floordiv__ = __rfloordiv__ = __mod__ = __rmod__ = _refuse
    __lt__ = __le__ = __gt__ = __ge__ = __and__ = __rand__ = __or__ = __ror__ = _refuse


# Tensors by their buffers: what a load reads, and who computes that.
_tensors: weakref.WeakValueDictionary[Any, Tensor] = weakref.WeakValueDictionary()


class Tensor:
    """A tensor that is given (`placeholder`) or computed (`compute`). `x[i, j]` is an element, at any int64 indices.

    Parameters
    ----------
    buffer : Buffer
        Its name, dtype and shape.
    stage : ComputeStage, optional
        What computes it.
    reads : sequence of Tensor
        What that reads.
    """

    no_scalar = "index it, as in x[i, j]"

    def __init__(self, buffer: Any, stage: Any = None, reads: Sequence[Tensor] = ()) -> None:
        self.buffer = buffer
        self.stage = stage
        self.reads = tuple(reads)
        _tensors[buffer] = self

    @property
    def name(self) -> str:
        """The name in texts."""
        return self.buffer.name

    @property
    def dtype(self) -> str:
        """The dtype of the elements."""
        return self.buffer.dtype

    @property
    def shape(self) -> Any:
        """The dimensions, as PrimExprs."""
        return self.buffer.shape

    @property
    def ndim(self) -> int:
        """The number of dimensions."""
        return len(self.buffer.shape)

    def __getitem__(self, indices: Any) -> Any:
        given = indices if isinstance(indices, tuple) else (indices,)
        if len(given) != self.ndim:
            raise _core.UserError(f"'{self.name}' has {self.ndim} dimensions, but {len(given)} indices are given")
        return api("tir.MakeLoad")(self.buffer, [self._index(d, index) for d, index in enumerate(given)])

    def __call__(self, *indices: Any) -> Any:
        """An element, as `x[i, j]`."""
        return self[indices]

    def _index(self, dimension: int, value: Any) -> Any:
        if isinstance(value, slice):
            raise _core.UserError(f"'{self.name}': a slice is not an index; x[i, j] is one element")
        index = to_expr(value)
        extent = self.shape[dimension]
        if index.type_key == "ir.IntImm" and (
            index.value < 0 or (extent.type_key == "ir.IntImm" and index.value >= extent.value)
        ):
            raise _core.UserError(
                f"'{self.name}': the index {index} is outside dimension {dimension}, which has {extent} elements"
            )
        is_integer = "int" in index.dtype
        return index.astype("int64") if is_integer else index

    # An element past the end is an error of its own kind: iteration would not end.
    __iter__ = None

    def __repr__(self) -> str:
        return f"Tensor({self.name}, {list(self.shape)}, {self.dtype})"


def placeholder(shape: Any, dtype: str = "float32", name: str = "placeholder") -> Tensor:
    """A tensor that is given.

    Parameters
    ----------
    shape : sequence of int or PrimExpr
        Its dimensions.
    dtype : str
        The dtype of the elements.
    name : str
        The name in texts.

    Returns
    -------
    Tensor
    """
    return Tensor(_node.make("tir.Buffer", {"name": name, "dtype": dtype, "shape": _dims(shape), "strides": []}))


def _dims(shape: Any) -> list[Any]:
    if isinstance(shape, (str, bytes)) or not (is_expr(shape) or isinstance(shape, (Integral, Iterable))):
        raise _core.UserError(f"shape: expected dimensions, got {shape!r}")
    dims = [to_expr(dim) for dim in ([shape] if is_expr(shape) or isinstance(shape, Integral) else shape)]
    for dim in dims:
        if dim.dtype != "int64":
            raise _core.UserError(f"shape: the dimension {dim} is {dim.dtype}; dimensions are int64")
        if dim.type_key == "ir.Any" or (dim.type_key == "ir.IntImm" and dim.value < 0):
            raise _core.UserError(f"shape: {dim} is not a dimension here: give a number or a symbol, as tir.Var('n')")
    return dims


def reduce_axis(dom: Sequence[Any], name: str = "k") -> IterVar:
    """An axis to reduce over.

    Parameters
    ----------
    dom : pair of int or PrimExpr
        The first index, and the one after the last.
    name : str
        The name in texts.

    Returns
    -------
    IterVar
    """
    if isinstance(dom, (str, bytes)) or not isinstance(dom, Sequence) or len(dom) != 2:
        raise _core.UserError(f"dom: expected the pair (begin, end), got {dom!r}")
    begin, end = (to_expr(bound, "int64") for bound in dom)
    return IterVar(_var(name), begin, end - begin)


def _var(name: str) -> Any:
    return _node.make("tir.Var", {"name_hint": name, "dtype": "int64"})


def compute(
    shape: Any,
    fcompute: Callable[..., Any],
    name: str = "compute",
    tag: str = "",
    attrs: Mapping[str, Any] | None = None,
) -> Tensor:
    """A tensor from a function of its indices.

    Parameters
    ----------
    shape : sequence of int or PrimExpr
        Its dimensions.
    fcompute : function
        Called with as many indices as there are dimensions, or `lambda *i: ...`. It gives the element: a scalar
        expression, or a reduction by `sum`, `prod`, `max` or `min`.
    name : str
        The name in texts.
    tag, attrs
        Accepted for the sake of old programs: no schedule is chosen by them.

    Returns
    -------
    Tensor

    Raises
    ------
    UserError
        For a function of another number of indices, or one that gives no scalar expression.
    """
    dims = _dims(shape)
    axes = [_var(axis) for axis in _axis_names(fcompute, len(dims), name)]
    value = fcompute(*axes)
    reduction = value if isinstance(value, Reduction) else Reduction(_NONE, _element(value, name), ())
    value = reduction.value
    buffer = _node.make("tir.Buffer", {"name": name, "dtype": value.dtype, "shape": dims, "strides": []})
    fields = {"output": buffer, "axes": axes, "value": value}
    if reduction.combiner != _NONE:
        fields["combiner"] = reduction.combiner
        fields["init"] = api("tir.IdentityOf")(reduction.combiner, value.dtype)
        fields["reduce_axes"] = [axis.var for axis in reduction.axes]
        fields["reduce_extents"] = [axis.extent for axis in reduction.axes]
    reads = [tensor for read in api("tir.BuffersReadBy")(value) if (tensor := _tensors.get(read)) is not None]
    return Tensor(buffer, _node.make("tir.ComputeStage", fields), reads)


def _element(value: Any, name: str) -> Any:
    try:
        return to_expr(value)
    except _core.UserError as error:
        raise _core.UserError(f"fcompute of '{name}' gives no element: {error}") from None


def _axis_names(fcompute: Callable[..., Any], count: int, name: str) -> list[str]:
    if not callable(fcompute):
        raise _core.UserError(f"fcompute of '{name}': expected a function of {count} indices, got {fcompute!r}")
    parameters = inspect.signature(fcompute).parameters.values()
    names = [p.name for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    star = next((p.name for p in parameters if p.kind is p.VAR_POSITIONAL), None)
    if len(names) > count or (len(names) < count and star is None):
        raise _core.UserError(f"fcompute of '{name}' takes {len(names)} indices; the shape has {count} dimensions")
    return names + [f"{star}{i}" for i in range(len(names), count)]


def _reduction(combiner: int, expr: Any, axis: Any) -> Reduction:
    axes = axis if isinstance(axis, (list, tuple)) else [axis]
    for item in axes:
        if not isinstance(item, IterVar):
            raise _core.UserError(f"axis: expected what reduce_axis gives, or a list of it, got {item!r}")
    if not axes:
        raise _core.UserError("axis: there is no axis to reduce over")
    return Reduction(combiner, to_expr(expr), tuple(axes))


def sum(expr: Any, axis: Any) -> Reduction:
    """The sum of an expression over axes; of no elements, 0.

    Parameters
    ----------
    expr : PrimExpr
        What is added, in its dtype.
    axis : IterVar or list of IterVar
        What `reduce_axis` gave.

    Returns
    -------
    Reduction
    """
    return _reduction(_SUM, expr, axis)


def prod(expr: Any, axis: Any) -> Reduction:
    """The product of an expression over axes; of no elements, 1.

    Parameters
    ----------
    expr : PrimExpr
        What is multiplied, in its dtype.
    axis : IterVar or list of IterVar
        What `reduce_axis` gave.

    Returns
    -------
    Reduction
    """
    return _reduction(_PROD, expr, axis)


def max(a: Any, b: Any = None, *, axis: Any = None) -> Any:
    """The larger of two values; or, with axes, the largest value of an expression over them.

    Parameters
    ----------
    a : PrimExpr or number
        A value.
    b : PrimExpr or number, or IterVar or list of IterVar
        The other value; or the axes, as `axis`.
    axis : IterVar or list of IterVar, optional
        What `reduce_axis` gave. The largest of no elements is the lowest value of the dtype.

    Returns
    -------
    PrimExpr or Reduction
    """
    return _choice("max", _MAX, a, b, axis)


def min(a: Any, b: Any = None, *, axis: Any = None) -> Any:
    """The smaller of two values; or, with axes, the smallest value of an expression over them.

    Parameters
    ----------
    a : PrimExpr or number
        A value.
    b : PrimExpr or number, or IterVar or list of IterVar
        The other value; or the axes, as `axis`.
    axis : IterVar or list of IterVar, optional
        What `reduce_axis` gave. The smallest of no elements is the highest value of the dtype.

    Returns
    -------
    PrimExpr or Reduction
    """
    return _choice("min", _MIN, a, b, axis)


def _choice(op: str, combiner: int, a: Any, b: Any, axis: Any) -> Any:
    if (b is None) == (axis is None):
        raise _core.UserError(f"tir.{op} takes two values, or one and axis=")
    if axis is None and not isinstance(b, (IterVar, list, tuple)):
        return binary(op, *to_exprs(a, b))
    return _reduction(combiner, a, b if axis is None else axis)


def compute_form(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> Any:
    """The compute form that gives `outputs` from `inputs`, with the tensors in between.

    Parameters
    ----------
    inputs : sequence of Tensor
        What is given.
    outputs : sequence of Tensor
        What is computed.

    Returns
    -------
    Compute

    Raises
    ------
    UserError
        For a placeholder that is read and no input, and for what is not well-formed.
    """
    for what, tensors in (("inputs", inputs), ("outputs", outputs)):
        for tensor in tensors:
            if not isinstance(tensor, Tensor):
                raise _core.UserError(f"{what}: expected Tensors, got {tensor!r}")
    stages = [tensor.stage for tensor in _in_order(inputs, outputs)]
    buffers = {"inputs": [x.buffer for x in inputs], "outputs": [y.buffer for y in outputs]}
    form = _node.make("tir.Compute", {"stages": stages, **buffers})
    api("tir.VerifyCompute")(form)
    return form


def _in_order(inputs: Sequence[Tensor], outputs: Sequence[Tensor]) -> list[Tensor]:
    """The computed tensors that lead to `outputs`, each after what it reads."""
    order: list[Tensor] = []
    seen = set(inputs)
    stack = [(tensor, False) for tensor in reversed(outputs)]
    while stack:
        tensor, is_ready = stack.pop()
        if is_ready:
            order.append(tensor)
        elif tensor not in seen:
            seen.add(tensor)
            if tensor.stage is None:
                raise _core.UserError(f"the placeholder '{tensor.name}' is not one of the inputs")
            stack.append((tensor, True))
            stack.extend((read, False) for read in reversed(tensor.reads))
    return order


def create_prim_func(args: Sequence[Tensor], name: str = "main") -> Any:
    """A loop function of placeholders, then of the tensors computed from them, by the plainest loops.

    Parameters
    ----------
    args : sequence of Tensor
        Placeholders, which are its inputs, then the outputs.
    name : str
        Its name.

    Returns
    -------
    PrimFunc

    Raises
    ------
    UserError
        As `compute_form`; for a placeholder behind an output; for a tensor in between whose shape is symbolic.
    """
    inputs = [x for x in args if isinstance(x, Tensor) and x.stage is None]
    outputs = list(args[len(inputs) :])
    if list(args[: len(inputs)]) != inputs:
        raise _core.UserError("args: placeholders stand before the tensors that are computed")
    return api("tir.PlainLoops")(compute_form(inputs, outputs), name)


_public.publish(__name__, "headrace.tir")
