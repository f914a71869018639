"""Making expressions: variables, constants, scopes."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Number
from typing import Any

import numpy as np

from headrace import _arguments, _core, _expr, _node
from headrace._ffi import api
from headrace.relay import _classes as nodes

_NARROW = {"float64": "float32", "int64": "int32"}


def var(
    name_hint: str,
    type_annotation: Any = None,
    shape: Sequence[Any] | None = None,
    dtype: str = "float32",
    span: Any = None,
) -> Any:
    """A new variable.

    Parameters
    ----------
    name_hint : str
        What it is printed as; two variables of one name are two.
    type_annotation : Type or str, optional
        Its type; a str is the dtype of a scalar.
    shape : sequence of int or PrimExpr, optional
        Instead of a type: the dimensions of a tensor of `dtype`.
    dtype : str
        Of the tensor; without a shape it is only checked.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Var

    Raises
    ------
    UserError
        When a type and a shape are given, or a dtype that there is not.
    """
    if shape is None:
        nodes.TensorType((), dtype)  # raises for a dtype that there is not
    if type_annotation is not None and shape is not None:
        raise _core.UserError("var: a type_annotation and a shape are given; give one of them")
    if isinstance(type_annotation, str):
        type_annotation = nodes.TensorType((), type_annotation)
    elif shape is not None:
        for i, dim in enumerate(shape):
            if isinstance(dim, (int, np.integer)) and dim < 0:
                raise _core.UserError(f"var: dimension {i} of shape is {dim}; it is 0 or more, or relay.Any()")
        type_annotation = nodes.TensorType(shape, dtype)
    return nodes.Var(name_hint, type_annotation, span=span)


def const(value: Any, dtype: str | None = None, span: Any = None) -> Any:
    """A constant.

    Parameters
    ----------
    value : bool, int, float, list, numpy.ndarray or NDArray
        The tensor; an array is copied.
    dtype : str, optional
        Its dtype. Without it, numbers, lists and numpy's arrays of float64 and int64 are float32 and int32, as in
        Relay; an NDArray keeps its own.
    span : Span, optional
        Where it comes from.

    Returns
    -------
    Constant

    Raises
    ------
    UserError
        For what is no tensor, and integers that int32 does not hold where no dtype is given.
    """
    if isinstance(value, _core.NDArray):
        array = value.numpy()
    elif isinstance(value, (bool, int, float, list, tuple, np.ndarray, np.generic)):
        array = np.asarray(value)
        if dtype is None:
            array = _narrowed(array)
    else:
        raise _core.UserError(f"const: expected a number, a list or an array, got {type(value).__name__}")
    return nodes.Constant(_core.array(_with_dtype(array, dtype), "value"), span=span)


def _narrowed(array: np.ndarray) -> np.ndarray:
    if array.dtype == np.int64 and array.size:
        limits = np.iinfo(np.int32)
        for number in (array.min(), array.max()):
            if not limits.min <= number <= limits.max:
                raise _core.UserError(f'const: {number} is no int32, which integers are; give dtype="int64"')
    return array.astype(_NARROW.get(array.dtype.name, array.dtype), copy=False)


def _numpy_dtype(dtype: Any, what: str) -> np.dtype:
    if not isinstance(dtype, (str, type, np.dtype)):
        raise _core.UserError(f"{what}: dtype: expected a str, got {_arguments.kind(dtype)}")
    if dtype == "bfloat16":
        import ml_dtypes

        dtype = ml_dtypes.bfloat16
    try:
        return np.dtype(dtype)
    except TypeError as error:
        raise _core.UserError(f"{what}: {error}") from None


def _with_dtype(array: np.ndarray, dtype: str | None) -> np.ndarray:
    target = None if dtype is None else _numpy_dtype(dtype, "const")
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
        raise _core.UserError(f"{what}: {number} is no {target.name}; give a number that {target.name} holds")
    wider = ["int32", "int64", "float32", "float64"][0 if isinstance(number, int) else 2 :]
    fitting = next((name for name in wider if _holds(np.dtype(name), number)), None)
    advice = f", as in x.astype('{fitting}')" if fitting else " to a dtype that holds it"
    raise _core.UserError(f"{what}: {number} beside {target.name}: cast the other operand{advice}")


def operand(value: Any, what: str, dtype: Any = None, beside: str | None = None) -> Any:
    """What is given for an operand, as an expression.

    Parameters
    ----------
    value : RelayExpr, number, list, numpy.ndarray or NDArray
        An array is a constant, as `const` makes it, but keeps the dtype that the operand beside it has too.
    what : str
        The op and the operand, for messages.
    dtype : str, optional
        Of a number, where the op says it.
    beside : str, optional
        The dtype of what stands beside it, which a number gets else.

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
    if not isinstance(value, (_expr.TupleWrapper, nodes.RelayExpr)):
        raise _core.UserError(f"{what}: expected an expression, got {_arguments.kind(value)}")
    return value


def bind(expr: Any, binds: Mapping[Any, Any]) -> Any:
    """The expression with other expressions in place of free variables; bound parameters of a function go.

    A variable that is bound within is another one. Variables that only values bring become parameters of a function.

    Parameters
    ----------
    expr : RelayExpr
        The expression.
    binds : dict of Var or str to RelayExpr
        What stands for the variables; a str is the name of one of a function's parameters.

    Returns
    -------
    RelayExpr
    """
    expr, binds = _arguments.expression(expr, "bind: expr"), _arguments.entries(binds, "bind: binds")
    names = {param.name_hint: param for param in getattr(expr, "params", [])} if binds else {}
    unknown = [key for key in binds if isinstance(key, str) and key not in names]
    if unknown:
        raise _core.UserError(f"bind: the function has no parameter {', '.join(unknown)}")
    return api("relay.ir.Bind")(expr, {names.get(k, k) if isinstance(k, str) else k: v for k, v in binds.items()})


class _Scope:
    def __init__(self) -> None:
        self.bindings: list[tuple[Any, Any]] = []
        self.result: Any = None


class ScopeBuilder:
    """Builds lets and branches in the order in which they are computed.

    Examples
    --------
    >>> sb = ScopeBuilder()
    >>> with sb.if_scope(cond):
    ...     one = sb.let("one", relay.const(1.0))
    ...     sb.ret(relay.add(x, one))
    >>> with sb.else_scope():
    ...     sb.ret(x)
    >>> body = sb.get()
    """

    def __init__(self) -> None:
        self._scopes = [_Scope()]
        self._if: tuple[Any, Any] | None = None

    def let(self, var_: Any, value: Any) -> Any:
        """Binds a value.

        Parameters
        ----------
        var_ : Var, str or tuple
            The variable, or the name of a new one, or its name and type.
        value : RelayExpr
            What it is bound to.

        Returns
        -------
        Var
        """
        if isinstance(var_, (tuple, list)):
            var_ = var(*var_)
        elif isinstance(var_, str):
            var_ = var(var_)
        self._scopes[-1].bindings.append((var_, value))
        return var_

    def ret(self, value: Any) -> None:
        """Says what the scope gives."""
        if self._scopes[-1].result is not None:
            raise _core.UserError("ret: the scope has its result already")
        self._scopes[-1].result = value

    @contextmanager
    def if_scope(self, cond: Any) -> Iterator[None]:
        """The branch that is taken when `cond` is true; an else_scope must follow."""
        with self._branch() as branch:
            yield
        self._if = (cond, branch[0])

    @contextmanager
    def else_scope(self) -> Iterator[None]:
        """The other branch of the if_scope before it; the `if` is the result of the scope around."""
        if self._if is None:
            raise _core.UserError("else_scope: there is no if_scope before it")
        cond, true_branch = self._if
        self._if = None
        with self._branch() as branch:
            yield
        self.ret(nodes.If(cond, true_branch, branch[0]))

    @contextmanager
    def _branch(self) -> Iterator[list[Any]]:
        self._scopes.append(_Scope())
        result: list[Any] = []
        try:
            yield result
            result.append(self._close(self._scopes[-1]))
        finally:
            self._scopes.pop()

    def type_of(self, expr: Any) -> Any:
        """The type of a variable, or the one that inference gave."""
        return expr.type_annotation if isinstance(expr, nodes.Var) else expr.checked_type

    def get(self) -> Any:
        """The expression that was built; UserError when `ret` was not called."""
        return self._close(self._scopes[-1])

    def _close(self, scope: _Scope) -> Any:
        if self._if is not None:
            raise _core.UserError("an if_scope has no else_scope")
        if scope.result is None:
            raise _core.UserError("the scope has no result: call ret")
        body = scope.result
        for variable, value in reversed(scope.bindings):
            body = nodes.Let(variable, value, body)
        return body


def make_node(type_key: str, **fields: Any) -> Any:
    """A node of a type from its fields."""
    return _node.make(type_key, fields)
