"""Adds operators to scalar expressions, and converts numbers to operands."""

from __future__ import annotations

import math
from numbers import Integral, Number
from typing import Any

from headrace import _core, _node
from headrace._ffi import api
from headrace._numpy import np
from headrace._text_form import text_of

_STRUCTURAL_EQUAL = api("ir.StructuralEqual")
_STRUCTURAL_HASH = api("ir.StructuralHash")
_LARGEST = {"float16": 65504.0, "bfloat16": 3.3895313892515355e38, "float32": 3.4028234663852886e38}
_COMPARED = "`==` and `!=` compare programs; write tir.EQ(a, b), tir.NE(a, b), or tir.const(True, 'bool')"


def is_expr(value: Any) -> bool:
    """Whether a value is a scalar expression, or stands for one."""
    return isinstance(value, _Operators)


def to_expr(value: Any, dtype: str | None = None) -> Any:
    """Converts a value to a scalar expression. A number gets `dtype`, the dtype of the operand beside it.

    Parameters
    ----------
    value : PrimExpr, IterVar or number
        The value.
    dtype : str, optional
        The dtype of a number; without it, an int is int64 and a float float32.

    Returns
    -------
    PrimExpr

    Raises
    ------
    UserError
        For a bool, which the comparison of two programs may have given; for a number that `dtype` does not hold; for
        what is not a scalar.
    """
    if is_expr(value):
        return value.asobject()
    if isinstance(value, bool):
        raise _core.UserError(f"{value} is not a scalar expression: {_COMPARED}")
    if isinstance(value, Integral) and (dtype is None or not _is_float(dtype)):
        return _integer(int(value), dtype or "int64")
    if isinstance(value, Number) and not isinstance(value, complex):
        if dtype is not None and not _is_float(dtype):
            raise _core.UserError(f"{value} beside {dtype}: cast the other operand, as in x.astype('float32')")
        return _node.class_of("ir.FloatImm")(dtype or "float32", float(value))
    hint = getattr(value, "no_scalar", "")
    raise _core.UserError(f"a {type(value).__name__} is not a scalar expression{hint and ': '}{hint}")


def to_exprs(*values: Any) -> list[Any]:
    """Several operands: numbers get the dtype of the first that is an expression."""
    known = next((value.asobject().dtype for value in values if is_expr(value)), None)
    if known is None and any(not isinstance(value, Integral) for value in values):
        known = "float32"
    return [to_expr(value, known) for value in values]


def binary(op: str, a: Any, b: Any) -> Any:
    """The expression of an operator, constants folded; `op` is its name in C++."""
    return api("tir.MakeBinary")(op, *to_exprs(a, b))


def _is_float(dtype: str) -> bool:
    return "float" in dtype


def _integer(value: int, dtype: str) -> Any:
    if dtype == "bool":
        raise _core.UserError(f"{value} beside a bool: {_COMPARED}")
    width = dtype.removeprefix("u").removeprefix("int")
    if not width.isdigit():
        raise _core.UserError(f"{value} beside {dtype}, which is not a number")
    is_unsigned, bits = dtype.startswith("u"), int(width)
    least, most = (0, 2**bits - 1) if is_unsigned else (-(2 ** (bits - 1)), 2 ** (bits - 1) - 1)
    if not least <= value <= most:
        raise _core.UserError(f"{value} is not of {dtype}; cast the other operand to a wider dtype")
    return _node.class_of("ir.IntImm")(dtype, value)


def number(value: Any, dtype: str) -> Any:
    """A constant of a dtype; UserError for a number that the dtype does not hold."""
    if _is_float(dtype):
        as_float = float(value)
        if math.isfinite(as_float) and abs(as_float) > _LARGEST.get(dtype, math.inf):
            raise _core.UserError(f"{value} is not of {dtype}, whose largest number is {_LARGEST[dtype]:.4g}")
        return _node.class_of("ir.FloatImm")(dtype, as_float)
    if not math.isfinite(value) or int(value) != value:
        raise _core.UserError(f"{value} is not of {dtype}: it is not a whole number")
    if dtype != "bool":
        try:
            return _integer(int(value), dtype)
        except _core.UserError:
            raise _core.UserError(f"{value} is not a number that {dtype} holds") from None
    if value not in (0, 1):
        raise _core.UserError(f"{value} is not a bool: a bool is True or False, 1 or 0")
    return _node.class_of("ir.IntImm")("bool", int(value))


def _divide(a: Any, b: Any) -> Any:
    a, b = to_exprs(a, b)
    for side in (a, b):
        if not _is_float(side.dtype):
            raise _core.UserError(
                f"{a} / {b}: `/` of {side.dtype}; write a // b (rounds down), tir.truncdiv(a, b) (toward zero), "
                f"or a.astype('float32') / b"
            )
    return api("tir.MakeBinary")("div", a, b)


def _power(a: Any, b: Any) -> Any:
    a, b = to_exprs(a, b)
    for side in (a, b):
        if not _is_float(side.dtype):
            raise _core.UserError(f"{a} ** {b}: `**` of {side.dtype}; it is for floats: a.astype('float32') ** b")
    return api("tir.MakeCall")("pow", [a, b], None)


def _logical(name: str, a: Any, b: Any) -> Any:
    a, b = to_exprs(a, b)
    if a.dtype == "bool" and name in ("and", "or"):
        return api("tir.MakeBinary")(name, a, b)
    return api("tir.MakeCall")(f"bitwise_{name}", [a, b], None)


class _Operators:
    """Python's operators on scalar expressions, and on what stands for one."""

    __slots__ = ()
    # Numbers of numpy leave the operators to the expression.
    __array_ufunc__ = None

    def asobject(self) -> Any:
        """The expression."""
        return self

    def astype(self, dtype: str) -> Any:
        """The value in another dtype: a float becomes an integer toward zero, within its range; a bool is `!= 0`."""
        return api("tir.MakeCast")(to_dtype(dtype), to_expr(self))

    def __bool__(self) -> bool:
        expr = to_expr(self)
        if expr.type_key not in ("ir.IntImm", "ir.FloatImm"):
            raise _core.UserError(
                f"`{expr}` is not known before the program runs: write & | ~ for and, or, not, "
                "and tir.if_then_else or tir.max for a choice"
            )
        return expr.value != 0

    def __add__(self, other: Any) -> Any:
        return binary("add", self, other)

    def __radd__(self, other: Any) -> Any:
        return binary("add", other, self)

    def __sub__(self, other: Any) -> Any:
        return binary("sub", self, other)

    def __rsub__(self, other: Any) -> Any:
        return binary("sub", other, self)

    def __mul__(self, other: Any) -> Any:
        return binary("mul", self, other)

    def __rmul__(self, other: Any) -> Any:
        return binary("mul", other, self)

    def __truediv__(self, other: Any) -> Any:
        return _divide(self, other)

    def __rtruediv__(self, other: Any) -> Any:
        return _divide(other, self)

    def __floordiv__(self, other: Any) -> Any:
        return binary("floor_div", self, other)

    def __rfloordiv__(self, other: Any) -> Any:
        return binary("floor_div", other, self)

    def __mod__(self, other: Any) -> Any:
        return binary("floor_mod", self, other)

    def __rmod__(self, other: Any) -> Any:
        return binary("floor_mod", other, self)

    def __pow__(self, other: Any) -> Any:
        return _power(self, other)

    def __rpow__(self, other: Any) -> Any:
        return _power(other, self)

    def __neg__(self) -> Any:
        return binary("sub", -0.0 if _is_float(to_expr(self).dtype) else 0, self)

    def __abs__(self) -> Any:
        return api("tir.MakeCall")("abs", [to_expr(self)], None)

    def __lt__(self, other: Any) -> Any:
        return binary("lt", self, other)

    def __le__(self, other: Any) -> Any:
        return binary("le", self, other)

    def __gt__(self, other: Any) -> Any:
        return binary("gt", self, other)

    def __ge__(self, other: Any) -> Any:
        return binary("ge", self, other)

    def __and__(self, other: Any) -> Any:
        return _logical("and", self, other)

    def __rand__(self, other: Any) -> Any:
        return _logical("and", other, self)

    def __or__(self, other: Any) -> Any:
        return _logical("or", self, other)

    def __ror__(self, other: Any) -> Any:
        return _logical("or", other, self)

    def __xor__(self, other: Any) -> Any:
        return _logical("xor", self, other)

    def __rxor__(self, other: Any) -> Any:
        return _logical("xor", other, self)

    def __lshift__(self, other: Any) -> Any:
        return api("tir.MakeCall")("shift_left", to_exprs(self, other), None)

    def __rshift__(self, other: Any) -> Any:
        return api("tir.MakeCall")("shift_right", to_exprs(self, other), None)

    def __invert__(self) -> Any:
        expr = to_expr(self)
        if expr.dtype == "bool":
            return api("tir.MakeNot")(expr)
        return api("tir.MakeCall")("bitwise_not", [expr], None)


@_node.mixin("ir.PrimExpr")
class _PrimExpr(_Operators):
    """A scalar expression: a dimension, an index, what a loop computes.

    `==` compares programs: equal by structure, and to the integer that it is. `tir.EQ(a, b)` compares when the program
    runs, as `<`, `<=`, `>` and `>=` do.
    """

    __slots__ = ()

    def __eq__(self, other: object) -> bool:
        if isinstance(other, Integral):
            return self.type_key == "ir.IntImm" and self.value == other
        return isinstance(other, _PrimExpr) and _STRUCTURAL_EQUAL(self, other, False)

    def __hash__(self) -> int:
        return hash(self.value) if self.type_key == "ir.IntImm" else _STRUCTURAL_HASH(self, False)

    def __int__(self) -> int:
        if self.type_key != "ir.IntImm":
            raise _core.UserError(f"{self} is not an integer: it is not known before the program runs")
        return self.value

    def __index__(self) -> int:
        return int(self)

    def __repr__(self) -> str:
        return text_of(self)


def to_dtype(value: Any) -> Any:
    """A dtype as C++ takes it; numpy's will do."""
    if value is None or isinstance(value, str):
        return value
    try:
        return np.dtype(value).name
    except (TypeError, ValueError):
        raise _core.UserError(f"dtype: {value!r} is not a dtype") from None


def _to_field(value: Any) -> Any:
    """As `to_expr`, where C++ refuses what is not a scalar expression."""
    return to_expr(value) if is_expr(value) or (isinstance(value, Integral) and not isinstance(value, bool)) else value


_node.converter("ir.PrimExpr", _to_field)
_node.converter("dtype", to_dtype)
_node.converter("None or dtype", lambda value: to_dtype(value) or None)
_node.constructor("ir.IntImm", "dtype value", "An integer constant.")
_node.constructor("ir.FloatImm", "dtype value", "A floating-point constant.")
_node.default("ir.Any", dtype="int64")
