"""Loops as recursive functions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from headrace import _arguments, _public
from headrace._core import UserError
from headrace.relay import _classes as nodes
from headrace.relay._build_ir import ScopeBuilder, var

__all__ = ["while_loop"]


def while_loop(
    cond: Callable[..., Any], loop_vars: Sequence[Any], loop_bodies: Callable[..., Any], loop_types: Any = ()
) -> Any:
    """A function that repeats a body while a condition holds, on the values of some variables.

    Parameters
    ----------
    cond : function
        Of the variables; gives the condition, a bool.
    loop_vars : list of RelayExpr
        What tells the names and types of the variables: Vars, or typed expressions.
    loop_bodies : function
        Of the variables; gives their next values.
    loop_types : list of Type
        Of the variables, in place of the types of `loop_vars`.

    Returns
    -------
    RelayExpr
        A let that binds the function, and gives it: it is called with the first values and returns the tuple of the
        last ones.

    Raises
    ------
    UserError
        For numbers of types or next values that are not those of the variables.
    """
    for function, name in ((cond, "cond"), (loop_bodies, "loop_bodies")):
        if not callable(function):
            raise UserError(f"while_loop: {name}: expected a function, got {_arguments.kind(function)}")
    given = [_arguments.expression(item, "while_loop: an item of loop_vars") for item in loop_vars]
    scope, loop = ScopeBuilder(), nodes.Var("while_loop")
    types = list(loop_types) or [scope.type_of(item) for item in given]
    names = [item.name_hint if isinstance(item, nodes.Var) else f"arg{i}" for i, item in enumerate(given)]
    if len(types) != len(names):
        raise UserError(f"while_loop: loop_types has {len(types)} types for {len(names)} variables")
    params = [var(name, type_annotation=kind) for name, kind in zip(names, types, strict=True)]
    with scope.if_scope(cond(*params)):
        following = list(loop_bodies(*params))
        if len(following) != len(params):
            raise UserError(f"while_loop: loop_bodies gave {len(following)} values for {len(params)} variables")
        scope.ret(nodes.Call(loop, following))
    with scope.else_scope():
        scope.ret(nodes.Tuple(params))
    return nodes.Let(loop, nodes.Function(params, scope.get()), loop)


_public.publish(__name__, "headrace.relay.loops")
