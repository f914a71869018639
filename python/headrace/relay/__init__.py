"""Relay: programs of tensors and functions, as users of Relay write them."""

from __future__ import annotations

import sys as _sys

from headrace import _expr
from headrace._params import load_param_dict, save_param_dict
from headrace.relay import (
    _classes,
    _family_adapters,
    _padding,
    _with_fields,
    adt,
    analysis,
    annotation,
    backend,
    build_module,
    expr,
    frontend,
    function,
    op,
    param_dict,
    prelude,
    scope_builder,
    testing,
    transform,
    ty,
)
from headrace.relay import _op_adapters as _adapters
from headrace.relay import _op_functions as _ops
from headrace.relay._build_ir import ScopeBuilder, bind, const, var
from headrace.relay._classes import *  # noqa: F403
from headrace.relay._run import GraphExecutorFactoryModule, bind_params_by_name, build, create_executor
from headrace.relay._text import astext, fromtext, parse, parse_expr
from headrace.relay._with_fields import *  # noqa: F403
from headrace.relay.expr_functor import ExprFunctor, ExprMutator, ExprVisitor
from headrace.relay.type_functor import TypeFunctor, TypeMutator, TypeVisitor

Expr = _classes.RelayExpr
TupleWrapper = _expr.TupleWrapper

globals().update(_adapters.FUNCTIONS)
_ops.fill(_sys.modules[__name__])
for _family, _functions in _family_adapters.FAMILIES.items():
    vars(globals()[_family]).update(_functions)
    globals()[_family].__all__ += _functions

__all__ = [
    *_adapters.FUNCTIONS,
    *_classes.__all__,
    *_with_fields.__all__,
    "Expr",
    "ExprFunctor",
    "ExprMutator",
    "ExprVisitor",
    "GraphExecutorFactoryModule",
    "ScopeBuilder",
    "TupleWrapper",
    "TypeFunctor",
    "TypeMutator",
    "TypeVisitor",
    "adt",
    "analysis",
    "annotation",
    "astext",
    "backend",
    "bind",
    "bind_params_by_name",
    "build",
    "build_module",
    "const",
    "create_executor",
    "expr",
    "frontend",
    "fromtext",
    "function",
    "load_param_dict",
    "op",
    "param_dict",
    "parse",
    "parse_expr",
    "prelude",
    "save_param_dict",
    "scope_builder",
    "testing",
    "transform",
    "ty",
    "var",
]

# Also where users of Relay import them from.
_sys.modules[f"{op.__name__}.nn.utils"] = _padding
globals()["nn"].utils = _padding
_sys.modules[f"{op.__name__}.op"] = op
_sys.modules[f"{op.__name__}.annotation"] = annotation
