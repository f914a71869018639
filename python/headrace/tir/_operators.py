"""The operators of two scalars by the classes that users of TVM know: each is a view of `Binary` with one operator."""

from __future__ import annotations

from typing import Any

from headrace import _core, _public
from headrace._prim_expr import _Operators, binary

__all__ = [
    "EQ",
    "GE",
    "GT",
    "LE",
    "LT",
    "NE",
    "Add",
    "And",
    "Div",
    "FloorDiv",
    "FloorMod",
    "Max",
    "Min",
    "Mod",
    "Mul",
    "Or",
    "Sub",
]

_OF_NUMBERS = ("add", "sub", "mul", "div", "mod", "floor_div", "floor_mod", "min", "max")
_OF_TRUTH = ("eq", "ne", "lt", "le", "gt", "ge", "and", "or")
_NAMES = (*_OF_NUMBERS, *_OF_TRUTH)  # by their numbers in C++


class OperatorClass(type):
    """The class of such a class: its instances are the nodes that have the operator."""

    operator: str

    def __instancecheck__(cls, value: Any) -> bool:
        is_binary = isinstance(value, _core.Object) and value.type_key == "tir.Binary"
        return is_binary and _NAMES[value.op] == cls.operator


class Operator(_Operators, metaclass=OperatorClass):
    """An operator of two values of one dtype. Of constants, the constructor gives a constant.

    Parameters
    ----------
    a, b : PrimExpr or number
        The values.
    """

    operator = ""
    a: Any
    b: Any
    dtype: str

    def __new__(cls, a: Any, b: Any) -> Any:
        return binary(cls.operator, a, b)


class Add(Operator):
    """The sum."""

    operator = "add"


class Sub(Operator):
    """The difference."""

    operator = "sub"


class Mul(Operator):
    """The product."""

    operator = "mul"


class Div(Operator):
    """The quotient; of integers rounded toward zero."""

    operator = "div"


class Mod(Operator):
    """The remainder of `Div`."""

    operator = "mod"


class FloorDiv(Operator):
    """The quotient rounded down."""

    operator = "floor_div"


class FloorMod(Operator):
    """The remainder of `FloorDiv`."""

    operator = "floor_mod"


class Min(Operator):
    """The smaller one."""

    operator = "min"


class Max(Operator):
    """The larger one."""

    operator = "max"


class EQ(Operator):
    """Whether two values are equal when the program runs; `a == b` compares programs."""

    operator = "eq"


class NE(Operator):
    """Whether two values differ when the program runs; `a != b` compares programs."""

    operator = "ne"


class LT(Operator):
    """Whether `a` is smaller."""

    operator = "lt"


class LE(Operator):
    """Whether `a` is not larger."""

    operator = "le"


class GT(Operator):
    """Whether `a` is larger."""

    operator = "gt"


class GE(Operator):
    """Whether `a` is not smaller."""

    operator = "ge"


class And(Operator):
    """Whether both conditions hold."""

    operator = "and"


class Or(Operator):
    """Whether a condition holds."""

    operator = "or"


_public.publish(__name__, "headrace.tir")
