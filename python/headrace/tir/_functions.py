"""Functions of scalar expressions."""

from __future__ import annotations

from collections.abc import Callable
from numbers import Integral, Real
from typing import Any

from headrace import _core, _node, _public
from headrace._ffi import api
from headrace._prim_expr import binary, is_expr, number, to_dtype, to_expr, to_exprs

__all__ = [
    "abs",
    "acos",
    "acosh",
    "all",
    "any",
    "asin",
    "asinh",
    "atan",
    "atanh",
    "cast",
    "ceil",
    "const",
    "cos",
    "cosh",
    "erf",
    "exp",
    "floor",
    "floordiv",
    "floormod",
    "if_then_else",
    "indexdiv",
    "indexmod",
    "isinf",
    "isnan",
    "log",
    "log1p",
    "log2",
    "log10",
    "nearbyint",
    "pow",
    "power",
    "reinterpret",
    "round",
    "rsqrt",
    "sigmoid",
    "sin",
    "sinh",
    "size_var",
    "sqrt",
    "tan",
    "tanh",
    "trunc",
    "truncdiv",
    "truncmod",
    "var",
]


def var(name: str, dtype: str = "int64") -> Any:
    """A scalar variable, such as a symbolic dimension.

    Parameters
    ----------
    name : str
        What it is printed as.
    dtype : str
        The dtype of dimensions, int64.

    Returns
    -------
    Var
    """
    return _node.class_of("tir.Var")(name, dtype)


size_var = var


def const(value: Any, dtype: Any = None) -> Any:
    """A constant.

    Parameters
    ----------
    value : int, float or bool
        The number.
    dtype : str, optional
        An integer's, a float's, or bool. Without it: numpy's own of a number of numpy, and of Python's bool, int64 (as
        dimensions are) and float32.

    Returns
    -------
    IntImm or FloatImm

    Raises
    ------
    UserError
        For what is not a number, or none that the dtype holds.
    """
    is_bool = isinstance(value, bool) or getattr(value, "dtype", None) == "bool"
    if not is_bool and (not isinstance(value, Real) or is_expr(value)):
        raise _core.UserError(f"const: expected a number, got {value!r}")
    if dtype is None:
        plain = "bool" if is_bool else "int64" if isinstance(value, Integral) else "float32"
        dtype = getattr(value, "dtype", plain)
    return number(bool(value) if is_bool else value, to_dtype(dtype))


def cast(value: Any, dtype: str) -> Any:
    """The value in another dtype, as `value.astype(dtype)`.

    Parameters
    ----------
    value : PrimExpr or number
        The value.
    dtype : str
        Its dtype then.

    Returns
    -------
    PrimExpr
    """
    return to_expr(value).astype(dtype)


def reinterpret(dtype: str, value: Any) -> Any:
    """The bits of the value as another dtype of the same size.

    Parameters
    ----------
    dtype : str
        The dtype.
    value : PrimExpr
        The value.

    Returns
    -------
    PrimExpr
    """
    return api("tir.MakeCall")("reinterpret", [to_expr(value)], dtype)


def _unary(name: str, doc: str) -> Callable[[Any], Any]:
    def function(x: Any) -> Any:
        return api("tir.MakeCall")(name, [to_expr(x)], None)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = f"""{doc}

    Parameters
    ----------
    x : PrimExpr or number
        The number.

    Returns
    -------
    PrimExpr
    """
    return function


exp = _unary("exp", "e to the power of a float.")
log = _unary("log", "The natural logarithm of a float.")
log2 = _unary("log2", "The logarithm of a float to the base 2.")
log10 = _unary("log10", "The logarithm of a float to the base 10.")
log1p = _unary("log1p", "The natural logarithm of 1 + x, exact where x is small.")
sqrt = _unary("sqrt", "The square root of a float.")
rsqrt = _unary("rsqrt", "One divided by the square root of a float.")
sin = _unary("sin", "The sine of a float, in radians.")
cos = _unary("cos", "The cosine of a float, in radians.")
tan = _unary("tan", "The tangent of a float, in radians.")
asin = _unary("asin", "The angle of a sine.")
acos = _unary("acos", "The angle of a cosine.")
atan = _unary("atan", "The angle of a tangent.")
sinh = _unary("sinh", "The hyperbolic sine of a float.")
cosh = _unary("cosh", "The hyperbolic cosine of a float.")
tanh = _unary("tanh", "The hyperbolic tangent of a float.")
asinh = _unary("asinh", "The inverse of the hyperbolic sine.")
acosh = _unary("acosh", "The inverse of the hyperbolic cosine.")
atanh = _unary("atanh", "The inverse of the hyperbolic tangent.")
erf = _unary("erf", "The error function of a float.")
floor = _unary("floor", "The largest whole number that is not larger than a float.")
ceil = _unary("ceil", "The smallest whole number that is not smaller than a float.")
round = _unary("round", "The nearest whole number to a float, of two the one farther from zero.")
nearbyint = _unary("nearbyint", "The nearest whole number to a float, of two the even one.")
trunc = _unary("trunc", "The whole part of a float.")
abs = _unary("abs", "The absolute value of a number.")
isnan = _unary("isnan", "Whether a float is not a number; a bool.")
isinf = _unary("isinf", "Whether a float is infinite; a bool.")


def sigmoid(x: Any) -> Any:
    """`1 / (1 + exp(-x))` of a float.

    Parameters
    ----------
    x : PrimExpr or float
        The number.

    Returns
    -------
    PrimExpr
    """
    return 1.0 / (1.0 + exp(-to_expr(x)))


def pow(x: Any, y: Any) -> Any:
    """x to the power of y, both of one dtype.

    Parameters
    ----------
    x, y : PrimExpr or number
        The base and the exponent.

    Returns
    -------
    PrimExpr
    """
    return api("tir.MakeCall")("pow", to_exprs(x, y), None)


power = pow


def floordiv(a: Any, b: Any) -> Any:
    """The quotient rounded down, as `a // b`; of integers by 0, it is 0.

    Parameters
    ----------
    a, b : PrimExpr or number
        Values of one dtype.

    Returns
    -------
    PrimExpr
    """
    return binary("floor_div", a, b)


def floormod(a: Any, b: Any) -> Any:
    """The remainder of `floordiv`, as `a % b`: it has the sign of `b`.

    Parameters
    ----------
    a, b : PrimExpr or number
        Values of one dtype.

    Returns
    -------
    PrimExpr
    """
    return binary("floor_mod", a, b)


indexdiv = floordiv
indexmod = floormod


def truncdiv(a: Any, b: Any) -> Any:
    """The quotient of `a` and `b` rounded toward zero, as in C.

    Parameters
    ----------
    a, b : PrimExpr or int
        Integers of one dtype.

    Returns
    -------
    PrimExpr

    Raises
    ------
    UserError
        For floats, which `a / b` divides.
    """
    return _of_integers("truncdiv", "div", a, b)


def truncmod(a: Any, b: Any) -> Any:
    """The remainder of `truncdiv`: it has the sign of `a`.

    Parameters
    ----------
    a, b : PrimExpr or int
        Integers of one dtype.

    Returns
    -------
    PrimExpr
    """
    return _of_integers("truncmod", "mod", a, b)


def _of_integers(name: str, op: str, a: Any, b: Any) -> Any:
    a, b = to_exprs(a, b)
    if "float" in a.dtype:
        raise _core.UserError(f"{name} of {a.dtype}: it is for integers; floats have a / b and tir.floormod(a, b)")
    return binary(op, a, b)


def all(*args: Any) -> Any:
    """Whether all conditions hold, as `a & b`.

    Parameters
    ----------
    *args : PrimExpr
        Conditions, one or more.

    Returns
    -------
    PrimExpr
        A bool.
    """
    return _joined("and", args)


def any(*args: Any) -> Any:
    """Whether some condition holds, as `a | b`.

    Parameters
    ----------
    *args : PrimExpr
        Conditions, one or more.

    Returns
    -------
    PrimExpr
        A bool.
    """
    return _joined("or", args)


def _joined(op: str, args: tuple[Any, ...]) -> Any:
    if not args:
        raise _core.UserError("tir.all and tir.any take one condition or more")
    joined = to_expr(args[0])
    for condition in args[1:]:
        joined = binary(op, joined, condition)
    return joined


def if_then_else(cond: Any, t: Any, f: Any) -> Any:
    """`t` where the condition holds, else `f`; only that side is evaluated, so that it may guard a load.

    Parameters
    ----------
    cond : PrimExpr
        A bool.
    t, f : PrimExpr or number
        Values of one dtype.

    Returns
    -------
    PrimExpr
    """
    return api("tir.MakeCall")("if_then_else", [to_expr(cond), *to_exprs(t, f)], None)


@_node.mixin("tir.Var")
class _Var:
    __slots__ = ()

    @property
    def name(self) -> str:
        """The name, `name_hint` by another word."""
        return self.name_hint


@_node.mixin("tir.Select")
class _Select:
    """`true_value` where the condition holds, else `false_value`; both are evaluated, so neither may be out of bounds.

    Parameters
    ----------
    condition : PrimExpr
        A bool.
    true_value, false_value : PrimExpr or number
        Values of one dtype.
    """

    __slots__ = ()

    def __init__(self, condition: Any, true_value: Any, false_value: Any) -> None:
        choice = [to_expr(condition), *to_exprs(true_value, false_value)]
        _core.Object.__init__(self, api("tir.MakeSelect")(*choice))


_public.publish(__name__, "headrace.tir")
