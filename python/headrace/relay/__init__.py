"""Relay: programs of tensors and functions, as users of Relay write them."""

from __future__ import annotations

import sys as _sys

from headrace import _expr
from headrace.relay import _classes, analysis, annotation, op, transform
from headrace.relay import _op_adapters as _adapters
from headrace.relay import _op_functions as _ops
from headrace.relay._build_ir import ScopeBuilder, bind, const, var
from headrace.relay._classes import *  # noqa: F403
from headrace.relay._run import GraphExecutorFactoryModule, bind_params_by_name, build, create_executor
from headrace.relay._text import astext, fromtext, parse, parse_expr
from headrace.relay.expr_functor import ExprFunctor, ExprMutator, ExprVisitor
from headrace.relay.type_functor import TypeFunctor, TypeMutator, TypeVisitor

Expr = _classes.RelayExpr
TupleWrapper = _expr.TupleWrapper
TypeKind = _classes.TypeKind
scalar_type = _classes.scalar_type

for _name in ("arange", "full", "mean_variance", "std", "variance"):
    globals()[_name] = getattr(_adapters, _name)
_ops.fill(_sys.modules[__name__])

__all__ = [
    *_classes.__all__,
    "Expr",
    "ExprFunctor",
    "ExprMutator",
    "ExprVisitor",
    "GraphExecutorFactoryModule",
    "ScopeBuilder",
    "TupleWrapper",
    "TypeFunctor",
    "TypeKind",
    "TypeMutator",
    "TypeVisitor",
    "analysis",
    "annotation",
    "astext",
    "bind",
    "bind_params_by_name",
    "build",
    "const",
    "create_executor",
    "fromtext",
    "op",
    "parse",
    "parse_expr",
    "scalar_type",
    "transform",
    "var",
]
