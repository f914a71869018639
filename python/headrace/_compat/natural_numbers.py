"""Natural numbers as data: nat.rly."""

from __future__ import annotations

from typing import Any

from headrace import _public
from headrace._core import UserError
from headrace.relay.backend.interpreter import ConstructorValue

__all__ = ["add_nat_definitions", "count", "make_nat_expr", "make_nat_value"]


def add_nat_definitions(prelude: Any) -> None:
    """Takes nat.rly into a Prelude's module.

    Parameters
    ----------
    prelude : Prelude
        Whose module takes it.
    """
    prelude.mod.import_from_std("nat.rly")


def count(prelude: Any, n: Any) -> int:
    """The number that a value of type nat is.

    Parameters
    ----------
    prelude : Prelude
        Whose module has nat.rly.
    n : ConstructorValue
        What the evaluator gave.

    Returns
    -------
    int

    Raises
    ------
    UserError
        For a value of another type.
    """
    zero, successor = prelude.mod.get_type("nat")[1:]
    steps, at = 0, n
    while isinstance(at, ConstructorValue) and at.constructor.name_hint == successor.name_hint:
        steps, at = steps + 1, at.fields[0]
    if not isinstance(at, ConstructorValue) or at.constructor.name_hint != zero.name_hint:
        raise UserError(f"count: expected a value of type nat, got {at!r}")
    return steps


def make_nat_value(prelude: Any, n: int) -> Any:
    """The value of a number, which a function may be called with.

    Parameters
    ----------
    prelude : Prelude
        Whose module has nat.rly.
    n : int
        The number.

    Returns
    -------
    ConstructorValue
    """
    zero, successor = prelude.mod.get_type("nat")[1:]
    value = ConstructorValue(constructor=zero, fields=[])
    for _ in range(n):
        value = ConstructorValue(constructor=successor, fields=[value])
    return value


def make_nat_expr(prelude: Any, n: int) -> Any:
    """The expression of a number: `s(s(z()))` of 2.

    Parameters
    ----------
    prelude : Prelude
        Whose module has nat.rly.
    n : int
        The number.

    Returns
    -------
    RelayExpr
    """
    zero, successor = prelude.mod.get_type("nat")[1:]
    expr = zero()
    for _ in range(n):
        expr = successor(expr)
    return expr


_public.publish(__name__, "headrace.relay.testing")
