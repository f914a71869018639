"""Finds which kinds of expressions a program uses."""

from __future__ import annotations

from enum import IntEnum
from typing import Any

from headrace import _arguments, _public
from headrace._ffi import api
from headrace.ir import IRModule
from headrace.relay import _classes as nodes

__all__ = ["Feature", "detect_feature"]


class Feature(IntEnum):
    """A kind of expression, or a property such as sharing, that a program may have."""

    fVar = 0
    fGlobalVar = 1
    fConstant = 2
    fTuple = 3
    fTupleGetItem = 4
    fFunction = 5
    fOp = 6
    fCall = 7
    fLet = 8
    fIf = 9
    fRefCreate = 10
    fRefRead = 11
    fRefWrite = 12
    fConstructor = 13
    fMatch = 14
    fGraph = 15
    fLetRec = 16


_ATOMS = (nodes.Var, nodes.Op, nodes.GlobalVar, nodes.Constructor, nodes.Constant)


def detect_feature(a: Any, b: Any = None) -> set[Feature]:
    """Finds the kinds of expressions that a program uses.

    Parameters
    ----------
    a, b : RelayExpr or IRModule
        An expression, a module whose functions count too, or both.

    Returns
    -------
    set of Feature
        `fGraph`: something that is computed once is used twice; `fLetRec`: a function that calls itself.
    """
    roots = []
    for name, part in (("a", a), ("b", b)):
        if isinstance(part, IRModule):
            roots += part.functions.values()
        elif name == "a" or part is not None:
            roots.append(_arguments.expression(part, f"detect_feature: {name}"))
    return {feature for root in roots for feature in _features_of(root)}


def _features_of(root: Any) -> set[Feature]:
    found = set()
    used = set()
    for expr in api("relay.analysis.post_order")(root):
        found.add(Feature[f"f{type(expr).__name__}"])
        if isinstance(expr, nodes.Let) and _is_recursive(expr):
            found.add(Feature.fLetRec)
        for child in api("relay.ir.Children")(expr):
            if child in used and not isinstance(child, _ATOMS):
                found.add(Feature.fGraph)
            used.add(child)
    return found


def _is_recursive(let: Any) -> bool:
    return isinstance(let.value, nodes.Function) and let.var in list(api("relay.analysis.free_vars")(let.value))


_public.publish(__name__, "headrace.relay.analysis")
