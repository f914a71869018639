"""Converts what users give for operands to expressions: numbers and arrays to constants, several results to tuples."""

from __future__ import annotations

import math
from numbers import Number
from typing import Any

from headrace import _arguments, _core, _node, _public
from headrace._numpy import np, numpy_dtype

__all__ = ["TupleWrapper", "const"]

_NARROW = {"float64": "float32", "int64": "int32"}


class TupleWrapper:
    """An expression that gives a tuple of a known number of fields: indexable, iterable.

    Parameters
    ----------
    tuple_value : RelayExpr
        The expression.
    size : int
        How many fields its value has.
    """

    def __init__(self, tuple_value: Any, size: int) -> None:
        self.tuple_value = tuple_value
        self.size = size

    def astuple(self) -> Any:
        """The expression."""
        return self.tuple_value

    def asobject(self) -> Any:
        """The expression, as C++ takes it."""
        return self.tuple_value

    def astext(self) -> str:
        """The text form of the expression."""
        return self.tuple_value.astext()

    def __getitem__(self, index: int) -> Any:
        if not -self.size <= index < self.size:
            raise IndexError(f"index {index} is out of range for a tuple of {self.size} fields")
        return _node.class_of("relay.TupleGetItem")(self.tuple_value, index % self.size)

    def __len__(self) -> int:
        return self.size

    def __iter__(self) -> Any:
        return iter([self[i] for i in range(self.size)])

    def __repr__(self) -> str:
        return f"TupleWrapper({self.tuple_value!r}, {self.size})"


def _known_type(expr: Any) -> Any:
    """The type of a tensor that is not a constant, as far as it is known without inference."""
    found = expr.checked_type_
    if found is None and expr.type_key == "relay.Var":
        found = expr.type_annotation
    return found if found is not None and found.type_key == "relay.TensorType" else None


def dtype_of(expr: Any) -> str | None:
    """The dtype of a tensor, as far as it is known without inference."""
    if expr.type_key == "relay.Constant":
        return expr.data.dtype
    found = _known_type(expr)
    return None if found is None else found.dtype


def shape_of(expr: Any) -> tuple[int | None, ...] | None:
    """The sizes of a tensor, None for each that is not a number; None where the type is not known without inference."""
    if expr.type_key == "relay.Constant":
        return expr.data.shape
    found = _known_type(expr)
    return None if found is None else tuple(int(d) if d.type_key == "ir.IntImm" else None for d in found.shape)


def const(value: Any, dtype: str | None = None, span: Any = None) -> Any:
    """A constant.

    Parameters
    ----------
    value : bool, int, float, list, numpy.ndarray or NDArray
        The tensor; an array is copied.
    dtype : str or TensorType, optional
        Its dtype, or a type that has it. Without it, numbers, lists and arrays of float64 and int64 are float32 and
        int32, as in Relay; an NDArray keeps its own.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Constant

    Raises
    ------
    UserError
        For what is not a tensor, and numbers that int32 or float32 does not hold where no dtype is given.
    """
    if isinstance(value, _core.NDArray):
        array = value.numpy()
    elif isinstance(value, (bool, int, float, list, tuple, np.ndarray, np.generic)):
        array = np.asarray(value)
        if dtype is None:
            array = _narrowed(array)
    else:
        raise _core.UserError(f"const: expected a number, a list or an array, got {type(value).__name__}")
    return _node.class_of("relay.Constant")(_core.array(_with_dtype(array, dtype), "value"), span=span)


def _narrowed(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.int64 and array.size:
        limits = np.iinfo(np.int32)
        for number in (array.min(), array.max()):
            if not limits.min <= number <= limits.max:
                raise _core.UserError(f'const: {number} is not an int32, which integers are; give dtype="int64"')
    if array.dtype == np.float64 and np.any(np.isfinite(array) & (np.abs(array) > np.finfo(np.float32).max)):
        raise _core.UserError('const: a value is too large for float32, which floats are; give dtype="float64"')
    return array.astype(_NARROW.get(array.dtype.name, array.dtype), copy=False)


def _numpy_dtype(dtype: Any, what: str) -> np.dtype:
    if isinstance(dtype, _node.class_of("relay.TensorType")):
        dtype = str(dtype.dtype)
    if not isinstance(dtype, (str, type, np.dtype)):
        raise _core.UserError(f"{what}: dtype: expected a str, got {_arguments.kind(dtype)}")
    try:
        return numpy_dtype(dtype) if isinstance(dtype, str) else np.dtype(dtype)
    except TypeError as error:
        raise _core.UserError(f"{what}: {error}") from None


def _with_dtype(array: np.ndarray, dtype: str | None) -> np.ndarray:
    target = None if dtype is None else _numpy_dtype(dtype, "const")
    if target is not None and target.kind in "iu" and array.dtype.kind in "iuf" and array.size:
        limits = np.iinfo(target)
        for number in (array.min(), array.max()):
            if not limits.min <= np.trunc(number) <= limits.max:
                raise _core.UserError(f"const: {number} does not fit {target.name} ({limits.min} to {limits.max})")
    try:
        return np.array(array, dtype=target, copy=True)
    except (OverflowError, TypeError) as error:
        raise _core.UserError(f"const: {error}") from None


def is_number(value: Any) -> bool:
    """Whether a value is a number of Python or of numpy."""
    return isinstance(value, (Number, np.generic)) and not isinstance(value, (str, bytes))


def is_array(value: Any) -> bool:
    """Whether a value is what constants are made of, and no number."""
    return isinstance(value, (list, np.ndarray, _core.NDArray))


def _holds(dtype: np.dtype, number: Any) -> bool:
    """Whether a dtype has the number; a float dtype may round it."""
    if dtype.kind in "biu":
        least, most = (0, 1) if dtype.kind == "b" else (np.iinfo(dtype).min, np.iinfo(dtype).max)
        return least <= number <= most and int(number) == number
    try:
        wide = float(number)
    except OverflowError:
        return False
    with np.errstate(over="ignore"):
        return not math.isfinite(wide) or math.isfinite(float(np.asarray(wide).astype(dtype)))


def number_as(value: Any, dtype: Any, what: str, is_beside: bool = False) -> Any:
    """A constant of a number that is taken for an operand; UserError where the dtype does not hold it.

    `relay.const(0.5, "int32")` cuts, since it says so; here the dtype is another operand's or the op's.
    """
    number = value.item() if isinstance(value, np.generic) else value
    if not isinstance(number, (int, float)):
        raise _core.UserError(f"{what}: expected an expression, got {_arguments.kind(value)}")
    target = _numpy_dtype(dtype, what)
    if _holds(target, number):
        return const(number, dtype)
    if not is_beside:
        raise _core.UserError(f"{what}: {number} is not of {target.name}; give a number that {target.name} holds")
    # A float is not cast to an integer, which would cut the other operand's fractions.
    is_integral = isinstance(number, int) and target.kind in "biu"
    wider = ["int32", "int64", "float32", "float64"][0 if is_integral else 2 :]
    fitting = next((name for name in wider if _holds(np.dtype(name), number)), None)
    advice = f", as in x.astype('{fitting}')" if fitting else " to a dtype that holds it"
    raise _core.UserError(f"{what}: {number} beside {target.name}: cast the other operand{advice}")


def operand(value: Any, what: str, dtype: Any = None, beside: str | None = None) -> Any:
    """Converts the value that is given for an operand to an expression.

    Parameters
    ----------
    value : RelayExpr, number, list, numpy.ndarray or NDArray
        An array is a constant, as `const` makes it, but keeps the dtype that the operand beside it has too.
    what : str
        The op and the operand, for messages.
    dtype : str, optional
        The dtype of a number, where the op requires one.
    beside : str, optional
        The dtype of the other operand, which a number gets when `dtype` is not given.

    Returns
    -------
    RelayExpr

    Raises
    ------
    UserError
        For a number that its dtype does not hold, and for what is none of these.
    """
    if dtype is not None and isinstance(value, np.ndarray) and value.ndim == 0:
        value = value[()]
    if is_number(value):
        chosen = dtype or beside
        return const(value) if chosen is None else number_as(value, chosen, what, is_beside=not dtype)
    if isinstance(value, np.ndarray) and value.dtype.name == beside:
        return const(value, beside)
    if is_array(value):
        return const(value)
    if not isinstance(value, (TupleWrapper, _node.class_of("relay.Expr"))):
        raise _core.UserError(f"{what}: expected an expression, got {_arguments.kind(value)}")
    return value


_node.converter("relay.Expr", lambda value: value.asobject() if isinstance(value, TupleWrapper) else value)
_public.publish(__name__, "headrace.relay")
