"""Relay: programs of tensors and functions, as users of Relay write them."""

from __future__ import annotations

import sys as _sys
from typing import Any as _Any

from headrace import _expr
from headrace._params import load_param_dict, save_param_dict
from headrace.relay import _classes, analysis, annotation, build_module, expr, frontend, op, transform, ty
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
    "build_module",
    "const",
    "create_executor",
    "expr",
    "frontend",
    "fromtext",
    "load_param_dict",
    "op",
    "parse",
    "parse_expr",
    "save_param_dict",
    "scalar_type",
    "transform",
    "ty",
    "var",
]

_ELSEWHERE = {
    "backend": "relay.build and relay.create_executor are all there is of it",
    "vm": 'relay.create_executor("debug") runs programs with control flow, and relay.build compiles those without any',
    "testing": "there are no networks made by functions; export one to ONNX and read that by frontend.from_onnx",
    "dataflow_pattern": "there are no patterns; relay.ExprMutator rewrites programs",
    "qnn": "quantized ops are not there",
    "quantize": "quantization is not there",
    "prelude": 'mod.import_from_std("prelude.rly") brings its types and functions',
    "loops": 'a recursive function is the loop; relay.create_executor("debug") runs it',
    "collage": "one compiler takes the whole program",
}


_find_op = globals()["__getattr__"]  # of ops that are registered later: fill() has put it here


def __getattr__(name: str) -> _Any:
    if name in _ELSEWHERE:
        raise AttributeError(f"headrace.relay has no '{name}': {_ELSEWHERE[name]}")
    return _find_op(name)
