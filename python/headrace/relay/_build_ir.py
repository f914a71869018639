"""Making expressions: variables, scopes."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from numbers import Integral
from typing import Any

from headrace import _arguments, _core, _public
from headrace._ffi import api
from headrace.relay import _classes as nodes

__all__ = ["ScopeBuilder", "bind", "var"]


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
        The dtype of the tensor; without a shape it is only checked.
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
        if isinstance(shape, str) or not isinstance(shape, Iterable):
            raise _core.UserError(f"var: shape: expected a tuple of dimensions, got {_arguments.kind(shape)}")
        for i, dim in enumerate(shape):
            if isinstance(dim, Integral) and dim < 0:
                raise _core.UserError(f"var: dimension {i} of shape is {dim}; it is 0 or more, or relay.Any()")
        type_annotation = nodes.TensorType(shape, dtype)
    return nodes.Var(name_hint, type_annotation, span=span)


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


_public.publish(__name__, "headrace.relay")
